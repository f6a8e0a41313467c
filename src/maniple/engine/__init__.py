"""Step many environments as one: action, engine, worker, group of envs, slab."""
