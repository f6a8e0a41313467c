"""Layouts and the blocks of memory made of them."""

import numpy as np
import pytest
from gymnasium import spaces

from maniple.core.block import Block
from maniple.core.errors import BadConfig
from maniple.core.space import dict_space, flatten, layout_of, nest
from maniple.core.spec import ArraySpec, Layout

LAYOUT = Layout(
    {
        "a": ArraySpec((3,), np.float32, -1, 1),
        "image": ArraySpec((64, 64, 3), np.uint8, 0, 255),
        "b": ArraySpec((), np.float32),
        "c": ArraySpec((2, 2), np.float32),
        "flag": ArraySpec((), np.bool_),
    }
)


def test_small_arrays_share_one_block():
    block = Block(LAYOUT, 5)
    assert block.packed[np.dtype(np.float32)].shape == (5, 3 + 1 + 4)
    for name in ("a", "b", "c"):
        assert np.shares_memory(block[name], block.packed[np.dtype(np.float32)])
    assert block.large.keys() == {"image"}


def test_views_write_through_and_copies_do_not():
    block = Block(LAYOUT, 4)
    block["c"][2] = [[1, 2], [3, 4]]
    copy = block.copy()
    assert copy["c"][2].tolist() == [[1, 2], [3, 4]]
    block["c"][2] = 0
    assert copy["c"][2].tolist() == [[1, 2], [3, 4]]


def test_frozen_views_refuse_writing():
    views = Block(LAYOUT, 2).frozen()
    with pytest.raises(ValueError, match="read-only"):
        views["a"][0, 0] = 1


def test_rows_share_memory():
    block = Block(LAYOUT, 6)
    part = block.rows_of(slice(2, 4))
    part["a"][1] = 7
    part["image"][0] = 9
    assert block["a"][3].tolist() == [7, 7, 7]
    assert block["image"][2].min() == 9
    assert part.rows == 2


def test_a_name_stands_once():
    with pytest.raises(BadConfig, match="'a'"):
        _ = LAYOUT | {"a": ArraySpec((1,))}


def test_dict_space_has_shapes_types_and_bounds():
    space = dict_space(LAYOUT)
    assert space["image"].dtype == np.uint8
    assert space["a"].low.tolist() == [-1] * 3
    assert layout_of(space)["c"] == LAYOUT["c"]


NESTED = spaces.Dict(
    {
        "robot": spaces.Dict({"q": spaces.Box(-1, 1, (2,))}),
        "pair": spaces.Tuple([spaces.Discrete(3, start=1), spaces.MultiBinary(4)]),
    }
)


def test_nested_spaces_come_back_as_they_were():
    value = NESTED.sample()
    flat = flatten(NESTED, value)
    assert set(flat) == set(layout_of(NESTED)) == {"robot.q", "pair.0", "pair.1"}
    again = nest(NESTED, flat)
    assert NESTED.contains(again)


def test_bare_box_is_one_array():
    box = spaces.Box(0, 1, (3,))
    assert list(layout_of(box)) == ["obs"]
    assert nest(box, {"obs": np.ones(3)}).tolist() == [1, 1, 1]


def test_a_space_without_fixed_size_is_refused():
    with pytest.raises(BadConfig, match="Text"):
        layout_of(spaces.Dict({"says": spaces.Text(5)}))
