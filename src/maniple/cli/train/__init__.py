"""maniple train: one verb per algorithm."""
