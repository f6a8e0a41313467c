"""Episodes whose every number is known from their seed."""

import numpy as np

from maniple.data.episode import Episode

TASK = "Lift the red cube"


def episode(seed, steps=None, pictures=True, task=TASK, terminated=True, **extra):
    rng = np.random.default_rng(seed)
    steps = steps or int(rng.integers(3, 9))
    obs = {
        "joint_pos": rng.normal(size=(steps + 1, 6)).astype(np.float32),
        "tip_pos": rng.normal(size=(steps + 1, 3)).astype(np.float32),
        "angle": rng.normal(size=steps + 1).astype(np.float32),
        "clock": rng.normal(size=(steps + 1, 2)),
        "touch": rng.integers(0, 2, (steps + 1, 4)).astype(bool),
        "count": rng.integers(-9, 9, steps + 1),
        "depth": rng.normal(size=(steps + 1, 4, 6)).astype(np.float32),
        **extra,
    }
    if pictures:
        obs["front_rgb"] = film(rng, steps + 1, 32, 48)
        obs["odd"] = film(rng, steps + 1, 17, 23)
    return Episode(
        obs,
        rng.uniform(-1, 1, (steps, 4)).astype(np.float32),
        rng.normal(size=steps).astype(np.float32),
        terminated,
        not terminated,
        terminated,
        seed,
        task,
    )


def film(rng, frames, height, width):
    """Smooth pictures, as cameras take them: noise is nothing that a codec could keep."""
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    shift = rng.uniform(0, 1, (frames, 1, 1, 3))
    ramp = np.stack([x, y, (x + y) / 2], -1)
    return (255 * np.abs(np.sin(2 * (ramp + shift)))).astype(np.uint8)


def assert_same(a, b, pictures=True):
    assert set(a.obs) == set(b.obs) if pictures else set(b.obs) <= set(a.obs)
    for name, found in b.obs.items():
        expected = a.obs[name]
        assert found.shape == expected.shape and found.dtype == expected.dtype, name
        if name in ("front_rgb", "odd"):
            # Tiny pictures that change wholly at every step are the worst case of a film.
            assert np.abs(found.astype(int) - expected).mean() < 6, name
        else:
            assert found.tobytes() == expected.tobytes(), name
    for name in ("action", "reward"):
        expected, found = getattr(a, name), getattr(b, name)
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes(), name
    for name in ("terminated", "truncated", "success", "seed", "task"):
        assert getattr(a, name) == getattr(b, name), name
