"""Count how often every expert of the Panda succeeds, and a random policy: a table in Markdown.

python bench/experts.py --episodes 50 --random 50 --grasp contact
"""

from __future__ import annotations

import argparse

import numpy as np

import maniple
from maniple.registry import RLBENCH


def main() -> None:
    """Run an episode in each of many rows, task after task."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--episodes", type=int, default=50)
    options.add_argument("--random", type=int, default=0, help="episodes of a random policy")
    options.add_argument("--grasp", choices=("attach", "contact"))
    options.add_argument("--seed", type=int, default=1000)
    options.add_argument("tasks", nargs="*", default=RLBENCH)
    given = options.parse_args()
    print("| task | expert | steps | random |\n|---|---|---|---|", flush=True)
    for task in given.tasks:
        won, steps = rate(task, given.episodes, given.seed, given.grasp)
        luck = rate(task, given.random, given.seed, given.grasp, False)[0] if given.random else None
        shown = "" if luck is None else f"{luck:.0%}"
        print(f"| {task} | {won:.0%} | {steps:.0f} | {shown} |", flush=True)


def rate(
    task: str, rows: int, seed: int, grasp: str | None, has_expert: bool = True
) -> tuple[float, float]:
    """Return which part of the rows succeeds in its first episode, and after how many steps."""
    envs = maniple.make_vec(task, rows, engine="native", grasp=grasp)
    expert = maniple.expert(task, rows)
    envs.action_space.seed(seed)
    obs, _ = envs.reset(seed=seed)
    has_ended, has_won = np.zeros(rows, bool), np.zeros(rows, bool)
    lengths, step = np.zeros(rows), 0
    while not has_ended.all():
        actions = expert.act(obs) if has_expert else envs.action_space.sample()
        obs, _, terminated, truncated, info = envs.step(actions)
        step += 1
        ends = (terminated | truncated) & ~has_ended
        has_won |= info["success"] & ends
        lengths[ends] = step
        has_ended |= ends
        expert.reset(terminated | truncated)
    envs.close()
    return float(has_won.mean()), float(lengths[has_won].mean()) if has_won.any() else 0.0


if __name__ == "__main__":
    main()
