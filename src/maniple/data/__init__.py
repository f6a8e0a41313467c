"""What is kept of a run: films, pictures, episodes."""
