"""What an actor sends is checked: rubbish is dropped and counted, never learned from."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.learn.parcel import read_parcel
from maniple.learn.step_queue import StepQueue

LAYOUT = Layout({"x": ArraySpec((3,)), "front_rgb": ArraySpec((4, 4, 3), "uint8", 0, 255, "rgb")})
ACTION = ArraySpec((2,), "float32", -1, 1)


def arrays(steps=5, rows=2):
    """What an honest actor sends."""
    return {
        "obs.x": np.zeros((steps + 1, rows, 3), np.float32),
        "obs.front_rgb": np.zeros((steps + 1, rows, 4, 4, 3), np.uint8),
        "action": np.zeros((steps, rows, 2), np.float32),
        "reward": np.zeros((steps, rows), np.float32),
        **{n: np.zeros((steps, rows), np.bool_) for n in ("terminated", "ended", "usable")},
    }


def parcel(**changed):
    """An honest parcel with some arrays changed; None leaves one out."""
    sent = {name: array for name, array in (arrays() | changed).items() if array is not None}
    return ("actor", 1, 10, save(sent), json.dumps({"version": 3, "train_return": 1.5}))


def test_an_honest_parcel_is_read():
    steps = read_parcel(parcel(), LAYOUT, ACTION)
    assert steps.count == 10 and steps.metrics == {"train_return": 1.5}


@pytest.mark.parametrize(
    "changed",
    [
        {"reward": np.full((5, 2), np.nan, np.float32)},
        {"obs.x": np.full((6, 2, 3), np.inf, np.float32)},
        {"obs.x": np.zeros((5, 2, 3), np.float32)},
        {"obs.x": np.zeros((6, 2, 3), np.float64)},
        {"action": np.zeros((5, 2, 7), np.float32)},
        {"usable": None},
        {"more": np.zeros(3)},
        {"reward": np.zeros((0, 2), np.float32)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(changed):
    with pytest.raises(BadConfig):
        read_parcel(parcel(**changed), LAYOUT, ACTION)


def test_random_bytes_and_types_are_refused():
    """Two thousand mutations: refused, or read as something that fits; never another error."""
    rng = np.random.default_rng(11)
    whole = parcel()[3]
    for _ in range(2_000):
        blob = bytearray(whole)
        for _ in range(rng.integers(1, 8)):
            blob[rng.integers(len(blob))] = rng.integers(256)
        blob = bytes(blob[: rng.integers(len(blob) + 1)]) if rng.random() < 0.3 else bytes(blob)
        try:
            steps = read_parcel(("a", 1, 10**9, blob, '{"x": NaN, "y": [1]}'), LAYOUT, ACTION)
        except BadConfig:
            continue
        assert steps.count == 10 and steps.metrics == {}
    for odd in (None, 3, (), ("a",) * 5, ("a", 1, 1, 7, "{}"), [1, 2, 3, b"", "[" * 50_000]):
        with pytest.raises(BadConfig):
            read_parcel(odd, LAYOUT, ACTION)


def test_the_queue_does_not_trust_the_stated_length():
    """One parcel that claims to be everything does not push the others out."""
    queue = StepQueue(most_steps=100)
    assert queue.push("a", 1, 10, b"x" * 40, "{}")
    queue.push("b", 1, 10**12, b"y" * 30, "{}")
    queue.push("c", 1, 10**9, b"y" * 30, "{}")
    queue.push("d", "one", -5, b"", "{}")
    queue.push("e", 1, 10, "text", "{}")
    assert [p[0] for p in queue.pull(10)] == ["a", "b", "c"]
    assert queue.stats()["refused"] == 2
