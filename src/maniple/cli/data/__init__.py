"""Datasets: check, repair and copy them."""
