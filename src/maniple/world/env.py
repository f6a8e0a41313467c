"""The trained model as a vector environment: episodes that are only imagined."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from maniple.agents.agent import ActionRange
from maniple.core.errors import BadAction, BadConfig, ManipleError, ResetNeeded
from maniple.core.seeds import row_seeds
from maniple.core.space import flattener
from maniple.core.spec import ArraySpec, Layout
from maniple.world.moment import first_moment
from maniple.world.prediction import Prediction, WorldModel

SOLVED_ABOVE = 0.5
"""Predicted probability from which the task counts as solved."""


class WorldModelEnv(gymnasium.vector.VectorEnv):
    """Rows that live in a world model; episodes begin from true observations.

    A row that ends is reset in the next step (next-step autoreset), as our other vector
    environments do it.
    """

    def __init__(
        self,
        model: WorldModel,
        layout: Layout,
        action: ArraySpec,
        starts: dict[str, NDArray],
        num_envs: int,
        max_episode_steps: int = 50,
        terminate_on_success: bool = True,
    ) -> None:
        """Make an imagined environment.

        Args:
            model: A trained model.
            layout: What an observation is made of, at least all that the model predicts.
            action: What an action is.
            starts: First observations of true episodes, (N, ...): row k of a seed begins with one.
            max_episode_steps: Steps after which an episode is truncated.
        """
        shapes = model.shapes
        if num_envs < 1:
            raise BadConfig(f"num_envs is {num_envs}; it must be 1 or larger.")
        missing = [name for name in shapes.names if name not in starts]
        if missing:
            raise BadConfig(f"starts lacks {missing[0]!r}, which the model sees.")
        self.model, self.num_envs = model, num_envs
        self.layout = Layout({name: layout[name] for name in shapes.names})
        self.action_spec = action
        self._starts, self._count = starts, len(starts[shapes.names[0]])
        self._limit, self._ends_solved = max_episode_steps, terminate_on_success
        self._scale = ActionRange(action)
        self.single_observation_space = gymnasium.spaces.Dict(
            {name: _box(spec) for name, spec in self.layout.items()}
        )
        self.single_action_space = _box(action)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.named = flattener(self.single_observation_space)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}
        self.render_mode = None
        self._rngs = [np.random.default_rng() for _ in range(num_envs)]
        self._steps = np.zeros(num_envs, np.int64)
        self._waits = np.zeros(num_envs, np.bool_)
        self._at: Any = None

    @torch.no_grad()
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None):
        """Begin imagined episodes, in all rows or in those of `options["reset_mask"]`."""
        rows = self._mask((options or {}).get("reset_mask"))
        for row, given in enumerate(row_seeds(seed, self.num_envs)):
            if given is not None and rows[row]:
                self._rngs[row] = np.random.default_rng(given)
        if self._at is None and not rows.all():
            raise ResetNeeded("The first reset() must be of all rows: leave reset_mask out.")
        self._begin(rows)
        return self._observations(), {}

    @torch.no_grad()
    def step(self, actions: ArrayLike):
        """Imagine one step of every row."""
        if self._at is None:
            raise ResetNeeded("step() was called before reset(); call envs.reset(seed=...) first.")
        waited = self._waits.copy()
        taken = torch.from_numpy(self._scale.from_env(self._checked(actions)))
        said, self._at = self.model.advance(self._at, taken)
        self._show(said)
        self._steps += 1
        solved = torch.sigmoid(said.success).numpy() > SOLVED_ABOVE
        reward = said.reward.numpy().astype(np.float64)
        if waited.any():
            self._begin(waited)
            solved[waited], reward[waited] = False, 0.0
        terminated = solved & self._ends_solved
        truncated = (self._steps >= self._limit) & ~terminated
        self._waits = terminated | truncated
        everyone = np.ones(self.num_envs, np.bool_)
        info = {"success": solved, "_success": everyone}
        return self._observations(), reward, terminated, truncated, info

    def _checked(self, actions: ArrayLike) -> NDArray:
        """Refuse actions that no environment takes; those out of range are clipped."""
        array, shape = np.asarray(actions), (self.num_envs, *self.action_spec.shape)
        if array.shape != shape:
            raise BadAction(f"The actions have shape {array.shape}; they must have {shape}.")
        if array.dtype.kind not in "fiu":
            raise BadAction(
                f"The actions have dtype {array.dtype}; they must be {self.action_spec.dtype}."
            )
        if not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise BadAction(
                f"The action of row {row} is not finite. Look for NaN in the policy's output."
            )
        return np.clip(array, *self.action_spec.bounds())

    def _mask(self, given: Any) -> NDArray[np.bool_]:
        if given is None:
            return np.ones(self.num_envs, np.bool_)
        rows = np.asarray(given)
        if rows.dtype != np.bool_ or rows.shape != (self.num_envs,):
            raise BadConfig(
                f"reset_mask has shape {rows.shape} and {rows.dtype}; it must be bool of "
                f"({self.num_envs},)."
            )
        return rows

    def _begin(self, rows: NDArray[np.bool_]) -> None:
        """Put rows at the beginning of episodes that were truly seen."""
        shapes, model = self.model.shapes, self.model
        chosen = np.array([rng.integers(self._count) if is_new else 0
                           for rng, is_new in zip(self._rngs, rows, strict=True)])  # fmt: skip
        obs = {name: self._starts[name][chosen] for name in shapes.names}
        memory = model.blank_memory(self.num_envs)
        moment = first_moment(
            shapes.frames(obs), shapes.state(obs), model.history, shapes.action_size, memory
        )
        fresh = model.begin(moment)
        if self._at is None or rows.all():
            self._at, self._obs = fresh, obs
        else:
            mask = torch.from_numpy(rows)
            self._at = type(fresh)(*(
                torch.where(mask.view(-1, *[1] * (new.dim() - 1)), new, old)
                for new, old in zip(fresh, self._at, strict=True)
            ))  # fmt: skip
            for name, array in obs.items():
                self._obs[name][rows] = array[rows]
        self._steps[rows], self._waits[rows] = 0, False

    def _show(self, said: Prediction) -> None:
        shapes = self.model.shapes
        finite = said.frame.flatten(1).isfinite().all(1)
        if finite.all():
            self._obs |= shapes.pictures(said.frame)
        elif self.model.can_draw:
            row = int((~finite).nonzero()[0])
            raise ManipleError(
                f"The model drew a picture of row {row} that is not finite: its weights, or what "
                "it began from, are broken."
            )
        state, at = said.state.numpy(), 0
        for name in shapes.states:
            spec = self.layout[name]
            part = state[:, at : at + spec.size].reshape(-1, *spec.shape).astype(spec.dtype)
            self._obs[name] = np.clip(part, *spec.bounds())
            at += spec.size

    def _observations(self) -> dict[str, NDArray]:
        return {name: array.copy() for name, array in self._obs.items()}


def _box(spec: ArraySpec) -> gymnasium.spaces.Box:
    low, high = spec.bounds()
    return gymnasium.spaces.Box(np.asarray(low), np.asarray(high), dtype=spec.dtype.type)
