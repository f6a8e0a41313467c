"""The browser page: live arms, runs and datasets, and a person who drives."""
