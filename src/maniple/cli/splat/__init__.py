"""Commands about Gaussian splats."""
