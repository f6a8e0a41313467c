"""Laws of perturbed episodes, over every task: each axis does something, alike everywhere."""

import numpy as np
import pytest
from conftest import listed, same

import maniple
from maniple.registry import TASKS
from maniple.sim.perturbation import USUAL

QUICK = "so101/LiftCube-v0"


def played(task, perturb, rows=2, steps=3, **options):
    """Return what rows see, and their states, while they take the same random actions."""
    camera = maniple.registry.find(task)().cameras[0]
    # Splats of every scene would have to be made first.
    envs = maniple.make_vec(
        task, rows, perturb=perturb, cameras=(camera,), image_size=(32, 32), renderer="fast",
        **options,
    )  # fmt: skip
    shots = [envs.reset(seed=5)[0]]
    low, high = envs.action_spec.bounds()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        action = rng.uniform(low, high).astype(envs.action_spec.dtype)
        shots.append(envs.step(np.repeat(action[None], rows, 0))[0])
    states = envs.get_state()
    envs.close()
    return shots, states


@pytest.mark.parametrize("task", listed(TASKS))
def test_engines_and_numbers_agree(task):
    """All axes at once: the same bits in any number of rows and on any engine."""
    expected, states = played(task, USUAL, 3)
    for rows, engine in ((3, "serial"), (2, "process"), (1, "native")):
        shots, ends = played(task, USUAL, rows, engine=engine)
        for a, b in zip(expected, shots, strict=True):
            assert same({k: v[:rows] for k, v in a.items()}, b), (rows, engine)
        for a, b in zip(states, ends, strict=False):
            assert np.array_equal(a["integration"], b["integration"])


@pytest.mark.parametrize(
    "task", [pytest.param(t, marks=() if t == QUICK else pytest.mark.slow) for t in TASKS]
)
def test_every_axis_does_something(task):
    clean, clean_states = played(task, {})
    for axis, far in USUAL.items():
        shots, states = played(task, {axis: far})
        seen_alike = all(same(a, b) for a, b in zip(clean, shots, strict=True))
        stepped_alike = all(
            a["integration"].shape == b["integration"].shape
            and np.array_equal(a["integration"], b["integration"])
            and not b["expanded"].keys() - a["expanded"].keys()
            for a, b in zip(clean_states, states, strict=True)
        )
        assert not (seen_alike and stepped_alike), axis


@pytest.mark.parametrize("task", listed(TASKS))
def test_a_perturbed_moment_goes_on_alike(task):
    """A state of a perturbed episode is all that going on needs, late actions included."""
    perturb = {name: USUAL[name] for name in USUAL if name != "pixel_noise"}
    # Splats with distractors among them would have to be made first.
    envs = maniple.make_vec(task, 2, perturb=perturb, renderer="fast")
    envs.reset(seed=5)
    low, high = envs.action_spec.bounds()
    rng = np.random.default_rng(0)
    moves = [
        np.repeat(rng.uniform(low, high).astype(envs.action_spec.dtype)[None], 2, 0)
        for _ in range(6)
    ]
    for move in moves[:3]:
        envs.step(move)
    states = envs.get_state()
    after = [envs.step(move)[:2] for move in moves[3:]]
    envs.reset(seed=77)
    envs.step(moves[0])
    envs.set_state(states)
    assert same(after, [envs.step(move)[:2] for move in moves[3:]])
    envs.close()
