"""Close the loop from action to weights: in one process, or over a cluster."""
