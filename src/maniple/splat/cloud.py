"""A cloud: Gaussians as a struct of arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import ManipleError

C0 = 0.28209479177387814
"""The first spherical harmonic."""
COEFFICIENTS = (1, 4, 9, 16)
"""Harmonics of degree 0, 1, 2 and 3."""
MODES: dict[str, tuple[float, bool]] = {
    "default": (0.3, False),
    "antialiased": (0.3, True),
    "mip": (0.1, True),
}
"""By how many square pixels a splat is widened, and whether its opacity makes up for that."""
MAX_SCALE_M, MAX_PLACE_M = 1e4, 1e5


class BadCloud(ManipleError, ValueError):
    """Gaussians or a file of them that cannot be used."""


@dataclass(frozen=True)
class Cloud:
    """Gaussians, as they are drawn: activations are applied."""

    means: NDArray[np.float32]
    """(n, 3) metres."""
    quats_wxyz: NDArray[np.float32]
    """(n, 4), normalised."""
    scales: NDArray[np.float32]
    """(n, 3) standard deviations, metres."""
    opacities: NDArray[np.float32]
    """(n,), 0 to 1."""
    sh: NDArray[np.float32]
    """(n, 1, 4, 9 or 16; 3): a colour is 0.5 plus the harmonics of the direction."""
    labels: NDArray[np.int32] | None = None
    """(n,): which part of a scene each Gaussian belongs to."""
    mode: str = "default"
    """How splats of a pixel or less are treated: a key of MODES."""

    def __len__(self) -> int:
        return len(self.means)

    @property
    def rgb(self) -> NDArray[np.float32]:
        """Colours without what depends on the direction, (n, 3)."""
        return (0.5 + C0 * self.sh[:, 0]).astype(np.float32)

    def take(self, which: NDArray) -> Cloud:
        """Return some of the Gaussians."""
        labels = None if self.labels is None else self.labels[which]
        return Cloud(
            self.means[which], self.quats_wxyz[which], self.scales[which],
            self.opacities[which], self.sh[which], labels, self.mode,
        )  # fmt: skip

    def coloured(self, rgb: NDArray) -> Cloud:
        """Return the same Gaussians in one colour each, whatever the direction."""
        sh = ((np.asarray(rgb, np.float32) - 0.5) / C0)[:, None]
        return replace(self, sh=np.ascontiguousarray(sh, np.float32))


def make_cloud(
    means: NDArray,
    quats_wxyz: NDArray,
    scales: NDArray,
    opacities: NDArray,
    sh: NDArray,
    labels: NDArray | None = None,
    mode: str = "default",
    origin: str = "the cloud",
) -> Cloud:
    """Make a cloud of arrays of any type, or raise BadCloud where they make no sense."""
    count = len(means)
    if not count:
        raise BadCloud(f"{origin} holds no Gaussians.")
    arrays = {"positions": means, "rotations": quats_wxyz, "scales": scales,
              "opacities": opacities, "colours": sh}  # fmt: skip
    for name, array in arrays.items():
        if len(array) != count:
            raise BadCloud(f"{origin} has {count} positions but {len(array)} {name}.")
        bad = count - int(np.isfinite(array.reshape(count, -1)).all(1).sum())
        if bad:
            raise BadCloud(f"{origin}: {name} of {bad} Gaussians are NaN or infinite.")
    if sh.ndim != 3 or sh.shape[1] not in COEFFICIENTS or sh.shape[2] != 3:
        raise BadCloud(f"{origin} has colours of shape {sh.shape}; (n, 1, 4, 9 or 16; 3) is known.")
    if mode not in MODES:
        raise BadCloud(f"{origin} has the mode {mode!r}; there are: {', '.join(MODES)}.")
    length = np.linalg.norm(quats_wxyz.astype(np.float64), axis=1)
    _refuse(length < 1e-9, origin, "have a rotation of length zero")
    _refuse(np.abs(means).max(1) > MAX_PLACE_M, origin, f"are beyond {MAX_PLACE_M:g} m")
    _refuse(scales.min(1) < 0, origin, "have a negative scale")
    _refuse(scales.max(1) > MAX_SCALE_M, origin, f"are larger than {MAX_SCALE_M:g} m")
    _refuse((opacities < 0) | (opacities > 1), origin, "have an opacity outside 0 to 1")
    # A colour of a million would only be a NaN later.
    _refuse(np.abs(sh).max((1, 2)) > 1e4, origin, "have an absurd colour")
    single = (np.ascontiguousarray(a, np.float32) for a in (means, scales, opacities, sh))
    places, sizes, opaque, colours = single
    turned = np.ascontiguousarray(quats_wxyz / length[:, None], np.float32)
    owners = None if labels is None else np.ascontiguousarray(labels, np.int32)
    return Cloud(places, turned, sizes, opaque, colours, owners, mode)


def _refuse(is_bad: NDArray, origin: str, what: str) -> None:
    if np.any(is_bad):
        raise BadCloud(f"{origin}: {int(np.sum(is_bad))} Gaussians {what}.")


def turns(quats_wxyz: NDArray) -> NDArray[np.float64]:
    """Return rotation matrices, (n, 3, 3)."""
    w, x, y, z = np.moveaxis(np.asarray(quats_wxyz, np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def multiply_quats(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Return a b: first b, then a; wxyz."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, np.float64), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        -1,
    )


def quats_of(axes: NDArray) -> NDArray[np.float64]:
    """Return quaternions wxyz of rotation matrices, (n, 3, 3)."""
    m = axes.astype(np.float64)
    trace = np.einsum("nii->n", m)
    found = np.stack(
        [1 + trace, m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]], 1
    )
    # Of four formulas the one whose first term is largest is exact.
    best = np.argmax(np.stack([trace, m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]], 1), 1)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        q = np.empty_like(found)
        q[:, 0] = m[:, k, j] - m[:, j, k]
        q[:, 1 + i] = 1 + m[:, i, i] - m[:, j, j] - m[:, k, k]
        q[:, 1 + j] = m[:, j, i] + m[:, i, j]
        q[:, 1 + k] = m[:, k, i] + m[:, i, k]
        found = np.where((best == i + 1)[:, None], q, found)
    return found / np.linalg.norm(found, axis=1, keepdims=True)
