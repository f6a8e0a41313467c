"""The real RLBench on CoppeliaSim behind our environments' contract, where it is installed."""
