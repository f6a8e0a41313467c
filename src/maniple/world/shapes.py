"""What a world model sees of an environment, as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.sequence_buffer import Windows


@dataclass(frozen=True)
class Shapes:
    """Names and sizes of what goes in; the same list makes buffers, inputs and pictures."""

    cameras: tuple[str, ...]
    """Names of the observations that are pictures, such as front_rgb."""
    states: tuple[str, ...]
    """Names of the observations that are numbers."""
    height: int
    width: int
    state_size: int
    action_size: int

    @classmethod
    def of(cls, layout: Layout, action: ArraySpec, states: tuple[str, ...]) -> Shapes:
        """Take all colour pictures of a layout, and the named numbers."""
        cameras = tuple(name for name, spec in layout.items() if spec.image == "rgb")
        if not cameras:
            raise BadConfig(
                "A world model predicts pictures: name a camera, as in --cameras front."
            )
        sizes = {layout[name].shape[:2] for name in cameras}
        if len(sizes) > 1:
            raise BadConfig(f"All cameras need pictures of one size; these are {sorted(sizes)}.")
        (height, width) = sizes.pop()
        numbers = sum(layout[name].size for name in states)
        return cls(cameras, states, height, width, numbers, action.size)

    @property
    def names(self) -> tuple[str, ...]:
        """Every observation that is looked at."""
        return self.cameras + self.states

    @property
    def channels(self) -> int:
        """Colour channels of all cameras together."""
        return 3 * len(self.cameras)

    def frames(self, obs: Mapping[str, NDArray], device: Any = "cpu") -> Tensor:
        """Pictures (..., h, w, 3) of all cameras as (..., channels, h, w) from 0 to 1."""
        joined = np.concatenate([obs[name] for name in self.cameras], -1)
        return torch.from_numpy(joined).to(device).movedim(-1, -3).float() / 255.0

    def state(self, obs: Mapping[str, NDArray], device: Any = "cpu") -> Tensor:
        """Numbers of all states side by side, (..., state_size)."""
        return self.numbers(obs, obs[self.cameras[0]].shape[:-3], device)

    def numbers(self, obs: Mapping[str, NDArray], lead: tuple[int, ...], device: Any) -> Tensor:
        """The same where there are no pictures; `lead` is the shape before the numbers."""
        parts = [np.asarray(obs[n], np.float32).reshape(*lead, -1) for n in self.states]
        joined = np.concatenate([*parts, np.zeros((*lead, 0), np.float32)], -1)
        return torch.from_numpy(joined).to(device)

    def pictures(self, frames: Tensor) -> dict[str, NDArray[np.uint8]]:
        """Undo `frames`: (..., channels, h, w) as uint8 pictures of every camera."""
        whole = (frames.clamp(0, 1) * 255).round().to(torch.uint8).movedim(-3, -1).cpu().numpy()
        return {n: np.ascontiguousarray(whole[..., 3 * k : 3 * k + 3])
                for k, n in enumerate(self.cameras)}  # fmt: skip


class Batch(NamedTuple):
    """Windows as tensors: H frames up to the present, then L steps."""

    frames: Tensor
    """(B, H + L, channels, h, w), 0 to 1."""
    state: Tensor
    """(B, H + L, state_size)."""
    action: Tensor
    """(B, H - 1 + L, action_size)."""
    reward: Tensor
    """(B, L)."""
    success: Tensor
    """(B, L), 0 or 1."""
    age: Tensor
    """(B, L)."""
    walk_state: Tensor = torch.zeros(0, 0, 0)
    """(N, H + 1, state_size): states up to after single steps, of which no picture is needed."""
    walk_action: Tensor = torch.zeros(0, 0, 0)
    """(N, H, action_size): the actions up to those steps."""
    walk_reward: Tensor = torch.zeros(0)
    """(N,): what those steps were worth."""
    walk_success: Tensor = torch.zeros(0)
    """(N,), 0 or 1: whether the task was solved after them."""


def _lead(windows: Windows) -> tuple[int, int]:
    """Stretches, and frames of each: one more than actions."""
    rows, moves = windows.action.shape[:2]
    return rows, moves + 1


def with_walk(batch: Batch, windows: Windows, shapes: Shapes) -> Batch:
    """Add single steps, drawn without pictures."""
    device = batch.state.device
    action = torch.from_numpy(windows.action.reshape(*windows.action.shape[:2], -1)).to(device)
    return batch._replace(
        walk_state=shapes.numbers(windows.obs, _lead(windows), device),
        walk_action=action,
        walk_reward=torch.from_numpy(windows.reward[:, -1]).to(device),
        walk_success=torch.from_numpy(windows.success[:, -1]).float().to(device),
    )


def batch_of(windows: Windows, shapes: Shapes, device: Any = "cpu") -> Batch:
    """Move windows to where the model is."""
    action = torch.from_numpy(windows.action.reshape(*windows.action.shape[:2], -1))
    return Batch(
        shapes.frames(windows.obs, device),
        shapes.state(windows.obs, device),
        action.to(device),
        torch.from_numpy(windows.reward).to(device),
        torch.from_numpy(windows.success).float().to(device),
        torch.from_numpy(windows.age).to(device),
    )
