"""A trained policy of ours behind LeRobot's interface."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from lerobot.policies.pretrained import (  # pyright: ignore[reportMissingImports]
    PreTrainedPolicy,
)
from torch import Tensor

from maniple.agents.inference import InferenceNet
from maniple.core.errors import BadConfig
from maniple.lerobot_policy.configuration_maniple import ManipleConfig

STATE, ACTION = "observation.state", "action"


class ManiplePolicy(PreTrainedPolicy):
    """Splits LeRobot's observations into our arrays, and acts on them as ours does."""

    config_class = ManipleConfig
    name = "maniple"

    def __init__(self, config: ManipleConfig, dataset_meta: Any = None, **others: Any) -> None:
        """Make the network.

        Args:
            dataset_meta: Of the dataset that observations come from. Its numbers are found by
                name; without it they are in the order of the environments in training.
            others: What LeRobot gives to every policy.
        """
        super().__init__(config)
        config.validate_features()
        self.config = config
        net = InferenceNet(config.net)
        # Directly under our own name, so that the weights are called as in our checkpoints.
        self.eye, self.policy = net.eye, net.policy
        self._net = [net]  # In a list: a module inside a module would be stored twice.
        features = getattr(dataset_meta, "features", {})
        self._names = list(features.get(STATE, {}).get("names") or config.state_names)
        self._places = self._find_places()
        self.reset()

    @classmethod
    def _load_as_safetensor(
        cls, model: Any, model_file: str, map_location: str, strict: bool
    ) -> Any:
        # Weights that silently stay random are the usual cause of 0 % in evaluation.
        return super()._load_as_safetensor(model, model_file, map_location, True)

    def reset(self) -> None:
        """Forget the pictures of the episode before."""
        self._frames: dict[str, list[Tensor]] = {}

    def get_optim_params(self) -> Any:
        """Return what LeRobot trains."""
        return self.parameters()

    def select_action(self, batch: dict[str, Tensor], **others: Any) -> Tensor:
        """Return the most likely action of every row."""
        device = self.eye.mean.device
        action = self._net[0].act(self._remembered(self._named(batch)))
        return torch.from_numpy(action).to(device)

    def predict_action_chunk(self, batch: dict[str, Tensor], **others: Any) -> Tensor:
        """Return a chunk of one action for every row."""
        return self.select_action(batch).unsqueeze(1)

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """Return how far its actions are from those in the batch."""
        if self.config.frame_stack > 1:
            raise BadConfig("LeRobot cannot train a policy on that sees several pictures at once.")
        net = self._net[0]
        wanted = batch[ACTION].reshape(len(batch[ACTION]), -1)
        target = torch.as_tensor(net.range.from_env(wanted.cpu().numpy()), device=wanted.device)
        loss = (net(self._named(batch)) - target).square().mean()
        return loss, {"bc_loss": float(loss.detach())}

    def _named(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Find our arrays in LeRobot's, of the types that the network looks at."""
        found = {}
        for name in self.config.net.shapes:
            key = self.config.keys[name]
            if key not in batch:
                raise BadConfig(
                    f"The policy looks at {key!r}, which is not among the observations: "
                    f"{', '.join(k for k in batch if k.startswith('observation'))}."
                )
            values = batch[key]
            if name in self._places:
                found[name] = self._numbers(values, name)
            elif self._is_rgb(name):
                found[name] = _bytes(values)
            else:
                kind = getattr(torch, self.config.net.dtypes[name])
                found[name] = values.reshape(len(values), *self._shape(name)).to(kind)
        return found

    def _numbers(self, values: Tensor, name: str) -> Tensor:
        if values.shape[-1] != len(self._names):
            raise BadConfig(
                f"{STATE} has {values.shape[-1]} numbers, and the policy expects "
                f"{len(self._names)}: {', '.join(self._names)}."
            )
        return values[:, self._places[name]]

    def _remembered(self, obs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Join the last pictures along their channels, where it sees several at once."""
        count = self.config.frame_stack
        if count == 1:
            return obs
        for name in self.config.net.images:
            frames = self._frames.setdefault(name, [obs[name]] * count)
            frames[:] = [*frames[1:], obs[name]]
            join = torch.cat if obs[name].ndim == 4 else torch.stack
            obs[name] = join(frames, dim=-1)
        return obs

    def _find_places(self) -> dict[str, list[int]]:
        """Where the numbers of each array are in 'observation.state'."""
        places = {name: k for k, name in enumerate(self._names)}
        found = {}
        for name, shape in self.config.net.shapes.items():
            if self.config.keys[name] != STATE:
                continue
            words = [f"{name}.{k}" for k in range(prod(shape))] if shape else [name]
            if missing := [word for word in words if word not in places]:
                raise BadConfig(
                    f"The policy looks at {missing[0]!r}, which is not in {STATE} of this "
                    f"dataset: {', '.join(self._names)}."
                )
            found[name] = [places[word] for word in words]
        return found

    def _is_rgb(self, name: str) -> bool:
        return self.config.net.images.get(name) == "rgb"

    def _shape(self, name: str) -> tuple[int, ...]:
        """Of one observation, before pictures are joined."""
        shape, count = tuple(self.config.net.shapes[name]), self.config.frame_stack
        is_joined = count > 1 and name in self.config.net.images
        return shape[:-1] if is_joined else shape


def _bytes(picture: Tensor) -> Tensor:
    """Turn (rows, channels, height, width) from 0 to 1 into (rows, height, width, channels)."""
    return (picture * 255.0).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
