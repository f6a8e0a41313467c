"""Compare what it costs to host somebody's environment and to move its observations.

Every engine hosts the very same class, one environment per row. They take turns in one run, each
in a process group of its own that is stopped between its turns; medians are told. PufferLib takes
part where it can be imported, at the best of its settings.

    python bench/transport.py
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import psutil

import maniple
from maniple.cli.bench.contender import Contender
from maniple.cli.bench.interleave import Result, interleave
from maniple.cli.bench.peers import TYPE_THIS, is_installed, single

NUM_ENVS = 8
HOSTED = {
    "60 floats": "hosted:Floats",
    "two 256x256 pictures": "hosted:Pictures",
    "LeRobot-v0": "hosted:lerobot",
}
LENT = "hosted:LentPictures"
"""Draws into our slab; nobody else lends memory."""


def contenders(env: str) -> list[Contender]:
    """Who hosts this environment."""
    who = [Contender(env, "gymnasium", "async, no copy", NUM_ENVS)]
    if is_installed("pufferlib"):
        who += [Contender(env, "pufferlib", "serial", NUM_ENVS)]
        who += [Contender(env, "pufferlib", "multiprocessing", NUM_ENVS, w) for w in (1, 2)]
    who += mine(env)
    return who + mine(LENT) if env == "hosted:Pictures" else who


def mine(env: str) -> list[Contender]:
    """Our settings; views instead of copies, as the peers return them."""
    settings = [(workers, chunk) for chunk in (1, 16) for workers in (1, 2)]
    return [
        Contender(env, "process", "process", NUM_ENVS, workers, chunk, is_copied=False)
        for workers, chunk in settings
    ]


def compare(title: str, env: str, turns: int, seconds: float) -> dict[str, Any]:
    """Print microseconds per env-step of everybody; return the best of each and the ratios."""
    print(f"\n{title}, {NUM_ENVS} envs: microseconds per env-step")
    cost: dict[str, float] = {}
    for one in interleave(contenders(env), turns, 10**9, seconds):
        where = f"{one.contender.engine} {one.contender.setting}".strip()
        where += ", lent memory" if one.contender.task == LENT else ""
        if one.failure:
            print(f"  {where:<48} {one.failure}")
            continue
        us = 1e6 / one.env_steps_per_s
        cost[group_of(one)] = min(us, cost.get(group_of(one), us))
        print(f"  {where:<48} {us:>9.2f}")
    ratios = {
        f"{peer} / {our}": round(cost[peer] / cost[our], 2)
        for peer in cost
        if not peer.startswith("process")
        for our in cost
        if our.startswith("process")
    }
    for name, ratio in ratios.items():
        print(f"    {name:<46} {ratio:>9.2f}x")
    return {"us_per_env_step": {k: round(v, 3) for k, v in cost.items()}, "ratios": ratios}


def group_of(one: Result) -> str:
    """Name whose best setting this one competes for."""
    if one.contender.engine != "process":
        return one.contender.engine
    lent = ", lent" if one.contender.task == LENT else ""
    return f"process K={one.contender.action_chunk}{lent}"


def idle_cpu_percent(seconds: float = 3.0) -> float:
    """CPU use of a process engine that nobody steps, all its processes and this one, of a core."""
    envs = maniple.make_vec(partial(single, "LeRobot-v0"), NUM_ENVS, engine="process", workers=2)
    try:
        envs.reset(seed=0)
        for _ in range(100):
            envs.step(envs.action_space.sample())
        sleep(0.5)
        before = _cpu_s()
        sleep(seconds)
        return 100 * (_cpu_s() - before) / seconds
    finally:
        envs.close()


def _cpu_s() -> float:
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(time.user + time.system for time in times)


def main() -> None:
    """Print tables and a last line of JSON."""
    parser = argparse.ArgumentParser(description="The cost of hosting an environment.")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    # The contenders' processes find hosted.py where this script is.
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if not is_installed("pufferlib"):
        print(f"pufferlib is not installed. Type: {TYPE_THIS['pufferlib']}")
    answer: dict[str, Any] = {
        title: compare(title, env, options.turns, options.seconds) for title, env in HOSTED.items()
    }
    answer["idle_cpu_percent"] = round(idle_cpu_percent(), 2)
    print(f"\nCPU of an idle process engine: {answer['idle_cpu_percent']:.2f} % of a core")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
