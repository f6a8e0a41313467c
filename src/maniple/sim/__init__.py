"""MuJoCo scenes, robots, control and cameras, batched over environments."""
