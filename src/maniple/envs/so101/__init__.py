"""Tasks of the SO-101 desktop arm, one per file."""
