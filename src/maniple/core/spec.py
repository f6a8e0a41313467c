"""Describe the arrays of one environment step, once, for all code that stores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig

MOST_PIXELS = 8192
"""A picture's longest side: four of 8192 x 8192 fill a gigabyte."""
IMAGE_KINDS = ("rgb", "depth", "segmentation", "mask", "point_cloud")


def check_picture_size(name: str, sides: Sequence[int]) -> None:
    """Refuse pictures that no memory holds."""
    if max(sides) > MOST_PIXELS:
        raise BadConfig(f"{name} is {tuple(sides)}; a side has {MOST_PIXELS} pixels at most.")


@dataclass(frozen=True)
class ArraySpec:
    """Shape, type, bounds and meaning of one array of one environment."""

    shape: tuple[int, ...]
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float32))
    low: float | NDArray = -np.inf
    high: float | NDArray = np.inf
    image: str | None = None
    """Which kind of picture this is, one of IMAGE_KINDS; None: plain numbers."""
    meaning: str = ""
    """Units, frame and order of the numbers, for people: 'position (m), quaternion xyzw; world'."""
    points: tuple[int, ...] = ()
    """Where positions (x y z; metres, world) begin among the numbers."""

    def __post_init__(self) -> None:
        assert self.image is None or self.image in IMAGE_KINDS, self.image
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ArraySpec)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.image == other.image
            and all(
                np.array_equal(a, b) for a, b in zip(self.bounds(), other.bounds(), strict=True)
            )
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    @property
    def size(self) -> int:
        """Numbers in the array."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in the array."""
        return self.size * self.dtype.itemsize

    def fits(self, value: object) -> bool:
        """Whether a value is an array of exactly this type and shape; bounds are not looked at."""
        is_array = type(value) is np.ndarray
        return is_array and value.dtype == self.dtype and value.shape == self.shape

    def bounds(self) -> tuple[NDArray, NDArray]:
        """Lower and upper bound of every number, in the array's own type."""
        low, high = self.low, self.high
        if self.dtype.kind in "iub":
            info = np.iinfo(np.uint8 if self.dtype.kind == "b" else self.dtype)
            top = 1 if self.dtype.kind == "b" else info.max
            low, high = np.maximum(low, info.min), np.minimum(high, top)
        make = lambda x: np.broadcast_to(np.asarray(x).astype(self.dtype), self.shape)  # noqa: E731
        return make(low), make(high)


class Layout(Mapping[str, ArraySpec]):
    """An ordered, frozen table of named arrays.

    It makes the spaces, the slab, the replay ring, the dataset's features and the networks'
    inputs, so that no second list of keys exists anywhere.
    """

    def __init__(self, arrays: Mapping[str, ArraySpec]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> ArraySpec:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and list(self.items()) == list(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self._arrays.items()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}: {v.dtype}{list(v.shape)}" for k, v in self.items())
        return f"Layout({inside})"

    @property
    def nbytes(self) -> int:
        """Bytes of one environment's arrays."""
        return sum(spec.nbytes for spec in self.values())

    def __or__(self, other: Mapping[str, ArraySpec]) -> Layout:
        """Join two layouts, refusing a name that stands in both."""
        if twice := self.keys() & other.keys():
            raise BadConfig(f"Two arrays are named {sorted(twice)[0]!r}; rename one of them.")
        return Layout({**self._arrays, **other})
