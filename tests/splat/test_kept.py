"""Pictures with what does not move kept are the pictures without, pixel by pixel."""

import numpy as np
import pytest

import maniple
from maniple.splat import raster


def pictures(monkeypatch, renderer, keeps):
    """The front camera's pictures of a few random steps."""
    monkeypatch.setattr(raster, "BYTES_PER_PIXEL", 1 if keeps else 10**9)
    envs = maniple.make_vec("piper/AppleInBowl-v0", 1, image_size=256, cameras=("front",),
                            renderer=renderer, engine="serial")  # fmt: skip
    envs.reset(seed=0)
    rng, space = np.random.default_rng(0), envs.action_space
    found = []
    for _ in range(3):
        action = space.low + (space.high - space.low) * rng.random(space.shape)
        obs, *_ = envs.step(action.astype(np.float32))
        found.append(envs.named(obs)["front_rgb"][0].astype(int))
    envs.close()
    return np.stack(found)


@pytest.mark.parametrize("renderer", ["splat", "hybrid"])
def test_kept_pictures_differ_by_one_shade_at_most(monkeypatch, renderer):
    """A mean hides single pixels: coarse depths put moving splats behind what they hide."""
    kept, full = (pictures(monkeypatch, renderer, keeps) for keeps in (True, False))
    assert np.abs(kept - full).max() <= 1
