"""World models: a teacher predicts, a student explores, an adversary finds faults."""
