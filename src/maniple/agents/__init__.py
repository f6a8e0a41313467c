"""Policies that act for a whole batch at once, and learn from batches of transitions."""
