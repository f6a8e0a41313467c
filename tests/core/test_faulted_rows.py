"""One picture of a fault, wherever it happens."""

import numpy as np

from maniple.core.faults import LOST, FaultedRows, fault_text, lost_rows, repeat_and_cut_off
from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import StepArrays, scalar


def arrays(value):
    made = StepArrays(Layout({"x": ArraySpec((2,), np.dtype("f4"))}), Layout({"e": scalar()}), 3)
    made.obs["x"][...] = value
    made.extras["e"][...] = value
    made.reward[...] = value
    made.ends[0] = True
    return made


def test_a_faulted_row_is_shown_until_its_release():
    rows, before, now = FaultedRows(), arrays(1), arrays(2)
    rows.add(1, before)
    before.obs["x"][...] = 9
    rows.show(now)
    assert now.obs["x"][:, 0].tolist() == [2, 1, 2]
    assert now.reward.tolist() == [2, 0, 2]
    assert now.terminated.tolist() == [True, False, True]
    assert now.truncated.tolist() == [False, True, False]
    rows.release(np.array([0, 2]))
    assert 1 in rows
    rows.release(np.array([1]))
    assert not rows


def test_repeat_and_cut_off():
    before, now = arrays(1), arrays(2)
    repeat_and_cut_off(now, before, slice(1, 3))
    assert now.obs["x"][:, 0].tolist() == now.extras["e"].tolist() == [2, 1, 1]
    assert now.truncated.tolist() == [False, True, True]


def test_the_text():
    text = fault_text(4, "it broke", 7, 3, np.array([0.123456, 1]), episode=2)
    assert text == "row 4: it broke; seed 7, episode 2, step 3, last action [0.1235, 1.    ]"
    assert fault_text(0, "x", None, 0, None) == "row 0: x; seed None, step 0, last action none yet"


def test_lost_rows():
    assert lost_rows({"success": 1}) is None
    info = {f"_{key}": np.eye(3, dtype=bool)[k] for k, key in enumerate(LOST[:2])}
    assert lost_rows(info).tolist() == [True, True, False]
