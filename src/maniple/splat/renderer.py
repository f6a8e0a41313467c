"""Draw rows as Gaussian splats."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any, ClassVar

from maniple.core.lookup import load
from maniple.sim.renderer import Pictures, RenderSource
from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import COMPILED
from maniple.splat.store import scene_for

RASTERS: dict[str, str] = {
    "cpu": "maniple.splat.raster:Raster",
    "cuda": "maniple.splat.cuda:CudaRaster",
}
"""What rasterises. The second one loads torch: it is imported only where it is chosen."""


def best_raster() -> str:
    """Return which of RASTERS to use here; nothing heavy is imported to find out."""
    has_gpu = Path("/dev/nvidia0").exists()
    return "cuda" if has_gpu and util.find_spec("gsplat") is not None else "cpu"


def make_raster(scene: CompiledScene, source: RenderSource, name: str | None = None) -> Any:
    """Make a rasteriser by its name in RASTERS, or the best one."""
    return load(RASTERS[name or best_raster()])(scene, source)


class SplatRenderer:
    """Draws the splat scene that the source names, or that of its model."""

    name: ClassVar[str] = "splat"
    wants_one_process: ClassVar[bool] = best_raster() == "cuda"

    def __init__(self, source: RenderSource, size: tuple[int, int], quality: str) -> None:
        self.scene = CompiledScene(scene_for(source), source.model)
        self.raster = make_raster(self.scene, source)
        if self.variant in COMPILED:
            self.scene.drop_clouds()

    @property
    def variant(self) -> str:
        """Which implementation draws: 'cuda', 'avx2', 'baseline' or 'numpy'."""
        return self.raster.variant

    def render(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        """Draw rows through cameras; see `Renderer.render`."""
        self.raster.render(rows, cameras, kinds, out)

    def close(self) -> None:
        """Free the kept layers."""
        self.raster.close()
