"""Tasks in the per-environment form that people have already written; slower, accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import mujoco
import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from maniple.core.block import SMALL
from maniple.core.errors import BadConfig, BadModel
from maniple.core.faults import FaultedRows, fault_text
from maniple.core.group import Contract, Recipe
from maniple.core.seeds import SeedTree
from maniple.core.space import flatten, layout_of
from maniple.core.spec import Layout
from maniple.core.step import StepArrays
from maniple.envs.config import EnvConfig
from maniple.sim.physics import Physics
from maniple.sim.renderer import (
    resolve_renderer,
)
from maniple.sim.scene import load_model
from maniple.sim.viewer import Window

INF = float("inf")


class ExtendedTask:
    """A task written for one environment at a time, over a model file of your own."""

    XML_PATH: ClassVar[str | Path]
    ACTION_SPACE: ClassVar[Space]
    OBSERVATION_SPACE: ClassVar[Space]
    SUBSTEPS: ClassVar[int] = 1

    def initialize_episode(self, physics: Physics, rng: np.random.Generator) -> None:
        """Change the reset state, if it should vary."""

    def get_observation(self, physics: Physics) -> Any:
        """Return an element of OBSERVATION_SPACE."""
        raise NotImplementedError

    def get_reward(self, physics: Physics) -> float:
        """Return the reward of the present state."""
        raise NotImplementedError

    def get_termination(self, physics: Physics) -> bool:
        """Return whether the episode has come to its end."""
        return False

    def get_sim_metadata(self) -> dict:
        """Return what `sim_state` should carry along."""
        return {}


def is_extended(task: type) -> bool:
    """Return whether a class is a per-environment task, by what it offers."""
    return all(hasattr(task, name) for name in ("XML_PATH", "ACTION_SPACE", "OBSERVATION_SPACE"))


@dataclass(frozen=True)
class ExtendedRecipe(Recipe):
    """A per-environment task and its settings."""

    task: type
    config: EnvConfig = field(default_factory=EnvConfig)

    preload = ("mujoco", __name__)

    def contract(self) -> Contract:
        """Describe the environment from what its class declares."""
        task, config = self.task, self.config
        if config.cameras:
            raise BadConfig(
                f"{task.__name__} is a per-environment task: it puts pictures into its own "
                "observation, with physics.render(). Leave cameras out."
            )
        if config.perturb:
            raise BadConfig(
                f"{task.__name__} is a per-environment task: it cannot be perturbed. Leave perturb "
                "out, or vary physics.model in initialize_episode()."
            )
        action = layout_of(task.ACTION_SPACE)
        if len(action) != 1:
            raise BadConfig(f"{task.__name__}.ACTION_SPACE must be a single Box.")
        return Contract(
            observation=layout_of(task.OBSERVATION_SPACE),
            action=Layout({"action": next(iter(action.values()))}),
            extras=Layout({}),
            observation_space=task.OBSERVATION_SPACE,
            action_space=task.ACTION_SPACE,
            metadata={"render_modes": ["rgb_array"], "render_fps": 50},
            render_mode=config.render_mode,
            clip_actions=config.clip_actions,
        )

    def group(
        self, num_envs: int, threads: int, rank: int = 0, first_row: int = 0
    ) -> ExtendedGroup:
        """Build rows `first_row` and following; threads do not help Python code."""
        return ExtendedGroup(self, num_envs, rank, first_row)


class ExtendedGroup:
    """A loop over environments of a per-environment task."""

    def __init__(self, recipe: ExtendedRecipe, num_envs: int, rank: int, first_row: int) -> None:
        self.contract = recipe.contract()
        self.config = recipe.config
        self.first_row = first_row
        self.tasks = [recipe.task() for _ in range(num_envs)]
        model = load_model(recipe.task.XML_PATH)
        self.physics = [
            Physics(model, self.config.renderer, self.config.scene) for _ in range(num_envs)
        ]
        if model.nu != self.contract.action["action"].size:
            raise BadModel(
                f"{recipe.task.__name__}.ACTION_SPACE has {self.contract.action['action'].size} "
                f"numbers, but {recipe.task.XML_PATH} has {model.nu} actuators."
            )
        self.seeds = SeedTree(num_envs, rank)
        self.elapsed = np.zeros(num_envs, np.int64)
        self.limit = recipe.config.max_episode_steps
        """Steps after which an episode is truncated; None: somebody else does that."""
        self._substeps = getattr(recipe.task, "SUBSTEPS", 1) * recipe.config.action_repeat
        self._out: StepArrays | None = None
        self._previous: StepArrays | None = None
        self._row_infos: dict[int, dict[str, Any]] = {}
        self._faulted = FaultedRows()
        self._has_shown = np.zeros(num_envs, np.bool_)
        """Rows that have a good observation to fall back on."""

    def bind(self, arrays: StepArrays) -> None:
        """Report into these arrays from now on."""
        if arrays is not self._out:
            self._previous, self._out = self._out, arrays

    def reset(
        self, rows: NDArray[np.intp], seeds: Sequence[int | None], options: dict | None = None
    ) -> None:
        """Begin a new episode in `rows`."""
        self.seeds.start(rows, seeds)
        for row in rows.tolist():
            physics, task = self.physics[row], self.tasks[row]
            mujoco.mj_resetData(physics.model, physics.data)
            begin = getattr(task, "initialize_episode", None)
            if begin is not None:
                key = [int(self.seeds.seed[row]), self.seeds.rank, int(self.seeds.episode[row])]
                begin(physics, np.random.default_rng(key))
            mujoco.mj_forward(physics.model, physics.data)
        self._faulted.release(rows)
        self.elapsed[rows] = 0

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None = None) -> None:
        """Step the active rows, one after the other."""
        rows = range(len(self.physics)) if active is None else np.flatnonzero(active).tolist()
        for row in rows:
            physics = self.physics[row]
            before = _warnings(physics.data)
            physics.data.ctrl[:] = actions[row]
            # Half a step back and forth, so that derived fields belong to the new state.
            mujoco.mj_step2(physics.model, physics.data)
            if self._substeps > 1:
                mujoco.mj_step(physics.model, physics.data, self._substeps - 1)
            mujoco.mj_step1(physics.model, physics.data)
            if _warnings(physics.data) > before:
                self._fail(row, "MuJoCo found NaN, infinite or huge numbers", actions[row])
            self.elapsed[row] += 1

    def report(self, final: bool = True) -> None:
        """Ask every task for its observation, reward and end."""
        out = self._out
        assert out is not None, "bind() comes before report()"
        for row in range(len(self.tasks)):
            if row not in self._faulted and (why := self._write(out, row)):
                self._fail(row, why, self.physics[row].data.ctrl)
        self._faulted.show(out)

    def _write(self, out: StepArrays, row: int) -> str | None:
        """Write what a row looks like; return what is wrong with it, if anything is."""
        task, physics = self.tasks[row], self.physics[row]
        seen = flatten(self.contract.observation_space, task.get_observation(physics))
        for name, value in seen.items():
            array = self._fitting(name, value)
            # A depth picture may be infinite.
            if array.dtype.kind == "f" and array.nbytes <= SMALL and not np.isfinite(array).all():
                return f"the observation {name!r} is not finite"
            out.obs[name][row] = array
        reward = task.get_reward(physics)
        if not -INF < reward < INF:
            return f"the reward is {reward}"
        out.reward[row] = reward
        ends = getattr(task, "get_termination", None)
        out.terminated[row] = bool(ends(physics)) if ends is not None else False
        limit = self.limit
        out.truncated[row] = limit is not None and self.elapsed[row] >= limit
        self._has_shown[row] = True
        return None

    @property
    def faulted(self) -> FaultedRows:
        """Rows that are out of service until their next reset."""
        return self._faulted

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the faults since the last call."""
        row_infos, self._row_infos = self._row_infos, {}
        return row_infos

    def row(self, row: int) -> ExtendedRow:
        """Return a handle on one row."""
        return ExtendedRow(self, row)

    def close(self) -> None:
        """Let go of the renderers."""
        for physics in self.physics:
            physics.close()

    def _fitting(self, name: str, value: Any) -> NDArray:
        spec = self.contract.observation[name]
        array = np.asarray(value)
        if array.shape != spec.shape:
            raise BadConfig(
                f"{type(self.tasks[0]).__name__}.get_observation gave {name!r} with shape "
                f"{array.shape}; OBSERVATION_SPACE says {spec.shape}."
            )
        return array

    def _fail(self, row: int, why: str, action: NDArray) -> None:
        """Take a row out of service until its next reset.

        Raises:
            BadConfig: It has never been in service: the task is broken, not the episode.
        """
        seed, episode = self.seeds.seed[row], self.seeds.episode[row]
        text = fault_text(self.first_row + row, why, seed, self.elapsed[row], action, episode)
        if self._previous is None or not self._has_shown[row]:
            raise BadConfig(f"{type(self.tasks[row]).__name__} fails at its first reset: {text}.")
        self._faulted.add(row, self._previous)
        self._row_infos[row] = {"env_error": text}


