"""Run a batched task in many rows: place, step, observe, reward, notice faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, closest
from maniple.core.group import Contract
from maniple.core.seeds import SeedTree
from maniple.core.space import box, dict_space
from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import StepArrays, scalar
from maniple.envs.config import EnvConfig
from maniple.envs.task import Task
from maniple.sim.batch import Sim
from maniple.sim.control.control import Control
from maniple.sim.control.endeffector import EndEffector
from maniple.sim.control.joint import DeltaJoint, Joint, RawJoint
from maniple.sim.randomise import Randomiser
from maniple.sim.scene import compile_model
from maniple.sim.state import State


@dataclass(frozen=True)
class TaskRecipe:
    """A task and its settings, from which any process makes a group."""

    task: type[Task]
    config: EnvConfig = field(default_factory=EnvConfig)

    def contract(self) -> Contract:
        """Describe the environment by building one row and letting it go."""
        group = self.group(1, 1)
        group.close()
        return group.contract

    def group(self, num_envs: int, threads: int, rank: int = 0, first_row: int = 0) -> TaskGroup:
        """Build rows `first_row` and following."""
        return TaskGroup(self.task(), self.config, num_envs, threads, rank, first_row)


class TaskGroup:
    """Rows of one task in one batch."""

    def __init__(
        self,
        task: Task,
        config: EnvConfig,
        num_envs: int,
        threads: int,
        rank: int = 0,
        first_row: int = 0,
    ) -> None:
        self.task = task
        self.config = config
        self.rows = num_envs
        self.first_row = first_row
        self.model = build_model(task)
        self.sim = Sim(self.model, num_envs, threads, task.substeps * config.action_repeat)
        self.state = State(self.sim)
        self.seeds = SeedTree(num_envs, rank)
        self.elapsed = np.zeros(num_envs, np.int64)
        self.control = _control(task, config, self.model, num_envs, threads)
        self.randomiser = Randomiser(self.sim, task.randomisation) if config.randomize else None
        self._limit = config.max_episode_steps or task.episode_steps
        self._is_sparse = config.reward == "sparse"
        self._ends = task.has_success and config.terminate_on_success
        self._held: dict[int, dict[str, NDArray]] = {}
        self._remarks: dict[int, dict[str, Any]] = {}
        self._actions: NDArray | None = None
        self._renderer: Any = None
        self.sim.settle(np.arange(num_envs))
        self.contract = self._describe()
        self._out = self._previous = StepArrays(
            self.contract.observation, self.contract.extras, num_envs
        )
        self._bounds = list(self._out.obs.bounds().items())

    def bind(self, arrays: StepArrays) -> None:
        """Write into these arrays from now on."""
        self._previous, self._out = self._out, arrays

    def reset(
        self, rows: NDArray[np.intp], seeds: Sequence[int | None], options: dict | None = None
    ) -> None:
        """Begin a new episode in `rows`."""
        if options:
            raise BadConfig(f"reset() got unknown options {sorted(options)}; it takes reset_mask.")
        rng = self.seeds.start(rows, seeds)
        self.sim.clear(rows)
        self._home(rows)
        if self.randomiser:
            self.randomiser.draw(rows, rng)
        self.state.put(rows, self.task.place(rng))
        self.sim.settle(rows)
        self.elapsed[rows] = 0
        for row in rows if self._held else ():
            self._held.pop(int(row), None)

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None = None) -> None:
        """Step the active rows (None: all)."""
        ctrl = self.state.ctrl
        if active is None:
            ctrl[:] = self.control.command(actions, ctrl)
            self.elapsed += 1
        else:
            ctrl[active] = self.control.command(actions, ctrl)[active]
            self.elapsed += active
        self._actions = actions
        self.sim.step(active)
        faults = self.sim.faults()
        if faults:
            self._fail(faults)

    def report(self) -> None:
        """Write what every row looks like, taking rows with NaN in them out of service."""
        self._write()
        if not self._is_finite():
            self._fail(self._nonfinite_rows())
            self._write()

    def infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the faults since the last call."""
        remarks, self._remarks = self._remarks, {}
        return remarks

    def row(self, row: int) -> Any:
        """Return a handle on one row."""
        from maniple.envs.row import Row

        return Row(self, row)

    def renderer(self) -> Any:
        """Return the painter of this group's rows, made on first use."""
        if self._renderer is None:
            from maniple.sim.camera import painter

            self._renderer = painter(
                self.model, self.config.width, self.config.height, quality="fine"
            )
        return self._renderer

    def close(self) -> None:
        """Let go of the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _write(self) -> None:
        """Derive observations, rewards and flags of every row from its present state."""
        out, state, task = self._out, self.state, self.task
        arrays = out.obs.arrays
        for name, value in task.observe(state).items():
            arrays[name][...] = value
        for dtype, (low, high) in self._bounds:
            packed = out.obs.packed[dtype]
            np.maximum(packed, low, out=packed)
            np.minimum(packed, high, out=packed)
        extras = out.extras.arrays
        if task.has_success:
            success = extras["success"]
            success[...] = task.success(state)
            if self._ends:
                out.terminated[:] = success
        if self._is_sparse:
            out.reward[:] = extras["success"]
        else:
            out.reward[:] = 0.0
            for name, term in task.terms(state).items():
                extras[f"terms.{name}"][...] = term
                out.reward += term * task.scales[name]
        if self._limit is not None:
            np.greater_equal(self.elapsed, self._limit, out=out.truncated)
        if self._held:
            self._hold()

    def _hold(self) -> None:
        """Show failed rows as ended, with the last good observation."""
        out = self._out
        for row, values in self._held.items():
            out.obs.put(row, values)
            out.reward[row] = 0.0
            out.terminated[row], out.truncated[row] = False, True

    def _fail(self, faults: dict[int, str]) -> None:
        """Take rows out of service until their next reset, leaving the others alone."""
        rows = np.array(sorted(faults))
        for row, why in faults.items():
            self._held[row] = self._previous.obs.take(row)
            self._remarks[row] = {
                "env_error": f"row {self.first_row + row}: {why}; seed {self.seeds.seed[row]}, "
                f"episode {self.seeds.episode[row]}, step {self.elapsed[row]}, "
                f"last action {self._last_action(row)}"
            }
        self.sim.clear(rows)
        self._home(rows)
        self.sim.settle(rows)

    def _last_action(self, row: int) -> str:
        if self._actions is None:
            return "none yet"
        return np.array2string(self._actions[row], precision=4, separator=", ")

    def _is_finite(self) -> bool:
        # A sum is NaN or infinite if any of its parts is: one pass, no temporary.
        total = float(np.add.reduce(self._out.reward))
        for array in self._out.obs.packed.values():
            if array.dtype.kind == "f":
                total += float(np.add.reduce(array, axis=None))
        return isfinite(total)

    def _nonfinite_rows(self) -> dict[int, str]:
        bad = {int(r): "the reward is not finite" for r in _rows_with_nan(self._out.reward)}
        for name, array in self._out.obs.arrays.items():
            if array.dtype.kind == "f":
                for row in _rows_with_nan(array):
                    bad[int(row)] = f"the observation {name!r} is not finite"
        return {row: why for row, why in bad.items() if row not in self._held}

    def _home(self, rows: NDArray[np.intp]) -> None:
        robot = self.task.robot
        names = (*robot.joints, robot.gripper)
        home = np.repeat(np.array(robot.home)[None], len(rows), axis=0)
        self.state.put(rows, {name: home[:, k] for k, name in enumerate(names)})
        self.state.ctrl[rows[:, None], [self.model.actuator(n).id for n in names]] = home

    def _describe(self) -> Contract:
        task = self.task
        extras: dict[str, ArraySpec] = {"success": scalar(np.bool_)} if task.has_success else {}
        if self._is_sparse and not task.has_success:
            raise BadConfig(f"{type(task).__name__} has no success, so no sparse reward.")
        if not self._is_sparse:
            for name in task.terms(self.state):
                if name not in task.scales:
                    raise BadConfig(
                        f"{type(task).__name__}.scales lacks the reward term {name!r}."
                        f"{closest(name, task.scales)}"
                    )
                extras[f"terms.{name}"] = scalar()
        observation = Layout(
            {
                name: ArraySpec(
                    value.shape[1:],
                    np.dtype(task.observation_dtype),
                    *task.bounds.get(name, (-np.inf, np.inf)),
                )
                for name, value in task.observe(self.state).items()
            }
        )
        return Contract(
            observation=observation,
            action=Layout({"action": self.control.action}),
            extras=Layout(extras),
            observation_space=dict_space(observation),
            action_space=box(self.control.action),
            metadata={
                "render_modes": ["rgb_array", "human"],
                "render_fps": round(1 / (self.model.opt.timestep * self.sim.substeps)),
            },
            render_mode=self.config.render_mode,
            clip_actions=self.config.clip_actions,
        )


def build_model(task: Task) -> mujoco.MjModel:
    """Compose and compile a task's scene."""
    spec = task.spec()
    task.robot.add(spec, task.base)
    task.scene(spec)
    return compile_model(spec)


def _control(
    task: Task, config: EnvConfig, model: mujoco.MjModel, rows: int, threads: int
) -> Control:
    kind = config.control or task.control
    if kind == "raw":
        return RawJoint(model)
    if kind == "joint":
        return Joint(model)
    if kind == "delta_joint":
        return DeltaJoint(model)
    return EndEffector(
        model, task.robot, task.base, rows, threads, task.ee_step_m, task.ee_low_m, task.ee_high_m
    )


def _rows_with_nan(array: NDArray) -> NDArray[np.intp]:
    return np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
