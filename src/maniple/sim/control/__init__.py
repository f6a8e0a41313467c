"""Ways in which an action becomes servo commands."""
