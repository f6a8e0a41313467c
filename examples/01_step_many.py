"""Step many arms with random actions and count environment steps per second."""

import argparse
from time import perf_counter

import maniple


def main() -> None:
    """Step, then tell how fast it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="LeRobot-v0")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()

    envs = maniple.make_vec(options.task, options.num_envs)
    envs.action_space.seed(0)
    obs, _ = envs.reset(seed=0)
    for name, array in obs.items():
        print(f"{name:<16} {array.dtype!s:<8} {array.shape}")

    # Drawing actions takes longer than the physics: draw a few batches and use them in turn.
    batches = [envs.action_space.sample() for _ in range(16)]
    start = perf_counter()
    for k in range(options.steps):
        envs.step(batches[k % len(batches)])
    seconds = perf_counter() - start

    rate = options.steps * options.num_envs / seconds
    times = envs.stats()
    print(f"{rate:,.0f} env-steps per second")
    print(f"{times['exec_ms']['p50']:.2f} ms per call in the simulation,")
    print(f"{times['transport_ms']['p50']:.2f} ms around it")
    envs.close()


if __name__ == "__main__":
    main()
