"""What compiled picture kernels share: vector lanes, a thread pool, and how they are loaded."""
