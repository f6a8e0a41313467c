"""RLBench's tasks for a Panda on a table, one per file."""