class ExtendedRow:
    """One row of a per-environment task."""

    def __init__(self, group: ExtendedGroup, row: int) -> None:
        self._group = group
        self._row = row
        self._window: Window | None = None

    @property
    def task(self) -> Any:
        """The row's own task object."""
        return self._group.tasks[self._row]

    @property
    def physics(self) -> Physics:
        """The row's simulation."""
        return self._group.physics[self._row]

    @property
    def renderer(self) -> str:
        """Name of the renderer that draws this row."""
        return resolve_renderer(self._group.config.renderer, self.physics.model)

    @property
    def np_random_seed(self) -> int:
        """The seed that this row was last reset with."""
        return int(self._group.seeds.seed[self._row])

    @property
    def np_random(self) -> np.random.Generator:
        """A generator for the user's own draws."""
        return np.random.default_rng(self.np_random_seed)

    @property
    def sentence(self) -> str:
        """What the robot is asked to do: the first line of the task's docstring."""
        return (type(self.task).__doc__ or type(self.task).__name__).strip().splitlines()[0]

    @property
    def task_description(self) -> str:
        """The same, by the name that LeRobot asks for."""
        return self.sentence

    @property
    def _max_episode_steps(self) -> int | None:
        """Steps after which the episode is truncated, by Gymnasium's and LeRobot's name."""
        return self._group.limit

    @property
    def episode(self) -> int:
        """Episodes since this row was last seeded."""
        return int(self._group.seeds.episode[self._row])

    @property
    def elapsed_steps(self) -> int:
        """Control steps in this episode."""
        return int(self._group.elapsed[self._row])

    @property
    def sim_state(self) -> dict[str, Any]:
        """Copies of everything needed to redraw this moment, or to go on from it."""
        data = self.physics.data
        state: dict[str, Any] = {
            name: getattr(data, name).copy()
            for name in ("qpos", "qvel", "xpos", "xquat", "mocap_pos", "mocap_quat")
        }
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state["integration"] = np.empty(mujoco.mj_stateSize(self.physics.model, kind))
        mujoco.mj_getState(self.physics.model, data, state["integration"], kind)
        state["time"] = data.time
        state["sim_metadata"] = self.task.get_sim_metadata()
        state["counters"] = {"elapsed_steps": self.elapsed_steps}
        return state

    @sim_state.setter
    def sim_state(self, state: dict[str, Any]) -> None:
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        wanted = mujoco.mj_stateSize(self.physics.model, kind)
        if len(state.get("integration", ())) != wanted:
            raise BadConfig(f"This sim_state is of another model; {wanted} numbers are needed.")
        mujoco.mj_setState(self.physics.model, self.physics.data, state["integration"], kind)
        mujoco.mj_step1(self.physics.model, self.physics.data)
        self._group.elapsed[self._row] = state["counters"]["elapsed_steps"]

    def render(
        self,
        width: int | None = None,
        height: int | None = None,
        camera_id: str | int | None = None,
    ) -> NDArray[np.uint8]:
        """Return a picture, (height, width, 3)."""
        config = self._group.config
        camera = camera_id if camera_id is not None else config.camera
        return self.physics.render(
            height or config.height, width or config.width, -1 if camera is None else camera
        )

    def render_to_window(self) -> None:
        """Open a window at the first call; show the present state at each one.

        What the mouse pulls at there (Ctrl and a button held) is pulled at in the next steps.
        """
        if self._window is None:
            self._window = Window(self.physics.model)
        self.physics.data.xfrc_applied[:] = self._window.show(self.sim_state["integration"])

    def close(self) -> None:
        """Close the window, if there is one; the group owns the renderer."""
        if self._window is not None:
            self._window.close()
            self._window = None


def _warnings(data: mujoco.MjData) -> int:
    return sum(w.number for w in data.warning)
