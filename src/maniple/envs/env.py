"""A single Gymnasium environment: a batch of one."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from maniple.core.action import ActionCheck
from maniple.core.errors import ClosedError, ResetNeeded
from maniple.core.group import Group, Recipe
from maniple.core.info import row_info
from maniple.core.options import check_options
from maniple.core.rank import Rank
from maniple.core.space import row_nester
from maniple.core.step import StepArrays

ROW_ATTRIBUTES = (
    "sentence", "sentences", "task_description", "variation", "model", "renderer", "physics",
    "episode", "elapsed_steps", "camera_facts",
)  # fmt: skip
"""Attributes of a row that are read through a single environment; some rows lack some."""


class ManipleEnv(gymnasium.Env):
    """One row of a group behind Gymnasium's interface."""

    def __init__(self, recipe: Recipe, is_limited: bool = True) -> None:
        self._group: Group = recipe.group(1, 1, rank=Rank.here().rank, first_row=0)
        if not is_limited:
            # Gymnasium's TimeLimit truncates, after as many steps as its caller says.
            self._group.limit = None
        contract = self._group.contract
        self.observation_space = contract.observation_space
        self.action_space = contract.action_space
        self.metadata = dict(contract.metadata)
        self.render_mode = contract.render_mode
        self._check = ActionCheck(contract)
        self._nest = row_nester(contract.observation_space)
        self._arrays = [StepArrays(contract.observation, contract.extras, 1) for _ in range(2)]
        self._row = self._group.row(0)
        self._is_reset = self._is_closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode."""
        self._check_open()
        check_options(self._group.contract, options or {})
        super().reset(seed=seed)
        self._turn()
        self._group.reset(np.array([0]), [seed], options or {})
        self._group.report()
        self._is_reset = True
        return self._seen(), self._info()

    def step(self, action: NDArray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        self._check_open()
        if not self._is_reset:
            raise ResetNeeded("step() was called before reset(); call env.reset(seed=...) first.")
        actions = self._check(np.asarray(action)[None], (1,))
        self._turn()
        self._group.step(actions, None)
        self._group.report()
        now = self._arrays[0]
        if self.render_mode == "human":
            self._row.render_to_window()
        return (
            self._seen(),
            float(now.reward[0]),
            bool(now.terminated[0]),
            bool(now.truncated[0]),
            self._info(),
        )

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Return a picture of the present state, or show it in a window."""
        self._check_open()
        return self._row.render(*args, **kwargs)

    def render_to_window(self) -> None:
        """Open MuJoCo's viewer at the first call; show the present state at each one."""
        self._row.render_to_window()

    @property
    def sim_state(self) -> dict[str, Any]:
        """Everything needed to redraw this moment elsewhere, or to go on from it bit for bit."""
        return self._row.sim_state

    @sim_state.setter
    def sim_state(self, state: dict[str, Any]) -> None:
        self._row.sim_state = state
        self._is_reset = True

    @property
    def task(self) -> Any:
        """The task that this environment runs."""
        return self._row.task

    def __getattr__(self, name: str) -> Any:
        # What a row of a vector environment has, a single one has too.
        if name in ROW_ATTRIBUTES:
            return getattr(self._row, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._row.close()
            self._group.close()

    def _turn(self) -> None:
        # Two sets of arrays: a failed row falls back on the observation before.
        self._arrays.reverse()
        self._group.bind(self._arrays[0])

    def _seen(self) -> Any:
        return self._nest(self._arrays[0].obs.take(0))

    def _info(self) -> dict[str, Any]:
        return row_info(self._arrays[0].extras.take(0)) | self._group.row_infos().get(0, {})

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("This environment is closed; make a new one.")
