"""Our own robot models, made of primitives from published kinematics."""
