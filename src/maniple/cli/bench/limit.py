"""maniple bench limit: how fast the physics alone is, in the same unit as bench."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Options:
    """What to measure."""

    task: str = "LeRobot-v0"
    """A task of 'maniple list'."""

    steps: int = 500
    """Control steps of each row."""

    threads: int | None = None
    """Threads; None: all cores that this rank may use."""

    repeats: int = 3
    """Measurements, of which the median is reported."""

    json: bool = False
    """Print one JSON object instead of a line."""


def run(options: Options) -> dict[str, Any]:
    """Measure, print, return."""
    from maniple.core.rank import Rank

    threads = options.threads or Rank.here().num_cpus()
    physics = RawPhysics(options.task, options.steps, threads)
    rates = [physics.env_steps_per_s() for _ in range(options.repeats)]
    limit = float(np.median(rates))
    answer = {
        "task": options.task,
        "threads": threads,
        "env_steps_per_s": round(limit, 1),
        "us_per_env_step": round(1e6 / limit, 3),
        "all_env_steps_per_s": [round(rate, 1) for rate in rates],
    }
    if not options.json:
        print(
            f"{options.task}: MuJoCo alone makes {answer['env_steps_per_s']:,.0f} env-steps/s "
            f"on {threads} threads. Compare with 'maniple bench --task {options.task}'."
        )
    return answer


class RawPhysics:
    """Rows of a task's model stepped in C, each thread one row at a time: nothing is faster.

    The rows begin where the task begins and get controls like those of `bench`, one per control
    step. No observation, reward, check or copy is made.
    """

    def __init__(self, task: str, steps: int, threads: int) -> None:
        from mujoco import MjData

        from maniple.registry import recipe

        group = recipe(task, {}).group(1, 1)
        group.reset(np.arange(1), [0])
        self._model = group.model
        self._threads = threads
        self._env_steps = 8 * threads * steps
        self._start = _initial_states(group, 8 * threads)
        self._control = _controls(group, 8 * threads, steps)
        self._datas = [MjData(group.model) for _ in range(threads)]

    def env_steps_per_s(self) -> float:
        """Run all rows once."""
        from mujoco.rollout import Rollout

        with Rollout(nthread=self._threads if self._threads > 1 else 0) as rollout:
            began = perf_counter()
            rollout.rollout(self._model, self._datas, self._start, self._control)
            return self._env_steps / (perf_counter() - began)


def _controls(group: Any, rows: int, steps: int) -> np.ndarray:
    """Servo targets as the task's controller makes them of random actions, per substep."""
    rng = np.random.default_rng(0)
    spec, space = group.contract.action["action"], group.contract.action_space
    ctrl = np.empty((rows, steps, group.model.nu))
    for row in range(rows):
        now = group.state.ctrl.copy()
        for k in range(steps):
            action = rng.uniform(space.low, space.high).astype(spec.dtype)[None]
            now = group.motion.control.command(action, now)
            ctrl[row, k] = now[0]
    return np.repeat(ctrl, group.sim.substeps, axis=1)


def _initial_states(group: Any, rows: int) -> np.ndarray:
    import mujoco

    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(group.model, kind))
    mujoco.mj_getState(group.model, group.sim.data(0), state, kind)
    return np.repeat(state[None], rows, axis=0)
