"""Measure the world-model pipeline: the figures of docs/how-to/world-model.md.

    python bench/world.py planning --teacher RUN --goals 50
    python bench/world.py shifts --teacher RUN --goals 30
    python bench/world.py coverage --teacher RUN --seeds 5 --steps 16000
    python bench/world.py television --teacher RUN --steps 4000
    python bench/world.py adversarial --teacher RUN --iterations 20
    python bench/world.py limits --teacher RUN --iterations 20
    python bench/world.py judge --teacher RUN
    python bench/world.py loading

Each prints JSON lines with the seeds that were used; CPU time, because the machine is shared.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from world_judge import judge
from world_loading import loading
from world_opposed import adversarial, limits
from world_setup import of_teacher, tell

from maniple.run.ranks import Ranks
from maniple.world.config import WorldConfig
from maniple.world.coverage import Coverage
from maniple.world.goal_planner import GoalPlanner
from maniple.world.make import make_envs
from maniple.world.noise import PinkNoise, UniformNoise
from maniple.world.planning import GOALS, Goals, compare
from maniple.world.rounds import play
from maniple.world.source import LiveSource
from maniple.world.student import Student
from maniple.world.teacher_checkpoint import LoadedTeacher, load_teacher


def planning(options: argparse.Namespace) -> None:
    """Goals that noise and experts reached, on seeds that training never saw."""
    teacher = load_teacher(options.teacher)
    envs = make_envs(teacher.config, options.goals, max_episode_steps=1000, perturb={})
    for kind in GOALS:
        goals = Goals(envs, kind, options.seed)
        planner = GoalPlanner(teacher.model, envs.action_spec)
        for name, planned in compare(goals, planner, 60, options.seed).items():
            tell(goal=kind, player=name, seed=options.seed, **planned.summary())
    envs.close()


def shifts(options: argparse.Namespace) -> None:
    """The same goals in worlds that are a little different; goals are pictures of that world."""
    teacher = load_teacher(options.teacher)
    ways = {"none": 0.0, "background": 0.4, "object_colour": 0.5, "light": 0.5, "camera": 0.03,
            "start": 0.3}  # fmt: skip
    for kind, far in ways.items():
        perturb = {kind: far} if far else {}
        envs = make_envs(teacher.config, options.goals, max_episode_steps=1000, perturb=perturb)
        goals = Goals(envs, "pink", options.seed)
        planner = GoalPlanner(teacher.model, envs.action_spec)
        planner.aim(goals.pictures)
        tell(shift=kind, far=far, seed=options.seed, **goals.pursue(planner, 60).summary())
        envs.close()


def coverage(options: argparse.Namespace) -> None:
    """Voxels visited in equally many steps by the explorer, pink noise and random actions."""
    teacher = load_teacher(options.teacher)
    ratios: dict[str, list[float]] = {"random": [], "pink": []}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        config = of_teacher(teacher, seed, options.horizon)
        begin, found = process_time(), {}
        found["mpc"] = _explored(config, teacher, options.steps)
        cpu_s = process_time() - begin
        for name in ("random", "pink"):
            found[name] = _played(config, name, options.steps)
        for name, cells in found.items():
            tell(seed=seed, player=name, steps=options.steps, gripper=cells[0], object=cells[1],
                 **({"cpu_s": cpu_s} if name == "mpc" else {}))  # fmt: skip
        for name, values in ratios.items():
            values.append(found["mpc"][0] / found[name][0])
    for name, values in ratios.items():
        low, high = _interval(values)
        tell(
            mpc_over=name, seeds=options.seeds, ratio=float(np.mean(values)), low95=low, high95=high
        )


def _explored(config: WorldConfig, teacher: LoadedTeacher, steps: int) -> tuple[int, int]:
    source = LiveSource(config)
    student = Student(config, teacher, source.layout, source.action, Ranks())
    _explore(config, source, student, steps)
    return _cells(student.coverage)


def _explore(config: WorldConfig, source: LiveSource, student: Student, steps: int) -> None:
    """Let a student explore for so many steps of all rows."""
    per_round = config.environment.num_envs * config.training.steps_per_episode
    for number in range(steps // per_round):
        student.begin()
        played = play(source.envs, student.player, config.training.steps_per_episode,
                      (100_000 * config.training.seed + number) * 16, source.shapes.names,
                      student.watch)  # fmt: skip
        student.add(played.episodes())
        student.update(1)
    source.close()


def _played(config: WorldConfig, kind: str, steps: int) -> tuple[int, int]:
    """The same rounds, from the same seeds, by noise."""
    envs, rows = make_envs(config), config.environment.num_envs
    length, seen = config.training.steps_per_episode, Coverage()
    for number in range(steps // (rows * length)):
        rng = np.random.default_rng([config.training.seed, number])
        player = _noise(kind, envs.action_spec, rows, length, rng)
        seed = (100_000 * config.training.seed + number) * 16
        play(envs, player, length, seed, (), lambda before, action, after: seen.add(after))
    envs.close()
    return _cells(seen)


def _noise(kind: str, spec: Any, rows: int, length: int, rng: np.random.Generator) -> Any:
    return PinkNoise(spec, rows, length, rng) if kind == "pink" else UniformNoise(spec, rows, rng)


def _cells(seen: Coverage) -> tuple[int, int]:
    return len(seen.cells("gripper")), len(seen.cells("object"))


def _interval(values: list[float]) -> tuple[float, float]:
    """95 % of the mean by Student's t, two-sided, for two to ten values."""
    t = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
    if len(values) < 2:
        return float("nan"), float("nan")
    half = t[len(values)] * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return float(np.mean(values)) - half, float(np.mean(values)) + half


