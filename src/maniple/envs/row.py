"""A handle on one environment among many: its state, its picture, its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.sim.derived_images import rlbench_facts
from maniple.sim.renderer import camera_index
from maniple.sim.viewer import Window

if TYPE_CHECKING:
    from maniple.envs.group import TaskGroup
    from maniple.envs.task import Task

SimState = dict[str, Any]


class Row:
    """One row of a group, as `get_attr`, `call` and the single environment see it."""

    def __init__(self, group: TaskGroup, row: int) -> None:
        self._group = group
        self._row = row
        self._window: Window | None = None
        self._generator: tuple[int, np.random.Generator] | None = None

    @property
    def task(self) -> Task:
        """The task, which all rows share."""
        return self._group.task

    @property
    def sentence(self) -> str:
        """What the robot is asked to do."""
        return self.sentences[0]

    @property
    def task_description(self) -> str:
        """The same, by the name that LeRobot asks for."""
        return self.sentence

    @property
    def _max_episode_steps(self) -> int | None:
        """Steps after which the episode is truncated, by Gymnasium's and LeRobot's name."""
        return self._group.limit

    @property
    def sentences(self) -> list[str]:
        """Ways of saying what the robot is asked to do in this episode."""
        return self._group.task.sentences(self.variation)

    @property
    def variation(self) -> int:
        """Which variation of the task this episode is."""
        group = self._group
        return int(group.state.note("variation")[self._row]) if group.task.variations > 1 else 0

    @property
    def model(self) -> mujoco.MjModel:
        """A copy of this row's model, with what was randomised."""
        return self._group.row_model(self._row)

    @property
    def renderer(self) -> str:
        """Name of the renderer that draws this row."""
        return self._group.renderer

    @property
    def camera_facts(self) -> dict[str, NDArray]:
        """Intrinsics, extrinsics, near and far of the cameras that are drawn, as RLBench has them.

        Its cameras' axes are x left, y up and z forward, so that focal lengths are negative.
        """
        group, row = self._group, self._row
        facts: dict[str, NDArray] = {}
        for name in group.config.cameras:
            camera = camera_index(group.model, name)
            where = group.sim.bind("cam_xpos")[row, camera], group.sim.bind("cam_xmat")[row, camera]
            size = group.config.image_size
            found = rlbench_facts(group.model, camera, *where, *size)
            facts |= {f"{name}_camera_{key}": value for key, value in found.items()}
        return facts

    @property
    def np_random_seed(self) -> int:
        """The seed that this row was last reset with."""
        return int(self._group.seeds.seed[self._row])

    @property
    def np_random(self) -> np.random.Generator:
        """A generator for the user's own draws; the task's come from the seed tree."""
        if self._generator is None or self._generator[0] != self.np_random_seed:
            self._generator = (self.np_random_seed, np.random.default_rng(self.np_random_seed))
        return self._generator[1]

    @property
    def episode(self) -> int:
        """Episodes since this row was last seeded."""
        return int(self._group.seeds.episode[self._row])

    @property
    def elapsed_steps(self) -> int:
        """Control steps in this episode."""
        return self._group.elapsed(self._row)

    @property
    def sim_state(self) -> SimState:
        """Everything needed to redraw this moment elsewhere, or to go on from it bit for bit.

        All arrays are copies. Assign it back in order to return to it.
        """
        group, row = self._group, self._row
        bind = group.sim.bind
        state: SimState = {
            name: bind(name)[row].copy()
            for name in ("qpos", "qvel", "xpos", "xquat", "mocap_pos", "mocap_quat")
        }
        state["time"] = float(bind("time")[row])
        state["sim_metadata"] = group.task.metadata()
        state["integration"] = group.sim.state(row)
        state["randomised"] = group.randomiser.row(row) if group.randomiser else {}
        state["expanded"] = group.sim.expanded_row(row)
        state["counters"] = {
            "seed": self.np_random_seed,
            "episode": self.episode,
            "elapsed_steps": self.elapsed_steps,
            "invalid_actions": group.motion.refused(row),
        }
        return state

    @sim_state.setter
    def sim_state(self, state: SimState) -> None:
        group, row = self._group, self._row
        wanted = group.sim.batch.nstate
        given = np.asarray(state.get("integration", ()), np.float64)
        if given.shape != (wanted,):
            raise BadConfig(
                f"This sim_state has {given.size} numbers under 'integration', but "
                f"{type(group.task).__name__} needs {wanted}: it comes from another task."
            )
        if state["randomised"]:
            if group.randomiser is None:
                raise BadConfig("This sim_state was randomised: make the env with randomize=True.")
            group.randomiser.set_row(row, state["randomised"])
        group.sim.set_expanded_row(row, state.get("expanded", {}))
        group.sim.set_state(row, given)
        counters = state["counters"]
        group.seeds.seed[row] = counters["seed"]
        group.seeds.episode[row] = counters["episode"]
        group.set_elapsed(row, counters["elapsed_steps"])
        group.motion.begin(row, counters.get("invalid_actions", 0))
        group.redraw(row)

    def render(
        self,
        width: int | None = None,
        height: int | None = None,
        camera_id: str | int | None = None,
    ) -> NDArray[np.uint8] | None:
        """Return a picture, (height, width, 3); in human mode show it in a window instead."""
        group = self._group
        if group.config.render_mode == "human":
            return self.render_to_window()
        camera = camera_id if camera_id is not None else group.config.camera
        camera = group.task.cameras[0] if camera is None else camera
        return group.picture(
            self._row, camera, width or group.config.width, height or group.config.height
        )

    def render_to_window(self) -> None:
        """Open a window at the first call; show the present state at each one.

        What the mouse pulls at there (Ctrl and a button held) is pulled at in the next steps.
        """
        if self._window is None:
            self._window = Window(self.model)
        sim = self._group.sim
        sim.pull(self._row, self._window.show(sim.state(self._row)))

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None
