"""Draw Gaussian splats that follow the bodies of a MuJoCo model."""
