"""A scene laid out for the rasteriser: planes of floats, grouped by body."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.scene import SceneArrays
from maniple.sim.fast.support import geom_colours, still_bodies
from maniple.sim.kernel.structs import address
from maniple.splat.cloud import MODES, Cloud, turns
from maniple.splat.scene import Scene, find_geom
from maniple.splat.structs import (
    CHUNK,
    COLOUR,
    EMISSION,
    EXPONENT,
    FACTOR,
    IS_ANTIALIASED,
    IS_LIT,
    IS_TWO_SIDED,
    LARGEST,
    LOG2_OPACITY,
    NORMAL,
    POINTERS,
    SPECULAR,
    Chunk,
    CloudStruct,
    Group,
)  # fmt: skip

NEAREST_M, NEAR_M = 0.005, 0.02
"""What is nearer than this is not drawn; wrist cameras see their own fingers."""
REACH = 3.33
LANES = 8


class Bound(NamedTuple):
    """Gaussians of one cloud that follow one body, in its frame."""

    cloud: Cloud
    body: int
    geoms: NDArray[np.int32]
    """Of each Gaussian; -1: none."""
    source: NDArray[np.intp]
    """Which Gaussians of the part they are."""
    part: int
    is_lit: bool
    is_two_sided: bool
    is_still: bool

    @property
    def factors(self) -> NDArray[np.float64]:
        """Rotations times scales, (n, 3, 3): a covariance is this times its transpose."""
        return turns(self.cloud.quats_wxyz) * self.cloud.scales.astype(np.float64)[:, None]

    @property
    def normals(self) -> NDArray[np.float64]:
        """The third axis of lit discs; else the axis in which a Gaussian is thinnest."""
        axes = turns(self.cloud.quats_wxyz)
        if self.is_lit or not self.is_two_sided:
            return axes[:, :, 2]
        thin = np.argmin(self.cloud.scales, 1)
        return axes[np.arange(len(axes)), :, thin]


class CompiledScene:
    """The arrays of a CloudStruct, kept alive with it."""

    def __init__(self, scene: Scene, model: mujoco.MjModel, in_order: bool = False) -> None:
        """Lay out a scene; `in_order` leaves the Gaussians of a group as they come."""
        self.scene = scene
        self.model = model
        self.surroundings = SceneArrays(model)
        self.near = min(max(self.surroundings.near, NEAREST_M), NEAR_M)
        self.far = self.surroundings.far
        self.background = np.ascontiguousarray(scene.background, np.float32)
        self.bound = bind(scene, model)
        self.colours = geom_colours(model)[:, :3]
        self._lay_out(in_order)
        self.labels = model.ngeom + 1
        lit = np.zeros(self.labels, np.bool_)
        still = np.zeros(self.labels, np.bool_)
        for group in self.bound:
            lit[group.geoms] |= group.is_lit
            still[group.geoms] |= group.is_still
        self.label_is_lit, self.label_is_still = lit, still
        self.has_moving = any(not group.is_still for group in self.bound)

    def _lay_out(self, in_order: bool) -> None:
        padded = [-(-len(group.cloud) // LANES) * LANES for group in self.bound]
        count = sum(padded)
        coefficients = max(group.cloud.sh.shape[1] for group in self.bound)
        self.planes = np.zeros((COLOUR + 3 * coefficients, count), np.float32)
        self.planes[LOG2_OPACITY] = -1000.0
        self.label = np.full(count, self.model.ngeom, np.int32)
        self.groups = (Group * len(self.bound))()
        self.place: list[tuple[slice, NDArray[np.intp]]] = []
        """Of each group: where it is, and in which order its Gaussians are there."""
        chunks: list[Chunk] = []
        start = 0
        for number, (group, size) in enumerate(zip(self.bound, padded, strict=True)):
            eps2d, is_antialiased = MODES[group.cloud.mode]
            flags = IS_LIT * group.is_lit + IS_ANTIALIASED * is_antialiased
            flags += IS_TWO_SIDED * group.is_two_sided
            size_sh = group.cloud.sh.shape[1]
            self.groups[number] = Group(group.body, flags, size_sh, group.is_still, eps2d)
            order = np.arange(len(group.cloud)) if in_order else _seen_together(group)
            here = slice(start, start + len(group.cloud))
            self.place.append((here, order))
            self._fill(group, here, order)
            chunks += _chunks(self.planes, number, start, size, len(group.cloud))
            start += size
        self.chunks = (Chunk * len(chunks))(*chunks)

    def _fill(self, group: Bound, here: slice, order: NDArray[np.intp]) -> None:
        cloud, p = group.cloud.take(order), self.planes
        factor = turns(cloud.quats_wxyz) * cloud.scales[:, None]
        p[:3, here] = cloud.means.T
        p[FACTOR : FACTOR + 9, here] = factor.reshape(-1, 9).T
        with np.errstate(divide="ignore"):
            p[LOG2_OPACITY, here] = np.maximum(np.log2(cloud.opacities), -1000.0)
        p[LARGEST, here] = cloud.scales.max(1)
        p[NORMAL : NORMAL + 3, here] = group.normals[order].T
        geoms = group.geoms[order]
        around = self.surroundings
        # What belongs to no geom, number -1, has no gloss.
        p[SPECULAR, here] = np.append(around.specular, 0.0)[geoms]
        p[EXPONENT, here] = 128.0 * np.append(around.shininess, 0.0)[geoms]
        p[EMISSION, here] = np.append(around.emission, 0.0)[geoms]
        coefficients = cloud.sh.shape[1]
        p[COLOUR : COLOUR + 3 * coefficients, here] = cloud.sh.reshape(len(cloud), -1).T
        self.label[here] = np.where(geoms >= 0, geoms, self.model.ngeom)

    def struct(self) -> CloudStruct:
        """Return the struct; it points into these arrays."""
        around = self.surroundings
        struct = CloudStruct(
            count=self.planes.shape[1],
            groups=len(self.groups),
            chunks=len(self.chunks),
            lights=len(around.light_is_point),
            labels=self.labels,
            sky=len(self.background),
            has_headlight=int(around.has_headlight),
            near=self.near,
            far=self.far,
        )
        arrays = {"planes": self.planes, "label": self.label, "sky_table": self.background}
        for name in POINTERS:
            if name in ("group", "chunk"):
                setattr(struct, name, ctypes.addressof(getattr(self, f"{name}s")))
            else:
                array = arrays.get(name)
                setattr(struct, name, address(getattr(around, name) if array is None else array))
        return struct

    def drop_clouds(self) -> None:
        """Forget what the arrays were made of: compiled rasterisers read nothing else."""
        self.bound = []
        self.scene = replace(self.scene, parts=())
        # What is freed in small pieces otherwise stays with the process: a third of its splats.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
        if trim is not None:
            trim(0)

    def tints(self, rgba: NDArray) -> NDArray[np.float32]:
        """Return gains and offsets of colours, (rows, labels, 6), for geoms of these colours.

        Material colours are shifted; colours that were photographed are scaled.
        """
        now = np.asarray(rgba, np.float32)[..., :3]
        tints = np.zeros((len(now), self.labels, 6), np.float32)
        tints[..., :3] = 1.0
        lit = self.label_is_lit[:-1, None]
        ratio = np.where(self.colours > 0.02, now / np.maximum(self.colours, 0.02), 1.0)
        tints[:, :-1, :3] = np.where(lit, 1.0, ratio)
        tints[:, :-1, 3:] = np.where(lit, now - self.colours, 0.0)
        return tints


def bind(scene: Scene, model: mujoco.MjModel) -> list[Bound]:
    """Split the clouds of a scene by body, still bodies first."""
    still = still_bodies(model)
    found: list[Bound] = []
    for number, part in enumerate(scene.parts):
        owners = [find_geom(model, owner) for owner in part.owners]
        cloud = part.placed()
        labels = part.owner_numbers
        bodies = np.array([body for body, _ in owners])[labels]
        geoms = np.array([geom for _, geom in owners], np.int32)[labels]
        for body in np.unique(bodies).tolist():
            mine = np.flatnonzero(bodies == body)
            found.append(
                Bound(cloud.take(mine), body, geoms[mine], mine, number, part.is_lit,
                      part.is_two_sided, bool(still[body]))
            )  # fmt: skip
    return sorted(found, key=lambda group: not group.is_still)


def _seen_together(group: Bound) -> NDArray[np.intp]:
    """Order Gaussians by the side that they are on, then by where they are.

    Those that are seen from one side only are then given up eight at a time.
    """
    order = _near_each_other(group.cloud.means)
    if group.is_two_sided:
        return order
    normals = group.normals[order]
    axis = np.argmax(np.abs(normals), 1)
    is_back = normals[np.arange(len(axis)), axis] < 0
    return order[np.argsort(2 * axis + is_back, kind="stable")]


def _near_each_other(means: NDArray) -> NDArray[np.intp]:
    """Order points along a Z-curve, so that neighbours in memory are neighbours in space."""
    low, high = means.min(0), means.max(0)
    cells = ((means - low) / np.maximum(high - low, 1e-9) * 1023).astype(np.int64)
    code = np.zeros(len(means), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


def _chunks(planes: NDArray, group: int, start: int, size: int, count: int) -> list[Chunk]:
    chunks = []
    for first in range(start, start + size, CHUNK):
        length = min(CHUNK, start + size - first)
        real = slice(first, min(first + length, start + count))
        means = planes[:3, real].astype(np.float64)
        centre = (means.min(1) + means.max(1)) / 2
        apart = np.linalg.norm(means - centre[:, None], axis=0) + REACH * planes[LARGEST, real]
        chunk = Chunk(first, length, group, radius=float(apart.max()) * 1.0001 + 1e-6)
        chunk.centre[:] = centre.tolist()
        chunks.append(chunk)
    return chunks
