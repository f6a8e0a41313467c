"""Rank policies in a world model and in the simulator."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from world_setup import of_teacher, tell

from maniple.registry import expert
from maniple.run.evaluation import evaluate
from maniple.world.make import make_envs
from maniple.world.quality import spearman
from maniple.world.source import LiveSource
from maniple.world.teacher_checkpoint import load_teacher


def judge(options: argparse.Namespace) -> None:
    """Rank experts that were made worse by degrees, in the model and in the simulator."""
    from maniple.world.env import WorldModelEnv

    teacher = load_teacher(options.teacher)
    config = of_teacher(teacher, 0)
    source = LiveSource(config)
    starts = {n: source.held_out().arrays[f"obs.{n}"] for n in teacher.shapes.names}
    first = source.held_out().arrays["age"] == 0
    starts = {name: array[first] for name, array in starts.items()}
    source.close()
    steps, rows = config.training.steps_per_episode, 16
    real = make_envs(config, rows, autoreset_mode="NextStep", terminate_on_success=True)
    imagined = WorldModelEnv(teacher.model, real.layout, real.action_spec, starts, rows, steps)
    for name, (make, degrees) in FAMILIES.items():
        inside, outside = [], []
        for degree in np.linspace(degrees[0], degrees[1], options.policies):
            scores = []
            for envs in (real, imagined):
                act = make(config.environment.task, rows, float(degree), envs.action_spec)
                scores.append(evaluate(envs, act, options.episodes, 4_000_000).success_rate)
            outside.append(scores[0])
            inside.append(scores[1])
            tell(family=name, degree=float(degree), simulator=scores[0], model=scores[1])
        _tell_correlation(name, np.array(inside), np.array(outside))
    real.close()


def _tell_correlation(family: str, inside: Any, outside: Any) -> None:
    if np.ptp(inside) == 0 or np.ptp(outside) == 0:
        tell(family=family, pearson=None, why="one of the two gives every policy the same score")
        return
    r = float(np.corrcoef(inside, outside)[0, 1])
    z, half = np.arctanh(np.clip(r, -0.9999, 0.9999)), 1.96 / np.sqrt(len(inside) - 3)
    between = int(((outside >= 0.2) & (outside <= 0.8)).sum())
    tell(family=family, policies=len(inside), pearson=r, low95=float(np.tanh(z - half)),
         high95=float(np.tanh(z + half)), spearman=spearman(inside, outside),
         between_20_and_80=between)  # fmt: skip


def _trembling(task: str, rows: int, noise: float, spec: Any) -> Callable:
    """An expert whose actions get noise."""
    scripted, rng = expert(task, rows), np.random.default_rng(3)

    def act(obs: Any) -> Any:
        action = scripted.act(obs) + noise * rng.normal(size=(rows, *spec.shape))
        return np.clip(action, *spec.bounds()).astype(spec.dtype)

    return act


def _mistaken(task: str, rows: int, off_m: float, spec: Any) -> Callable:
    """An expert that takes the target to be `off_m` metres from where it is, and trembles."""
    way = np.random.default_rng(4).normal(size=(rows, 3))
    off = off_m * way / np.linalg.norm(way, axis=1, keepdims=True)
    trembling = _trembling(task, rows, 0.3, spec)
    return lambda obs: trembling({**obs, "target_pos": obs["target_pos"] + off})


FAMILIES = {"trembling": (_trembling, (0.0, 8.0)), "mistaken": (_mistaken, (0.022, 0.044))}
"""Policies that get worse by degrees, and the range of degrees. All of them are told.

The ranges were chosen by the simulator's scores alone: where it tells policies apart.
"""
