"""Measure how well planning in a world model reaches goal pictures."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.registry import expert
from maniple.world.adapter import StudentAdapter
from maniple.world.coverage import GRIPPERS
from maniple.world.goal_planner import GoalPlanner
from maniple.world.noise import PinkNoise, UniformNoise

GOAL_STEPS = 40
"""Steps that are played to make a goal."""
GOALS = ("pink", "expert")


@dataclass(frozen=True)
class Planned:
    """How far from their goals rows ended."""

    start_m: NDArray
    """Distance at the beginning, (rows,)."""
    final_m: NDArray
    closest_m: NDArray
    ms_per_decision: float
    """CPU time of one row's decision."""

    def within(self, metres: float) -> float:
        """Part of the rows that ended closer than this."""
        return float((self.final_m < metres).mean())

    def summary(self) -> dict[str, float]:
        """The figures that are published."""
        return {
            "goals": len(self.final_m),
            "start_median_cm": 100 * float(np.median(self.start_m)),
            "final_median_cm": 100 * float(np.median(self.final_m)),
            "within_3cm": self.within(0.03),
            "within_5cm": self.within(0.05),
            "ever_within_3cm": float((self.closest_m < 0.03).mean()),
            "ms_per_decision": self.ms_per_decision,
        }


class Goals:
    """Pictures of where an arm ended, and episodes that begin as those did."""

    def __init__(self, envs: Any, kind: str, seed: int) -> None:
        """Play to the goals.

        Args:
            envs: Environments with autoreset disabled, a row for each goal.
            kind: pink (where noise led) or expert (where the scripted expert went).
        """
        self.envs, self._seed, rows = envs, seed, envs.num_envs
        if kind not in GOALS:
            raise BadConfig(f"goal is {kind!r}; it may be one of: {', '.join(GOALS)}.")
        rng = np.random.default_rng(seed)
        player: StudentAdapter = PinkNoise(envs.action_spec, rows, GOAL_STEPS, rng)
        if kind == "expert":
            player = expert(envs.spec.id if envs.spec else "", rows)
        obs, _ = envs.reset(seed=seed)
        player.reset(np.ones(rows, np.bool_))
        seen = envs.named(obs)
        self._gripper = next((n for n in GRIPPERS if n in seen), None)
        if self._gripper is None:
            raise BadConfig("This task does not tell where the gripper is: nothing to measure.")
        self.start = seen[self._gripper][:, :3].copy()
        for _ in range(GOAL_STEPS):
            obs, *_ = envs.step(np.asarray(player.act(seen), envs.action_spec.dtype))
            seen = envs.named(obs)
        self.pictures = {n: a.copy() for n, a in seen.items()}
        self.place = seen[self._gripper][:, :3].copy()

    def pursue(self, player: StudentAdapter, steps: int) -> Planned:
        """Begin again and let a player pursue the goals."""
        obs, _ = self.envs.reset(seed=self._seed)
        rows = self.envs.num_envs
        player.reset(np.ones(rows, np.bool_))
        gaps, spent = [], 0.0
        for _ in range(steps):
            seen = self.envs.named(obs)
            begin = process_time()
            action = np.asarray(player.act(seen), self.envs.action_spec.dtype)
            spent += process_time() - begin
            obs, *_ = self.envs.step(action)
            at = self.envs.named(obs)[self._gripper][:, :3]
            gaps.append(np.linalg.norm(at - self.place, axis=1))
        return Planned(
            np.linalg.norm(self.start - self.place, axis=1), gaps[-1], np.min(gaps, axis=0),
            1e3 * spent / steps / rows,
        )  # fmt: skip


def compare(goals: Goals, planner: GoalPlanner, steps: int, seed: int) -> dict[str, Planned]:
    """Let the planner and two kinds of noise pursue the same goals."""
    spec, rows = goals.envs.action_spec, goals.envs.num_envs
    rng = np.random.default_rng([seed, 1])
    planner.aim(goals.pictures)
    return {
        "planner": goals.pursue(planner, steps),
        "random": goals.pursue(UniformNoise(spec, rows, rng), steps),
        "pink": goals.pursue(PinkNoise(spec, rows, steps, rng), steps),
    }
