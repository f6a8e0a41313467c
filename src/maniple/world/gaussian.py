"""Keep latents spread out like a Gaussian, so that they cannot all become the same."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maniple.world.rank_mean import rank_mean, world_size


def gaussian_loss(latents: Tensor, draw: int, directions: int = 64, knots: int = 12) -> Tensor:
    """Distance of (B, D) from a standard Gaussian, after SIGReg (arXiv 2511.08544).

    Along random directions the characteristic function of the latents, the mean of exp(i t x), is
    compared with the Gaussian's. All ranks draw the same directions.
    """
    rng = torch.Generator().manual_seed(draw)
    ways = torch.randn(latents.shape[1], directions, generator=rng).to(latents.device)
    t = torch.linspace(0.2, 3.0, knots, device=latents.device)
    wanted = torch.exp(-t.square() / 2)
    angles = (latents @ F.normalize(ways, dim=0))[..., None] * t
    real, imaginary = rank_mean(torch.stack([angles.cos().mean(0), angles.sin().mean(0)]))
    gap = (real - wanted).square() + imaginary.square()
    return (gap * wanted).mean() * latents.shape[0] * world_size()


class BatchStandard(nn.Module):
    """Standardises every latent over the batch; afterwards by what was seen on the way."""

    mean: Tensor
    variance: Tensor

    def __init__(self, size: int, pace: float = 0.05) -> None:
        super().__init__()
        self.pace = pace
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """Standardise (B, size)."""
        if not self.training:
            return (x - self.mean) / (self.variance + 1e-5).sqrt()
        mean, square = rank_mean(torch.stack([x.mean(0), x.square().mean(0)]))
        variance = (square - mean.square()).clamp_min(0)
        with torch.no_grad():
            self.mean.lerp_(mean, self.pace)
            self.variance.lerp_(variance, self.pace)
        return (x - mean) / (variance + 1e-5).sqrt()
