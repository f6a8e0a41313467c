"""Turn a step's actions into motion: at once, smoothly, or along a planned path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.core.step import StepArrays, scalar
from maniple.envs.config import EnvConfig
from maniple.envs.task import Task
from maniple.sim.control.control import Control, ControlContext, make_control
from maniple.sim.simulation import Simulation
from maniple.sim.state import State


class Motion:
    """A task's controller, what it makes the servos do, and the actions that it refused."""

    def __init__(
        self, task: Task, config: EnvConfig, sim: Simulation, state: State, threads: int
    ) -> None:
        context = ControlContext(
            model=sim.model,
            robot=task.robot,
            base=task.base,
            rows=sim.rows,
            threads=threads,
            step_s=sim.model.opt.timestep * task.substeps,
            ee_step_m=task.ee_step_m,
            low_m=task.ee_low_m,
            high_m=task.ee_high_m,
        )
        self.control: Control = make_control(config.control or task.control, context)
        self.sim = sim
        self.ctrl = state.ctrl
        self._task = task
        self._state = state
        self._ramp = task.ramp if len(task.ramp) > 1 else ()
        self._has_after_step = type(task).after_step is not Task.after_step
        self._invalid = self.control.invalid
        self._invalid_count = np.zeros(sim.rows, np.int64)
        self._penalty = config.invalid_penalty

    @property
    def accepted(self) -> ArraySpec:
        """What an action may be: a controller that can say "invalid" takes any finite number."""
        spec = self.control.action
        if self._invalid is None:
            return spec
        return ArraySpec(spec.shape, spec.dtype, meaning=spec.meaning)

    @property
    def extras(self) -> dict[str, ArraySpec]:
        """Arrays that `write` fills for every row."""
        if self._invalid is None:
            return {}
        # The count is of the episode so far: a chunk shows only its last step's flag.
        return {"invalid_action": scalar(np.bool_), "invalid_actions": scalar(np.int64)}

    def begin(self, rows: NDArray[np.intp] | int, refused: int = 0) -> None:
        """Reset the count of refused actions in rows that begin an episode, or restore it."""
        if self._invalid is not None:
            self._invalid[rows] = False
        self._invalid_count[rows] = refused

    def refused(self, row: int) -> int:
        """How many actions of this episode were refused."""
        return int(self._invalid_count[row])

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None) -> None:
        """Let the active rows (None: all) carry out one action each."""
        self.control.execute(actions, active, self)
        if self._has_after_step:
            self._task.after_step(self._state, active)
        if self._invalid is not None:
            if active is not None:
                self._invalid &= active
            self._invalid_count += self._invalid

    def rest(self, active: NDArray[np.bool_]) -> None:
        """Let the active rows go on for one step without an action: the servos hold."""
        self.sim.step(active)
        if self._has_after_step:
            self._task.after_step(self._state, active)

    def step_to(self, targets: NDArray, active: NDArray[np.bool_] | None) -> None:
        """Give the active rows (None: all) new servo targets, and take one control step."""
        ctrl = self.ctrl
        before = ctrl.copy() if self._ramp else ctrl
        if active is None:
            ctrl[:] = targets
        else:
            ctrl[active] = targets[active]
        if not self._ramp:
            self.sim.step(active)
            return
        after = ctrl.copy()
        for part in self._ramp:
            ctrl[:] = after if part == 1.0 else before + part * (after - before)
            self.sim.step(active, self.sim.substeps // len(self._ramp))

    def follow(self, paths: list[NDArray], period_s: float) -> None:
        """Give each row its servo targets (steps, nu) one after the other, until it succeeds."""
        state, task = self._state, self._task
        lengths = np.array([len(path) for path in paths])
        was_solved = task.success(state).copy()
        substeps = round(period_s / self.sim.model.opt.timestep)
        for k in range(int(lengths.max())):
            moving = lengths > k
            for row in np.flatnonzero(moving):
                self.ctrl[row] = paths[row][k]
            self.sim.step(moving, substeps)
            if self._has_after_step:
                task.after_step(state, moving)
            lengths = np.where(task.success(state) & ~was_solved, 0, lengths)

    def write(self, out: StepArrays) -> None:
        """Write which actions were refused, and subtract the penalty."""
        if self._invalid is None:
            return
        out.extras.arrays["invalid_action"][...] = self._invalid
        out.extras.arrays["invalid_actions"][...] = self._invalid_count
        if self._penalty:
            out.reward -= self._penalty * self._invalid
