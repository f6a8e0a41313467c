"""Learn on several ranks as one: gradients are averaged through Accelerate."""

from __future__ import annotations

from typing import Any

from maniple.core.rank import Rank


def share_gradients(agent: Any) -> None:
    """Under torchrun, make every update of the agent the mean over all ranks.

    The weights begin equal, because every rank makes its agent from the same seed, and stay so.
    """
    if Rank.here().world_size == 1:
        return
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=agent.device.type == "cpu")

    def average(gradients: list) -> None:
        import torch

        flat = torch.cat([g.reshape(-1) for g in gradients])
        flat = accelerator.reduce(flat, reduction="mean")
        start = 0
        for gradient in gradients:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()

    agent.sync = average
