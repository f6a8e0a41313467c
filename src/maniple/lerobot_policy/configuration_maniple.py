"""What config.json says of an exported policy, in LeRobot's form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lerobot.configs.policies import PreTrainedConfig  # pyright: ignore[reportMissingImports]
from lerobot.configs.types import NormalizationMode  # pyright: ignore[reportMissingImports]
from lerobot.optim.optimizers import AdamConfig  # pyright: ignore[reportMissingImports]

from maniple.agents.inference import NetSpec

KINDS = ("VISUAL", "STATE", "ENV", "ACTION")


@PreTrainedConfig.register_subclass("maniple")
@dataclass
class ManipleConfig(PreTrainedConfig):
    """A network of ours, and where its inputs are among LeRobot's."""

    net: NetSpec = field(default_factory=NetSpec)
    """All that builds the network again."""

    keys: dict[str, str] = field(default_factory=dict)
    """Under which of LeRobot's names each array comes."""

    state_names: list[str] = field(default_factory=list)
    """The numbers of 'observation.state', in order, as in 'tip_pos.0'."""

    frame_stack: int = 1
    """Pictures that it sees at once."""

    optimizer_lr: float = 1e-3
    """Learning rate, where LeRobot trains it on."""

    # The network scales its inputs by itself.
    normalization_mapping: dict[str, NormalizationMode] = field(
        default_factory=lambda: dict.fromkeys(KINDS, NormalizationMode.IDENTITY)
    )

    @property
    def observation_delta_indices(self) -> None:
        """LeRobot gives it one observation at a time."""

    @property
    def action_delta_indices(self) -> list[int]:
        """It learns from one action at a time."""
        return [0]

    @property
    def reward_delta_indices(self) -> None:
        """It needs no rewards."""

    def get_optimizer_preset(self) -> Any:
        """Return how LeRobot trains it on."""
        return AdamConfig(lr=self.optimizer_lr, weight_decay=0.0)

    def get_scheduler_preset(self) -> None:
        """The learning rate stays."""

    def validate_features(self) -> None:
        """Refuse a config that was not exported."""
        if not self.net.shapes:
            raise ValueError("This policy is made by 'maniple export'; it cannot begin empty.")
