"""Tasks, and the environments made of them."""
