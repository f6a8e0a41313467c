"""Refine a scene until it looks like pictures of it: gradient descent on the processor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import ManipleError
from maniple.sim.fast.scene import free_view
from maniple.sim.kernel.library import HOW_TO_BUILD, best_width
from maniple.sim.kernel.structs import Field
from maniple.sim.renderer import RenderSource
from maniple.splat.cloud import Cloud, quats_of, turns
from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import compiled_library
from maniple.splat.scene import Scene
from maniple.splat.structs import (
    DISC,
    GRADIENTS,
    LARGEST,
    LOG2_OPACITY,
    ROW_FIELDS,
    Descent,
    Order,
    Output,
    Rows,
    Training,
)  # fmt: skip
from maniple.splat.views import Views

RATES = (0.12, 0.05, 0.06, 0.05, 0.01)
"""Of the first steps: mean (in a disc's own size), log size, turn (rad), logit, colour."""
LAST_RATE = 0.03
"""Rates fall to this part of what they were."""
GROWS_AT = (0.06, 0.12, 0.18, 0.24, 0.30, 0.38, 0.46, 0.54)
"""When Gaussians are split, as parts of all steps."""
PRUNES_AT = (0.45, 1.0)
NARROWEST_M = 1e-4
SINK_M, RISE_M = 0.004, 0.0003
"""How far a lit disc may leave its surface: what lies on a table must not be pierced by it."""
UNSEEN = 0.02
"""A Gaussian whose weight stays below this in every pixel is given up."""


@dataclass(frozen=True)
class FitConfig:
    """How long a scene is refined, and what for."""

    steps: int = 5000
    """Pictures that are looked at, one after the other."""
    count: int = 20_000
    """Gaussians that there may be in the end: those that pictures pull at are split."""
    depth_weight: float = 0.1
    """What an error of depth counts beside one of colour."""
    seed: int = 0
    """Of the order of pictures."""


class Fit:
    """A scene that is being refined. Parts that are lit keep their normals."""

    def __init__(self, scene: Scene, source: RenderSource, views: Views, config: FitConfig) -> None:
        self._source, self._views, self._config = source, views, config
        self._rng = np.random.default_rng(config.seed)
        self._rows = Rows()
        self._fields = {name: source.field(name) for name in ROW_FIELDS}
        for name, (array, has_rows) in self._fields.items():
            setattr(self._rows, name, Field.of(array, has_rows))
        self._order = Order(
            rows=1, cameras=1, width=views.rgb.shape[2], height=views.rgb.shape[1],
            threads=1, lanes=best_width(self._library), free_view=free_view(source.model),
        )  # fmt: skip
        self._descent = Descent(sink=SINK_M, rise=RISE_M, narrowest=float(np.log(NARROWEST_M)))
        self._loss = np.zeros(2)
        # All views look equally bad at first.
        self._losses = np.full(len(views), 0.03)
        self.step_number = 0
        self._start(scene, [np.zeros(len(part.cloud)) for part in scene.parts])

    @cached_property
    def _library(self) -> ctypes.CDLL:
        library = compiled_library()
        if library is None:
            raise ManipleError(f"Fitting needs the compiled rasteriser. {HOW_TO_BUILD}.")
        return library

    def _start(self, scene: Scene, heights: list[NDArray]) -> None:
        """Lay out a scene, and forget what was known of gradients."""
        self._scene = scene
        self._compiled = compiled = CompiledScene(scene, self._source.model, in_order=True)
        self._struct = compiled.struct()
        groups = []
        for group, (place, _) in zip(compiled.bound, compiled.place, strict=True):
            cloud, discs = group.cloud, np.zeros(len(group.cloud), DISC)
            opaque = np.clip(cloud.opacities, 1e-4, 1 - 1e-4)
            discs["mean"], discs["turn"] = cloud.means, turns(cloud.quats_wxyz)
            discs["size"] = np.log(np.maximum(cloud.scales, 1e-9))
            discs["opacity"], discs["colour"] = np.log(opaque / (1 - opaque)), cloud.rgb
            discs["unit"] = cloud.scales.max(1)
            discs["is_flat"] = group.is_lit or not group.is_two_sided
            discs["at"] = np.arange(place.start, place.stop)
            discs["height"] = heights[group.part][group.source]
            groups.append(discs)
        self.discs = np.concatenate(groups)
        self._gradient = np.zeros((GRADIENTS, compiled.planes.shape[1]), np.float32)
        self.seen = np.zeros(compiled.planes.shape[1], np.float32)
        order = self._descent
        order.count, order.discs = len(self.discs), self.discs.ctypes.data
        order.gradient, order.planes = self._gradient.ctypes.data, compiled.planes.ctypes.data
        order.stride = compiled.planes.shape[1]
        self._measure()

    def step(self, view: int | None = None) -> float:
        """Look at one picture; return the mean squared error of its colours."""
        number = self._next_view() if view is None else view
        self._gradient[...] = 0.0
        loss = self.differentiate(number)
        rate = LAST_RATE ** (self.step_number / max(self._config.steps, 1))
        self._descent.rate[:] = [rate * r for r in RATES]
        self._library.descend(ctypes.byref(self._descent))
        self._losses[number] = loss
        self.step_number += 1
        # Chunks were measured before things moved.
        if self.step_number % 25 == 0:
            self._measure()
        return loss

    def _next_view(self) -> int:
        """Draw a view, rather one that looked wrong when it was last seen."""
        # Some views are hopeless, such as from inside of something.
        ends = np.cumsum(np.minimum(self._losses, 3.0 * np.median(self._losses)))
        return int(np.searchsorted(ends, self._rng.random() * ends[-1]))

    def differentiate(self, number: int) -> float:
        """Add the gradient of a view to what is there; return its mean squared error."""
        views = self._views
        row = views.rows[number : number + 1]
        output = Output(camera=int(views.cameras[number]))
        self._order.row = row.ctypes.data
        self._order.output = ctypes.addressof(output)
        self._loss[:] = 0.0
        training = Training(
            views.rgb[number].ctypes.data, views.depth[number].ctypes.data,
            self._config.depth_weight, self._gradient.ctypes.data, self.seen.ctypes.data,
            self._loss.ctypes.data,
        )  # fmt: skip
        if self._library.train(
            ctypes.byref(self._struct), ctypes.byref(self._rows), ctypes.byref(self._order),
            ctypes.byref(training),
        ):  # fmt: skip
            raise MemoryError("There is no memory for a gradient.")
        return float(self._loss[0]) / views.rgb[number].size

    def _measure(self) -> None:
        """Put balls around chunks, with room to move until the next time."""
        p = self._compiled.planes
        for chunk in self._compiled.chunks:
            here = slice(chunk.first, chunk.first + chunk.count)
            real = p[LOG2_OPACITY, here] > -900
            means = p[:3, here][:, real]
            centre = (means.min(1) + means.max(1)) / 2
            apart = np.linalg.norm(means - centre[:, None], axis=0)
            chunk.centre[:] = centre.tolist()
            chunk.radius = float((apart + 4.0 * p[LARGEST, here][real]).max()) * 1.1 + 1e-4

    def prune(self) -> None:
        """Look through every view, and give up the Gaussians that none of them shows."""
        for number in range(len(self._views)):
            self.differentiate(number)
        seen = self._by_part(self.seen[self.discs["at"]])
        self._rebuild([np.flatnonzero(weight > UNSEEN) for weight in seen], 0)

    def grow(self, count: int) -> None:
        """Split the Gaussians that pictures pull at most."""
        self._rebuild([np.arange(len(part.cloud)) for part in self._scene.parts], count)

    def _rebuild(self, kept: list[NDArray[np.intp]], count: int) -> None:
        scene = self.result()
        pull, heights = (
            [values[keep] for values, keep in zip(self._by_part(self.discs[n]), kept, strict=True)]
            for n in ("pull", "height")
        )
        total = sum(map(len, kept))
        more = max(0, min(count - total, total // 2))
        least = np.sort(np.concatenate(pull))[-more] if more else np.inf
        parts = []
        for k, (part, keep) in enumerate(zip(scene.parts, kept, strict=True)):
            chosen = np.flatnonzero(pull[k] >= least)
            parts.append(replace(part, cloud=split(part.cloud.take(keep), chosen)))
            heights[k] = np.concatenate([heights[k], heights[k][chosen]])
        self._start(replace(scene, parts=tuple(parts)), heights)

    def _by_part(self, values: NDArray) -> list[NDArray]:
        """Put what is known of each Gaussian in the order of the scene's clouds."""
        found = [
            np.zeros((len(part.cloud), *values.shape[1:]), values.dtype)
            for part in self._scene.parts
        ]
        start = 0
        for group in self._compiled.bound:
            found[group.part][group.source] = values[start : start + len(group.cloud)]
            start += len(group.cloud)
        return found

    def result(self) -> Scene:
        """Return the scene as it is now; its clouds are in the frames of their bodies."""
        parts = []
        for part, discs in zip(self._scene.parts, self._by_part(self.discs), strict=True):
            cloud = replace(
                part.cloud,
                means=discs["mean"].copy(),
                quats_wxyz=quats_of(discs["turn"]).astype(np.float32),
                scales=np.exp(discs["size"]),
                opacities=1 / (1 + np.exp(-discs["opacity"])),
            ).coloured(discs["colour"])
            plain = {"pos": (0.0, 0.0, 0.0), "quat_wxyz": (1.0, 0.0, 0.0, 0.0)}
            parts.append(replace(part, cloud=cloud, scale=1.0, gain=(1.0, 1.0, 1.0), **plain))
        return replace(self._scene, parts=tuple(parts))


def split(cloud: Cloud, which: NDArray[np.intp]) -> Cloud:
    """Put two smaller Gaussians in the place of some, side by side along the longest axis."""
    every = cloud.take(np.concatenate([np.arange(len(cloud)), which]))
    long = np.argmax(cloud.scales[which], 1)
    axis = turns(cloud.quats_wxyz[which])[np.arange(len(which)), :, long]
    away = (0.6 * cloud.scales[which, long][:, None] * axis).astype(np.float32)
    means, scales = every.means.copy(), every.scales.copy()
    means[which] -= away
    means[len(cloud) :] += away
    scales[which, long] *= 0.6
    scales[np.arange(len(cloud), len(every)), long] *= 0.6
    return replace(every, means=means, scales=scales)


def fit(
    scene: Scene,
    source: RenderSource,
    views: Views,
    config: FitConfig | None = None,
    tell: Callable[[int], None] | None = None,
) -> Scene:
    """Refine a scene against views of a source's rows; `tell` is called with steps done."""
    config = config or FitConfig()
    running = Fit(scene, source, views, config)
    grows_at = {int(config.steps * part) for part in GROWS_AT}
    prunes_at = {int(config.steps * part) for part in PRUNES_AT}
    for _ in range(config.steps):
        running.step()
        if running.step_number in prunes_at:
            running.prune()
        if running.step_number in grows_at:
            running.grow(config.count)
        if tell is not None:
            tell(1)
    return running.result()
