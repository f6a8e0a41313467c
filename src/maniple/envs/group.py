"""Run a batched task in many rows: place, step, observe, reward, detect faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.faults import FaultedRows, fault_text
from maniple.core.options import check_variation
from maniple.core.pack import Packer
from maniple.core.quick import all_finite
from maniple.core.seeds import SeedTree
from maniple.core.step import StepArrays
from maniple.envs.cameras import Cameras
from maniple.envs.config import EnvConfig
from maniple.envs.motion import Motion
from maniple.envs.row import Row
from maniple.envs.signals import KINDS as SIGNALS
from maniple.envs.signals import Signals
from maniple.envs.task import Task
from maniple.envs.task_contract import check_proprioception, chosen_observations, describe
from maniple.envs.task_model import build_model, configure
from maniple.sim.control.control import actuators
from maniple.sim.perturbation import MOVES_SHAPES, Perturber
from maniple.sim.randomise import Randomiser
from maniple.sim.render_source import SimulationSource
from maniple.sim.renderer import (
    Renderer,
    camera_index,
    make_renderer,
    render_still,
    resolve_renderer,
)
from maniple.sim.simulation import Simulation
from maniple.sim.state import State

NOTHING: dict[int, dict[str, Any]] = {}


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
        configure(task, config)
        if config.variation is not None:
            check_variation(config.variation, task.variations)
        how = dict(config.perturb)
        self.model = build_model(task, how)
        substeps = task.substeps * config.action_repeat
        # Cameras that move are computed anew: then every field is.
        reads = None if how.keys() & set(MOVES_SHAPES) else task.reads
        self.sim = Simulation(self.model, num_envs, threads, substeps, reads)
        self.state = State(self.sim)
        self.seeds = SeedTree(num_envs, rank)
        self._clock = 0
        self._began = np.zeros(num_envs, np.int64)
        self.motion = Motion(task, config, self.sim, self.state, threads)
        self._has_sentences = type(task).sentences is not Task.sentences
        self._observe = chosen_observations(task, config.observations)
        if config.cameras:
            check_proprioception(task, self.state)
        self.randomiser = Randomiser(self.sim, task.randomisation) if config.randomize else None
        self.perturber = self._signals = None
        if how:
            joints = task.robot.all_joints
            drawn = self.randomiser.fields if self.randomiser else ()
            self.perturber = Perturber(self.sim, self.state, joints, how, drawn)
        if how.keys() & set(SIGNALS):
            self._signals = Signals(how, self.state, self.seeds, self.motion)
        self.limit = config.max_episode_steps or task.episode_steps
        """Steps after which an episode is truncated; None: somebody else does that."""
        self._is_sparse = config.reward == "sparse"
        self._ends = task.has_success and config.terminate_on_success
        self._can_fail = type(task).failure is not Task.failure
        self._faulted = FaultedRows()
        self._row_infos: dict[int, dict[str, Any]] = {}
        self._actions: NDArray | None = None
        self._rows: dict[int, Row] = {}
        looks_differ = self.perturber is not None and self.perturber.changes_looks
        is_varied = config.randomize or looks_differ
        self._source = SimulationSource(self.sim, is_varied, config.scene)
        names = task.picture_names
        self._cameras = Cameras(self._source, config, names) if config.cameras else None
        self._drawn = np.zeros(num_envs, np.bool_)
        self._is_filled = False
        """Whether the arrays that are bound hold a picture of every row."""
        self._still_renderer: Renderer | None = None
        self.sim.settle(np.arange(num_envs))
        self.contract = describe(self, self._observe, self._cameras)
        self._out = self._previous = StepArrays(
            self.contract.observation, self.contract.extras, num_envs
        )
        pictures = self._cameras.layout if self._cameras else ()
        self._numbers = [name for name in self.contract.observation if name not in pictures]
        self._packer = Packer(self._out.obs, self._numbers)
        self._packers: dict[StepArrays, Packer] = {}

    def bind(self, arrays: StepArrays) -> None:
        """Write into these arrays from now on."""
        if arrays is not self._out:
            self._previous, self._out = self._out, arrays
        packer = self._packers.get(arrays)
        if packer is None:
            packer = self._packers[arrays] = Packer(arrays.obs, self._numbers)
        self._packer = packer
        if self._cameras is not None:
            self._drawn[:] = False
            self._is_filled = False

    def reset(
        self, rows: NDArray[np.intp], seeds: Sequence[int | None], options: dict | None = None
    ) -> None:
        """Begin a new episode in `rows`."""
        self.task.variation = (options or {}).get("variation", self.config.variation)
        rng = self.seeds.start(rows, seeds)
        self.sim.clear(rows)
        self._home(rows)
        if self.randomiser:
            self.randomiser.draw(rows, rng)
        self.state.put(rows, self.task.place(rng))
        if self.perturber:
            # After everything else is drawn: the task itself is the same with and without.
            self.perturber.draw(rows, rng)
        self.sim.settle(rows)
        self.set_elapsed(rows, 0)
        self._moved(rows)
        self.motion.begin(rows)
        self._faulted.release(rows)
        for row in rows.tolist() if self._has_sentences else ():
            handle = self.row(row)
            self._add_info(row, {"sentence": handle.sentence, "variation": handle.variation})

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None = None) -> None:
        """Step the active rows (None: all)."""
        elapsed = None if self._signals is None else self._clock - self._began
        if active is not None:
            self._began += ~active
        self._clock += 1
        self._actions = actions
        if self._signals is None or elapsed is None:
            self.motion.step(actions, active)
        else:
            self._signals.act(actions, active, elapsed)
        faults = self.sim.faults()
        if faults:
            self._fail(faults)
        if self._cameras is not None:
            self._moved(slice(None) if active is None else active)

    def report(self, final: bool = True) -> None:
        """Write what every row looks like, taking rows with NaN in them out of service.

        Pictures are left out unless this is the `final` report of a chunk.
        """
        if self._cameras is not None and final:
            self._draw(self._cameras)
        # A row that was taken out before may go on producing NaN: nobody sees it.
        if not self._write() and (bad := self._nonfinite_rows()):
            self._fail(bad)
            self._write()

    def elapsed(self, row: int) -> int:
        """Control steps that a row has taken in this episode."""
        return self._clock - int(self._began[row])

    def set_elapsed(self, rows: NDArray[np.intp] | int, steps: int) -> None:
        """Say how many steps rows have taken.

        Rows remember when they began on a common clock: counting costs one addition of a
        Python number, whatever the number of rows.
        """
        self._began[rows] = self._clock - steps

    @property
    def faulted(self) -> FaultedRows:
        """Rows that are out of service until their next reset."""
        return self._faulted

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget what is to be said of rows: their new tasks, their faults."""
        if not self._row_infos:
            return NOTHING
        row_infos, self._row_infos = self._row_infos, {}
        return row_infos

    def row(self, row: int) -> Row:
        """Return a handle on one row, always the same one: it may own a window."""
        if row not in self._rows:
            self._rows[row] = Row(self, row)
        return self._rows[row]

    def picture(self, row: int, camera: str | int, width: int, height: int) -> NDArray[np.uint8]:
        """Return a picture of a row for people, (height, width, 3)."""
        if self._still_renderer is None:
            size = (height, width)
            self._still_renderer = make_renderer(self.config.renderer, self._source, size, "fine")
        index = camera_index(self.model, camera)
        return render_still(self._still_renderer, row, index, width, height)

    @property
    def source(self) -> SimulationSource:
        """The rows, as renderers are given them."""
        return self._source

    @property
    def renderer(self) -> str:
        """Name of the renderer that draws."""
        return resolve_renderer(self.config.renderer, self.model)

    def row_model(self, row: int) -> mujoco.MjModel:
        """Return a copy of a row's model, with what was randomised and in its colours."""
        return self._source.row_model(row)

    def close(self) -> None:
        """Close windows and free drawing memory."""
        for row in self._rows.values():
            row.close()
        if self._still_renderer is not None:
            self._still_renderer.close()
            self._still_renderer = None
        if self._cameras is not None:
            self._cameras.close()

    def _draw(self, cameras: Cameras) -> None:
        self._drawn |= cameras.stale
        fresh = np.flatnonzero(cameras.stale)
        # A step may be reported twice, before resets and after: the first report filled all rows.
        cameras.draw(self._out, None if self._is_filled else self._previous)
        self._is_filled = True
        if self._signals is not None:
            names = (n for n, spec in cameras.layout.items() if spec.image == "rgb")
            shown = [self._out.obs[name] for name in names]
            self._signals.spoil(shown, fresh, self._clock - self._began)
        if self.config.render_every > 1:
            self._out.extras["rendered"][...] = self._drawn

    def redraw(self, row: int) -> None:
        """Have a row drawn again at the next report, whatever the step."""
        if self._cameras is not None:
            self._cameras.stale[row] = True

    def _moved(self, rows: NDArray | slice) -> None:
        """Note that rows have to be drawn again, unless this step is between two drawings."""
        if self._cameras is None:
            return
        every = self.config.render_every
        if every == 1:
            self._cameras.stale[rows] = True
        else:
            due = (self._clock - self._began) % every == 0
            moved = np.zeros(self.rows, np.bool_)
            moved[rows] = True
            self._cameras.stale |= moved & due

    def _write(self) -> bool:
        """Derive observations, rewards and flags of every row from its present state.

        Returns:
            Whether all of it is finite.
        """
        out, state, task = self._out, self.state, self.task
        # A task names its observations in the same order every time: so does the layout.
        values = list(self._observe(state).values())
        if self._signals is not None:
            values = self._signals.observed(values, self._clock - self._began)
        is_finite = self._packer.write(values)
        if task.has_success:
            success = out.extras.arrays["success"]
            success[...] = task.success(state)
            if self._ends:
                out.terminated[:] = success
                if self._can_fail:
                    out.terminated |= task.failure(state)
        self._write_reward(out)
        self.motion.write(out)
        if self.limit is not None:
            np.less_equal(self._began, self._clock - self.limit, out=out.truncated)
        if self._faulted:
            self._faulted.show(out)
        return is_finite and all_finite(out.reward)

    def _write_reward(self, out: StepArrays) -> None:
        if self._is_sparse:
            out.reward[:] = out.extras.arrays["success"]
            return
        terms, scales = self.task.terms(self.state), self.task.scales
        if len(terms) == 1:
            ((name, term),) = terms.items()
            out.reward[:] = term if scales[name] == 1.0 else term * scales[name]
            return
        out.reward[:] = 0.0
        for name, term in terms.items():
            out.extras.arrays[f"terms.{name}"][...] = term
            out.reward += term * scales[name]

    def _fail(self, faults: dict[int, str]) -> None:
        """Take rows out of service until their next reset, leaving the others alone."""
        rows = np.array(sorted(faults))
        for row, why in faults.items():
            self._faulted.add(row, self._previous)
            action = None if self._actions is None else self._actions[row]
            seed, episode = self.seeds.seed[row], self.seeds.episode[row]
            number, step = self.first_row + row, self.elapsed(row)
            text = fault_text(number, why, seed, step, action, episode)
            self._add_info(row, {"env_error": text})
        self.sim.clear(rows)
        self._home(rows)
        self.sim.settle(rows)

    def _add_info(self, row: int, info: dict[str, Any]) -> None:
        self._row_infos.setdefault(row, {}).update(info)

    def _nonfinite_rows(self) -> dict[int, str]:
        bad = {int(r): "the reward is not finite" for r in _rows_with_nan(self._out.reward)}
        for name in self._numbers:
            array = self._out.obs.arrays[name]
            for row in _rows_with_nan(array) if array.dtype.kind == "f" else ():
                bad[int(row)] = f"the observation {name!r} is not finite"
        return {row: why for row, why in bad.items() if row not in self._faulted}

    def _home(self, rows: NDArray[np.intp]) -> None:
        robot, model = self.task.robot, self.model
        home = np.repeat(np.array(robot.home)[None], len(rows), axis=0)
        self.state.put(rows, {name: home[:, k] for k, name in enumerate(robot.all_joints)})
        servos = actuators(model, robot.all_joints)
        # A velocity servo's target at rest is 0, which it is already.
        holds = model.actuator_biasprm[servos, 1] != 0
        self.state.ctrl[rows[:, None], servos[holds]] = home[:, holds]


def _rows_with_nan(array: NDArray) -> NDArray[np.intp]:
    return np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
