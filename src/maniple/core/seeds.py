"""Grow every random number from one root: seed, rank, row, episode."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maniple.core.errors import BadConfig

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


def fresh_seed() -> int:
    """Return a seed from the operating system."""
    return secrets.randbits(63)


def row_seeds(seed: int | Sequence[int | None] | None, rows: int) -> list[int | None]:
    """Spread Gymnasium's seed argument over the rows: an int means seed, seed + 1, ...

    Raises:
        BadConfig: The list has another length than there are rows, or a seed is negative.
    """
    if seed is None:
        return [None] * rows
    if isinstance(seed, (int, np.integer)):
        seeds: list[int | None] = [int(seed) + i for i in range(rows)]
    else:
        seeds = [None if s is None else int(s) for s in seed]
    if len(seeds) != rows:
        raise BadConfig(
            f"seed has {len(seeds)} entries for {rows} environments; give one number or {rows}."
        )
    for row, value in enumerate(seeds):
        if value is not None and value < 0:
            raise BadConfig(f"The seed of row {row} is {value}; seeds are 0 or larger.")
    return seeds


def replacement_seed(seed: int, replacement: int) -> int:
    """Return the seed of a row whose simulator was replaced for the n-th time."""
    with np.errstate(over="ignore"):
        mixed = _hash(_hash(np.array([seed % 2**64], np.uint64)) ^ np.uint64(replacement))
    return int(mixed[0] >> np.uint64(1))


class SeedTree:
    """Remember which random stream every row is on, so that any episode replays alone."""

    def __init__(self, rows: int, rank: int = 0) -> None:
        self.rank = rank
        self.seed = np.zeros(rows, np.uint64)
        self.episode = np.zeros(rows, np.int64)
        self._is_seeded = np.zeros(rows, np.bool_)

    def start(self, rows: NDArray[np.intp], seeds: Sequence[int | None] | None = None) -> Draws:
        """Begin an episode in `rows` and return their random streams.

        A row that is given a seed starts over at episode 0; the others go on to the next one.
        """
        for k, row in enumerate(rows):
            seed = None if seeds is None else seeds[k]
            if seed is None and not self._is_seeded[row]:
                seed = fresh_seed()
            if seed is None:
                self.episode[row] += 1
            else:
                self.seed[row], self.episode[row] = seed % 2**64, 0
                self._is_seeded[row] = True
        return self.draws(rows)

    def draws(self, rows: NDArray[np.intp]) -> Draws:
        """Return the streams of the episodes that `rows` are in, from their beginning."""
        key = _hash(self.seed[rows])
        key = _hash(key ^ np.uint64(self.rank))
        return Draws(_hash(key ^ self.episode[rows].astype(np.uint64)))


class Draws:
    """Random numbers for many rows at once, each row from a stream of its own.

    Counter-based (SplitMix64), so that a row's numbers do not depend on which other rows are
    drawn with it, and no Python loop runs over the rows.
    """

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self._keys = keys
        self._drawn = 0

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, rows: NDArray[np.intp]) -> Draws:
        """Return the streams of some rows, from their beginning."""
        return Draws(self._keys[rows])

    def branch(self, label: str | NDArray[np.int64]) -> Draws:
        """Return streams of their own, by a name or by a number for each row."""
        number = np.uint64(crc32(label.encode())) if isinstance(label, str) else label
        return Draws(_hash(_hash(self._keys) ^ np.asarray(number).astype(np.uint64)))

    def random(self, shape: tuple[int, ...] = ()) -> NDArray[np.float64]:
        """Uniform numbers in [0, 1), (rows, *shape)."""
        return (self._bits(shape) >> np.uint64(11)).astype(np.float64) * _TO_UNIT

    def uniform(self, low: ArrayLike, high: ArrayLike, shape: tuple[int, ...] | None = None):
        """Uniform numbers between two bounds of any shape, (rows, *shape)."""
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        if shape is None:
            shape = np.broadcast_shapes(low.shape, high.shape)
        return low + (high - low) * self.random(shape)

    def normal(self, scale: ArrayLike = 1.0, shape: tuple[int, ...] | None = None):
        """Gaussian numbers around 0, (rows, *shape)."""
        scale = np.asarray(scale, np.float64)
        shape = scale.shape if shape is None else shape
        radius = np.sqrt(-2.0 * np.log1p(-self.random(shape)))
        return scale * radius * np.cos(2 * np.pi * self.random(shape))

    def integers(self, high: int, shape: tuple[int, ...] = ()) -> NDArray[np.int64]:
        """Whole numbers in [0, high), (rows, *shape)."""
        return (self.random(shape) * high).astype(np.int64)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A random order of 0..n-1 for each row, (rows, n)."""
        return np.argsort(self.random((n,)), axis=1, kind="stable")

    def _bits(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        count = int(np.prod(shape, dtype=np.int64))
        at = np.arange(self._drawn, self._drawn + count, dtype=np.uint64)
        self._drawn += count
        bits = _hash(self._keys[:, None] + at[None, :] * _GOLDEN)
        return bits.reshape(len(self), *shape)


def _hash(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finish SplitMix64: a bijection that spreads every input bit over all output bits."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX_A
    x = (x ^ (x >> np.uint64(27))) * _MIX_B
    return x ^ (x >> np.uint64(31))
