"""Demonstrations: record them, look at them."""
