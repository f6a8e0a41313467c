"""Compare native stepping with Gymnasium's vector environments, all in one run.

Every figure is env-steps per second of the very same environment class. The engines take turns,
so that a neighbour on the machine slows all of them down alike; medians are told.

    python bench/peers.py --num-envs 8 64 256
"""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import json
import resource
import statistics
from functools import partial
from time import perf_counter

import mujoco
import numpy as np

import maniple
from maniple.cli.bench.limit import RawPhysics
from maniple.cli.bench.peers import gymnasium_async, gymnasium_sync, single
from maniple.cli.bench.rate import env_steps_per_s
from maniple.core.rank import Rank

TASK = "LeRobot-v0"


def raw_python_loop(steps: int) -> float:
    """The loop that people write by hand: mj_step, then the same observation and reward."""
    env = maniple.make(TASK).unwrapped
    model, target = env._group.model, np.array([0.0, 0.0, 1.1])
    data, tip_site = mujoco.MjData(model), model.site("tip").id
    actions = np.random.default_rng(0).uniform(-1, 1, (64, model.nu))
    start = perf_counter()
    for k in range(steps):
        data.ctrl[:] = actions[k % 64]
        mujoco.mj_step(model, data)
        tip = data.site_xpos[tip_site]
        obs = {
            "qpos": np.clip(data.qpos, -3, 3),
            "qvel": np.clip(data.qvel, -10, 10),
            "actuator_force": np.clip(data.actuator_force, -3.35, 3.35),
            "gripper_pos": np.clip(tip, -1.5, 1.5),
        }
        reward = float(np.exp(-np.sum((tip - target) ** 2) / 0.2))
    del obs, reward
    return steps / (perf_counter() - start)


def compare(num_envs: int, turns: int, with_async: bool) -> dict[str, float]:
    """Take turns between ours, the peers and the raw physics."""
    makers = {"native": lambda: maniple.make_vec(TASK, num_envs)}
    if with_async:
        makers["gymnasium async"] = lambda: gymnasium_async(partial(single, TASK), num_envs)
        makers["gymnasium async, no copy"] = lambda: gymnasium_async(
            partial(single, TASK), num_envs, copy=False
        )
        makers["gymnasium sync"] = lambda: gymnasium_sync(partial(single, TASK), num_envs)
    envs = {name: make() for name, make in makers.items()}
    physics = RawPhysics(TASK, 200, Rank.here().num_cpus())
    rates: dict[str, list[float]] = {name: [] for name in [*envs, "raw physics"]}
    if num_envs == 1:
        rates["raw Python loop"] = []
    try:
        for env in envs.values():
            env.reset(seed=0)
        for _ in range(turns):
            rates["raw physics"].append(physics.env_steps_per_s())
            if num_envs == 1:
                rates["raw Python loop"].append(raw_python_loop(5000))
            for name, env in envs.items():
                few = "async" in name or "sync" in name
                steps = max(20, (4000 if few else 16000) // num_envs)
                rates[name].append(env_steps_per_s(env, steps))
    finally:
        for env in envs.values():
            env.close()
    return {name: statistics.median(values) for name, values in rates.items()}


def growth(counts: list[int]) -> list[dict[str, float]]:
    """Cost and memory per environment as their number grows, native engine."""
    table = []
    for count in counts:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        envs = maniple.make_vec(TASK, count)
        envs.reset(seed=0)
        rate = statistics.median(env_steps_per_s(envs, max(10, 20000 // count)) for _ in range(3))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        envs.close()
        del envs
        # The high-water mark only tells of this count while counts grow.
        table.append(
            {
                "num_envs": count,
                "us_per_env_step": round(1e6 / rate, 2),
                "kb_per_env": round((after - before) / count, 1),
            }
        )
    return table


def main() -> None:
    """Print tables and a last line of JSON."""
    parser = argparse.ArgumentParser(description="Native stepping beside peers.")
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--most-async", type=int, default=256)
    options = parser.parse_args()
    answer: dict[str, object] = {}
    for count in options.num_envs:
        rates = compare(count, options.turns, with_async=count <= options.most_async)
        answer[str(count)] = rates
        print(f"\n{TASK} x {count}")
        for name, rate in sorted(rates.items(), key=lambda item: -item[1]):
            ratio = rates["native"] / rate
            print(f"  {name:<26} {rate:>10,.0f} env-steps/s   native is {ratio:.2f}x")
    answer["growth"] = growth([16, 64, 256, 1024, 4096])
    print("\n  num_envs   us per env-step   KB per env")
    for row in answer["growth"]:
        print(f"  {row['num_envs']:>8}   {row['us_per_env_step']:>15}   {row['kb_per_env']:>10}")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