class Television:
    """Environments in whose picture a patch shows noise while the gripper is at its left."""

    def __init__(self, envs: Any, is_on: bool) -> None:
        self._envs, self._is_on = envs, is_on
        self._rng = np.random.default_rng(0)
        self._before: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._envs, name)

    def named(self, obs: Any) -> dict[str, Any]:
        """Show the television in every front picture, and count who stands before it."""
        seen = dict(self._envs.named(obs))
        is_before = seen["tip_pos"][:, 1] > 0.05
        self._before.append(float(is_before.mean()))
        picture = seen["front_rgb"].copy()
        picture[:, :20, :20] = 128
        if self._is_on:
            noise = self._rng.integers(0, 256, (int(is_before.sum()), 20, 20, 3), np.uint8)
            picture[is_before, :20, :20] = noise
        return seen | {"front_rgb": picture}

    def share(self) -> float:
        """Part of the time that was spent before it, in the second half of the run."""
        return float(np.mean(self._before[len(self._before) // 2 :]))


def television(options: argparse.Namespace) -> None:
    """Share of the time before a noisy television, on and off, by what is rewarded."""
    policy = {"algorithm": "ppo", "novelty": 0.0}
    ways = {"mpc": ({}, options.steps), "ppo, disagreement": (policy, options.ppo_steps),
            "ppo, raw error": (policy | {"disagreement": 0.0, "raw_error": 1.0}, options.ppo_steps),
            }  # fmt: skip
    for name, (settings, steps) in ways.items():
        for is_on in (False, True):
            teacher = load_teacher(options.teacher)
            config = of_teacher(teacher, options.seed, options.horizon)
            config = replace(config, student=replace(config.student, **settings))
            if settings:
                # A policy learns over many rounds, and its heads with it.
                config = replace(config, training=replace(config.training, updates_per_episode=10))
            source, begin = LiveSource(config), process_time()
            source.envs = Television(source.envs, is_on)
            student = Student(config, teacher, source.layout, source.action, Ranks())
            _explore(config, source, student, steps)
            tell(reward=name, is_on=is_on, steps=steps, seed=options.seed,
                 share=source.envs.share(), cpu_s=process_time() - begin)  # fmt: skip


RUNS = {
    run.__name__: run
    for run in (
        planning,
        shifts,
        coverage,
        television,
        adversarial,
        limits,
        judge,
        loading,
    )
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*RUNS])
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--goals", type=int, default=50)
    parser.add_argument("--seed", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--steps", type=int, default=16_000)
    parser.add_argument("--ppo-steps", type=int, default=64_000)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--horizon", type=int, help="steps that explorers plan ahead")
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--policies", type=int, default=12)
    parser.add_argument("--episodes", type=int, default=48)
    chosen = parser.parse_args()
    RUNS[chosen.what](chosen)
