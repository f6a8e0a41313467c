"""Draw scenes of primitives without GL: a ray-caster in C++, and the same in numpy."""
