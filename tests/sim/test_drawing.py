"""Pictures, with GL and without."""

import os
import subprocess
import sys

import numpy as np
import pytest

import maniple
from maniple.core.errors import BadConfig
from maniple.registry import TASKS
from maniple.sim import gl_backend

KINDS = ("rgb", "depth", "segmentation")
HAS_GL = gl_backend.backend() != gl_backend.RAYS
NEEDS_GL = pytest.mark.skipif(not HAS_GL, reason="no GL library works on this machine")


def seen(renderer, size=(96, 128), kinds=KINDS):
    """One observation of every kind, drawn by a given renderer."""
    options = {"cameras": ("front",), "image_size": size, "image_kinds": kinds}
    env = maniple.make("so101/StackCubes-v0", renderer=renderer, **options)
    obs, _ = env.reset(seed=3)
    env.close()
    return obs


@NEEDS_GL
def test_rays_see_what_gl_sees():
    """Depth within a millimetre, the same objects in the same pixels but for edges."""
    gl, rays = seen("mujoco"), seen("rays")
    is_near = gl["front_depth"] < 2.0
    difference = np.abs(gl["front_depth"] - rays["front_depth"])[is_near]
    assert np.percentile(difference, 95) < 0.001
    assert (gl["front_segmentation"] == rays["front_segmentation"]).mean() > 0.97


@pytest.mark.parametrize("renderer", ["rays", pytest.param("mujoco", marks=NEEDS_GL)])
@pytest.mark.parametrize("task", [t for t in sorted(TASKS) if t.startswith(("so101/", "LeRobot"))])
def test_a_picture_shows_the_arm(task, renderer):
    env = maniple.make(task, render_mode="rgb_array", width=160, height=120, renderer=renderer)
    env.reset(seed=0)
    picture = env.render()
    yellow = (picture[..., 0] > 120) & (picture[..., 2] < 90) & (picture[..., 1] > 80)
    assert picture.shape == (120, 160, 3) and picture.dtype == np.uint8
    assert 0.003 < yellow.mean() < 0.5
    env.close()


def test_sizes_and_cameras():
    env = maniple.make("so101/Reach-v0", render_mode="rgb_array")
    env.reset(seed=0)
    small, large = env.render(128, 128), env.render(640, 480, "overhead")
    assert small.shape == (128, 128, 3) and large.shape == (480, 640, 3)
    assert not np.array_equal(env.render(64, 64, "front"), env.render(64, 64, "wrist"))
    env.close()


def test_pictures_are_drawn_where_something_moved(make_vec):
    envs = make_vec("so101/Reach-v0", 3, cameras=("front",), image_size=(32, 32))
    first, _ = envs.reset(seed=0)
    mask = np.array([False, True, False])
    second, _ = envs.reset(options={"reset_mask": mask})
    for row in range(3):
        is_same = np.array_equal(first["front_rgb"][row], second["front_rgb"][row])
        assert is_same == (not mask[row])


def test_render_every_repeats_between(make_vec):
    options = {"cameras": ("front",), "image_size": (32, 32), "terminate_on_success": False}
    every, third = (make_vec("so101/Reach-v0", 1, render_every=k, **options) for k in (1, 3))
    every.reset(seed=0), third.reset(seed=0)
    action = np.array([[0.6, 0.8, -0.5, 0]], np.float32)
    for step in range(1, 10):
        (a, *_), (b, *_, info) = every.step(action), third.step(action)
        assert np.array_equal(a["front_rgb"], b["front_rgb"]) == (step % 3 == 0)
        assert info["rendered"][0] == (step % 3 == 0), "it says which pictures are repeated"


def test_a_chunk_draws_only_its_end(make_vec):
    options = {"cameras": ("front",), "image_size": (32, 32)}
    one, many = make_vec("so101/Reach-v0", 2, **options), make_vec("so101/Reach-v0", 2, **options)
    one.reset(seed=0), many.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-0.2, 0.2, (2, 3, 4)).astype(np.float32)
    for k in range(3):
        obs, *_ = one.step(actions[:, k])
    assert np.array_equal(many.step_chunk(actions)[0]["front_rgb"], obs["front_rgb"])


def test_bad_settings():
    for options in ({"quality": "best"}, {"image_kinds": ("smell",)}, {"image_size": (0, 3)},
                    {"image_size": (3,)}, {"width": 0}):  # fmt: skip
        with pytest.raises(BadConfig):
            maniple.make("so101/Reach-v0", cameras=("front",), **options)


def test_an_unknown_backend_is_named(monkeypatch):
    monkeypatch.setenv("MANIPLE_GL", "vulkan")
    gl_backend.backend.cache_clear()
    with pytest.raises(BadConfig, match="vulkan"):
        gl_backend.backend()
    gl_backend.backend.cache_clear()


def test_without_any_gl_library_a_picture_still_comes(tmp_path):
    """A process in which no GL library can be loaded draws all the same."""
    code = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, *a):\n"
        "        if name.split('.')[0] in ('OpenGL', 'glfw'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "import maniple\n"
        "env = maniple.make('so101/Reach-v0', render_mode='rgb_array', width=64, height=48)\n"
        "env.reset(seed=0)\n"
        "print(env.render().std())\n"
    )
    env = {**os.environ, "MANIPLE_GL": "rays"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 5
