"""Turn a step's actions into motion: at once, smoothly, or along a planned way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.core.step import StepArrays, scalar
from maniple.envs.config import EnvConfig
from maniple.envs.control import choose_control
from maniple.envs.task import Task
from maniple.sim.control.planning import Planning
from maniple.sim.simulation import Simulation
from maniple.sim.state import State


class Motion:
    """A task's controller, what it makes the servos do, and the actions that it refused."""

    def __init__(
        self, task: Task, config: EnvConfig, sim: Simulation, state: State, threads: int
    ) -> None:
        self.control = choose_control(task, config, sim.model, sim.rows, threads)
        self._task = task
        self._sim = sim
        self._state = state
        self._planning = self.control if isinstance(self.control, Planning) else None
        self._ramp = task.ramp if len(task.ramp) > 1 else ()
        self._notices = type(task).notice is not Task.notice
        self._invalid: NDArray[np.bool_] | None = getattr(self.control, "invalid", None)
        self._invalid_count = np.zeros(sim.rows, np.int64)
        self._penalty = config.invalid_penalty

    @property
    def accepted(self) -> ArraySpec:
        """What an action may be: a controller that can say "invalid" takes any finite number."""
        spec = self.control.action
        return spec if self._invalid is None else ArraySpec(spec.shape, spec.dtype)

    @property
    def extras(self) -> dict[str, ArraySpec]:
        """What `write` tells of every row."""
        if self._invalid is None:
            return {}
        # The count is of the episode so far: a chunk shows only its last step's flag.
        return {"invalid_action": scalar(np.bool_), "invalid_actions": scalar(np.int64)}

    def begin(self, rows: NDArray[np.intp] | int, refused: int = 0) -> None:
        """Forget what was refused in the episodes before; go on with a count of this one's."""
        if self._invalid is not None:
            self._invalid[rows] = False
        self._invalid_count[rows] = refused

    def refused(self, row: int) -> int:
        """How many actions of this episode were refused."""
        return int(self._invalid_count[row])

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None) -> None:
        """Let the active rows (None: all) carry out one action each."""
        ctrl = self._state.ctrl
        before = ctrl.copy() if self._ramp else ctrl
        if active is None:
            ctrl[:] = self.control.command(actions, ctrl)
        else:
            ctrl[active] = self.control.command(actions, ctrl)[active]
        if self._planning is not None:
            self._play(self._planning, actions, active)
        elif self._ramp:
            self._step_smoothly(before, active)
        else:
            self._sim.step(active)
        if self._notices:
            self._task.notice(self._state, active)
        if self._invalid is not None:
            if active is not None:
                self._invalid &= active
            self._invalid_count += self._invalid

    def write(self, out: StepArrays) -> None:
        """Tell which actions were refused, and take off what that costs."""
        if self._invalid is None:
            return
        out.extras.arrays["invalid_action"][...] = self._invalid
        out.extras.arrays["invalid_actions"][...] = self._invalid_count
        if self._penalty:
            out.reward -= self._penalty * self._invalid

    def _step_smoothly(self, before: NDArray, active: NDArray[np.bool_] | None) -> None:
        """Step in parts, the servo targets going from `before` to what was commanded."""
        ctrl = self._state.ctrl
        after = ctrl.copy()
        for part in self._ramp:
            ctrl[:] = after if part == 1.0 else before + part * (after - before)
            self._sim.step(active, self._sim.substeps // len(self._ramp))

    def _play(self, control: Planning, actions: NDArray, active: NDArray[np.bool_] | None) -> None:
        """Let every row go its whole way, or until it succeeds on it."""
        state, task = self._state, self._task
        ways = control.ways(actions, state.ctrl, self._sim, active)
        lengths = np.array([len(way) for way in ways])
        was_solved = task.success(state).copy()
        substeps = round(control.period_s / self._sim.model.opt.timestep)
        for k in range(int(lengths.max())):
            moving = lengths > k
            for row in np.flatnonzero(moving):
                state.ctrl[row] = ways[row][k]
            self._sim.step(moving, substeps)
            if self._notices:
                task.notice(state, moving)
            lengths = np.where(task.success(state) & ~was_solved, 0, lengths)
