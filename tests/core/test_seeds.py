"""The seed tree: every stream its own, every episode replayable."""

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.core.seeds import SeedTree, replacement_seed, row_seeds


def first(tree, rows, seeds=None):
    return tree.start(np.array(rows), seeds).uniform(0, 1, (4,))


def test_same_seed_same_numbers():
    assert np.array_equal(first(SeedTree(2), [0, 1], [7, 8]), first(SeedTree(2), [0, 1], [7, 8]))


def test_numbers_do_not_depend_on_the_company():
    together = first(SeedTree(3), [0, 1, 2], [5, 6, 7])
    alone = SeedTree(3)
    assert np.array_equal(first(alone, [1], [6])[0], together[1])


def test_episodes_and_ranks_and_reborn_rows_differ():
    tree = SeedTree(1)
    values = [first(tree, [0], [3])[0, 0]]
    values += [first(tree, [0])[0, 0] for _ in range(3)]
    values += [first(SeedTree(1, rank=1), [0], [3])[0, 0]]
    values += [first(SeedTree(1), [0], [replacement_seed(3, k)])[0, 0] for k in (1, 2)]
    assert len(set(values)) == len(values)


def test_an_episode_replays_from_its_numbers():
    tree = SeedTree(1)
    for _ in range(4):
        want = first(tree, [0], None)
    again = SeedTree(1)
    again.seed[0], again.episode[0] = tree.seed[0], tree.episode[0]
    assert np.array_equal(again.draws(np.array([0])).uniform(0, 1, (4,)), want)


def test_unseeded_rows_get_different_seeds():
    tree = SeedTree(50)
    tree.start(np.arange(50))
    assert len(set(tree.seed.tolist())) == 50


def test_distributions():
    draws = SeedTree(20_000).start(np.arange(20_000), list(range(20_000)))
    uniform, normal = draws.uniform([-1, 0], [1, 4]), draws.normal(2.0, (1,))
    whole = draws.integers(6)
    assert np.allclose(uniform.mean(0), [0, 2], atol=0.05)
    assert uniform.min() >= -1 and uniform[:, 1].max() < 4
    assert abs(normal.mean()) < 0.05 and abs(normal.std() - 2) < 0.05
    assert np.bincount(whole, minlength=6).min() > 3000 and whole.max() == 5
    assert np.array_equal(np.sort(draws.permutation(5), axis=1)[0], np.arange(5))


def test_consecutive_seeds_are_uncorrelated():
    draws = SeedTree(5000).start(np.arange(5000), list(range(5000)))
    x = draws.random((2,))
    assert abs(np.corrcoef(x[:-1, 0], x[1:, 0])[0, 1]) < 0.05
    assert abs(np.corrcoef(x[:, 0], x[:, 1])[0, 1]) < 0.05


def test_row_seeds():
    assert row_seeds(5, 3) == [5, 6, 7]
    assert row_seeds([1, None, 2], 3) == [1, None, 2]
    assert row_seeds(None, 2) == [None, None]
    with pytest.raises(BadConfig, match="2 entries for 3"):
        row_seeds([1, 2], 3)
    with pytest.raises(BadConfig, match="row 0 is -1"):
        row_seeds(-1, 1)
