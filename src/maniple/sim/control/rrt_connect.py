"""Find a path between two joint positions around obstacles: RRT-Connect, then shortcuts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

IsFree = Callable[[NDArray], bool]

CHECK_RAD = 0.08
"""Distance between two looks for a collision, largest joint."""
EXTEND_RAD = 0.4
MOST_NODES = 400
SHORTCUTS = 40


def is_clear(a: NDArray, b: NDArray, is_free: IsFree) -> bool:
    """Whether a straight line is free, its end included and its beginning not."""
    count = max(1, int(np.ceil(np.abs(b - a).max() / CHECK_RAD)))
    return all(is_free(a + (b - a) * (k / count)) for k in range(1, count + 1))


def connect(
    start: NDArray,
    goal: NDArray,
    is_free: IsFree,
    low: NDArray,
    high: NDArray,
    rng: np.random.Generator,
) -> list[NDArray] | None:
    """Grow a tree from each end until they meet; return the way between, or nothing."""
    trees: list[tuple[list[NDArray], list[int]]] = [([start], [-1]), ([goal], [-1])]
    for turn in range(MOST_NODES):
        mine, other = trees[turn % 2], trees[1 - turn % 2]
        reached = _extend(mine, rng.uniform(low, high), is_free)
        if reached is None:
            continue
        while True:
            met = _extend(other, reached, is_free)
            if met is None:
                break
            if np.array_equal(met, reached):
                halves = _walk(mine), _walk(other)
                first, second = halves if turn % 2 == 0 else halves[::-1]
                return first[::-1] + second[1:]
    return None


def shortened(path: list[NDArray], is_free: IsFree, rng: np.random.Generator) -> list[NDArray]:
    """Cut corners where the straight line between two points of the path is free."""
    for _ in range(SHORTCUTS):
        if len(path) < 3:
            break
        i, j = sorted(rng.choice(len(path), 2, replace=False).tolist())
        if j - i > 1 and is_clear(path[i], path[j], is_free):
            path = path[: i + 1] + path[j:]
    return path


def _extend(
    tree: tuple[list[NDArray], list[int]], towards: NDArray, is_free: IsFree
) -> NDArray | None:
    nodes, parents = tree
    gaps = np.abs(np.stack(nodes) - towards).max(1)
    near = int(np.argmin(gaps))
    way = towards - nodes[near]
    is_within = gaps[near] <= EXTEND_RAD
    new = towards if is_within else nodes[near] + way * (EXTEND_RAD / gaps[near])
    if not is_clear(nodes[near], new, is_free):
        return None
    nodes.append(new)
    parents.append(near)
    return new


def _walk(tree: tuple[list[NDArray], list[int]]) -> list[NDArray]:
    """From a tree's newest node back to its root."""
    nodes, parents = tree
    at, way = len(nodes) - 1, []
    while at >= 0:
        way.append(nodes[at])
        at = parents[at]
    return way
