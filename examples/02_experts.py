"""Let the scripted experts drive sixteen arms at once, and count how often they succeed."""

import argparse

import numpy as np

import maniple
from maniple.registry import EXPERTS


def success_rate(task: str, num_envs: int, steps: int) -> float:
    """Run one episode in every row and return the share that was solved."""
    envs = maniple.make_vec(task, num_envs, randomize=True)
    expert = maniple.expert(task, num_envs)
    obs, _ = envs.reset(seed=0)
    solved = np.zeros(num_envs, bool)
    ended = np.zeros(num_envs, bool)
    for _ in range(steps):
        obs, _, terminated, truncated, info = envs.step(expert.act(obs))
        solved |= info["success"] & ~ended
        ended |= terminated | truncated
        if ended.all():
            break
    envs.close()
    return float(solved.mean())


def main() -> None:
    """Go through every task of a robot that has an expert."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", default="so101", help="so101 or panda")
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()
    for task in (task for task in EXPERTS if task.startswith(f"{options.robot}/")):
        rate = success_rate(task, options.num_envs, options.steps)
        print(f"{task:<20} {rate:>5.0%} of {options.num_envs} episodes solved")


if __name__ == "__main__":
    main()
