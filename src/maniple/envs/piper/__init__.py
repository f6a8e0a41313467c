"""Tasks of the Piper: on a desk, on a dog's back, on a wheeled base."""
