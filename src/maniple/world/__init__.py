"""World models: a teacher that predicts, a student that explores, an adversary that finds faults."""
