"""One file per RLBench task: its scene, its success, its expert."""
