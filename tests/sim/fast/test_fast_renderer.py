"""The renderer of primitives in environments: equal bits, kept layers, colours of rows, no GL."""

import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from primitive_scenes import KINDS, pictures, random_scene, source_of

import maniple
from maniple.core.errors import BadConfig
from maniple.registry import TASKS, recipe
from maniple.sim import gl_backend
from maniple.sim.fast.renderer import FastRenderer, compiled_library
from maniple.sim.fast.support import why_not
from maniple.sim.gl_renderer import GLRenderer
from maniple.sim.render_source import DataSource

NEEDS_GL = pytest.mark.skipif(
    gl_backend.backend() == gl_backend.RAYS, reason="no GL library works on this machine"
)
NEEDS_KERNEL = pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")
CAMERAS = {"cameras": ("front", "wrist"), "image_size": (48, 40), "image_kinds": KINDS}


def group_of(task, rows, threads=1, steps=6, **options):
    """Rows of a task after some steps."""
    group = recipe(task, options).group(rows, threads)
    group.reset(np.arange(rows), list(range(rows)))
    space, rng = group.contract.action_space, np.random.default_rng(0)
    for _ in range(steps):
        low, high = np.maximum(space.low, -1), np.minimum(space.high, 1)
        group.step(rng.uniform(low, high, (rows, *space.shape)).astype(space.dtype))
    return group


@NEEDS_KERNEL
@pytest.mark.parametrize("task", ["panda/StackBlocks-v0", "panda/OpenDrawer-v0"])
@pytest.mark.parametrize("options", [{}, {"randomize": True}, {"quality": "fine"}])
def test_rows_threads_and_kept_layers_change_no_bit(task, options):
    one = group_of(task, 5, control="delta_joint", **options)
    two = group_of(task, 5, threads=2, control="delta_joint", **options)
    quality = options.get("quality", "lean")
    tools = [
        (FastRenderer(one._source, (40, 56), quality, layer_bytes=0), [0, 1, 2, 3, 4]),
        (FastRenderer(one._source, (40, 56), quality), [0, 1, 2, 3, 4]),
        (FastRenderer(two._source, (40, 56), quality), [0, 1, 2, 3, 4]),
        # Room for one layer only; for the chest of one row, and for what stands still in all.
        (FastRenderer(two._source, (40, 56), quality, layer_bytes=40_000), [0, 1, 2, 3, 4]),
        (FastRenderer(two._source, (40, 56), quality, layer_bytes=160_000), [0, 1, 2, 3, 4]),
    ]
    results = []
    for tool, rows in tools:
        for _ in range(2):  # the second time from what was kept
            out = {**pictures(5, 40, 56, 0), **pictures(5, 40, 56, 1)}
            tool.render(rows, [0, 1], KINDS, out)
            results.append(out)
    for other in results[1:]:
        assert all(np.array_equal(results[0][key], other[key]) for key in other)
    single = pictures(1, 40, 56, 1)
    tools[1][0].render([3], [1], KINDS, single)
    assert all(np.array_equal(single[key][0], results[0][key][3]) for key in single)


@NEEDS_KERNEL
def test_what_moves_is_in_no_kept_layer():
    """Goals that are put somewhere by hand have no joint, and move all the same."""
    group = group_of("so101/Reach-v0", 2, steps=0)
    tool = FastRenderer(group._source, (64, 64), "lean")
    front = group.model.camera("front").id
    seen = []
    for seed in (1, 2):
        group.reset(np.arange(2), [seed, seed])
        out = pictures(2, 64, 64, front)
        tool.render([0, 1], [front], KINDS, out)
        seen.append(out[front, "segmentation"][0] == group.model.geom("target").id)
    assert seen[0].any() and seen[1].any() and not np.array_equal(*seen)


@NEEDS_KERNEL
def test_what_is_placed_is_kept_until_it_is_placed_anew():
    group = group_of("panda/OpenDrawer-v0", 2, steps=0, control="delta_joint")
    kept = FastRenderer(group._source, (64, 64), "lean")
    full = FastRenderer(group._source, (64, 64), "lean", layer_bytes=0)
    front, chest = group.model.camera("front").id, group.state.bind("mocap_pos")
    out, right = pictures(2, 64, 64, front), pictures(2, 64, 64, front)
    bytes_kept = []
    for step in range(12):
        if step % 4 == 0 or step >= 8:  # from then on in every step
            chest[:, 0, 0] += 0.01
            group.sim.settle(np.arange(2))
        kept.render([0, 1], [front], KINDS, out)
        full.render([0, 1], [front], KINDS, right)
        assert all(np.array_equal(out[key], right[key]) for key in out), step
        bytes_kept.append(kept.kept_bytes)
    assert bytes_kept[0] == bytes_kept[3] < bytes_kept[4] == bytes_kept[7] < bytes_kept[8]
    assert bytes_kept[-1] < 8 * bytes_kept[0]
    # A world that moves it all the time: it is drawn with what moves, and nothing is kept in vain.
    for _ in range(4):
        chest[:, 0, 0] -= 0.01
        group.sim.settle(np.arange(2))
        kept.render([0, 1], [front], KINDS, out)
        full.render([0, 1], [front], KINDS, right)
        assert all(np.array_equal(out[key], right[key]) for key in out)
    assert kept.kept_bytes <= bytes_kept[-1] + bytes_kept[0]


@NEEDS_KERNEL
def test_kept_layers_stay_within_their_budget():
    """Every row has its own colours, so that every row would have a layer of its own."""
    group = group_of("so101/LiftCube-v0", 40, randomize=True)
    tool = FastRenderer(group._source, (64, 64), "lean", layer_bytes=400_000)
    out = pictures(40, 64, 64)
    for _ in range(3):
        tool.render(range(40), [0], KINDS, out)
        assert 0 < tool.kept_bytes <= 400_000
    tool.close()
    tool.close()


@NEEDS_KERNEL
def test_pictures_that_are_not_in_one_piece():
    """Views with gaps, other types, and arrays that another axis runs through first."""
    model = random_scene(np.random.default_rng(6))
    tool = FastRenderer(source_of(model), (32, 24), "lean")
    plain = pictures(1, 32, 24)
    tool.render([0], [0], KINDS, plain)
    odd = {
        (0, "rgb"): np.empty((1, 3, 24, 32), np.uint8).transpose(0, 3, 2, 1),
        (0, "depth"): np.empty((1, 64, 24), np.float64)[:, ::2],
        (0, "segmentation"): np.empty((1, 32, 24), np.int64),
    }
    tool.render([0], [0], KINDS, odd)
    assert all(np.array_equal(plain[key], odd[key]) for key in odd)


@NEEDS_GL
@pytest.mark.parametrize("name", ["so101/LiftCube-v0", "panda/OpenDrawer-v0"])
def test_pictures_are_those_of_gl(name, monkeypatch):
    _compare_with_gl(name, monkeypatch)


@NEEDS_GL
@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_pictures_of_every_task_are_those_of_gl(name, monkeypatch):
    _compare_with_gl(name, monkeypatch)


def _compare_with_gl(name, monkeypatch):
    """Against round shapes of many faces: GL lights corners only."""
    from fine_gl import use_many_faces

    use_many_faces(monkeypatch)
    group = group_of(name, 4)
    size = (128, 128)
    gl, fast = GLRenderer(group._source, size, "lean"), FastRenderer(group._source, size, "lean")
    for camera in range(min(2, group.model.ncam)):
        theirs, ours = pictures(4, *size, camera), pictures(4, *size, camera)
        gl.render(range(4), [camera], KINDS, theirs)
        fast.render(range(4), [camera], KINDS, ours)
        for k in range(4):
            error = theirs[camera, "rgb"][k].astype(float) - ours[camera, "rgb"][k]
            assert 10 * np.log10(255**2 / max((error**2).mean(), 1e-9)) > 36
        same = theirs[camera, "segmentation"] == ours[camera, "segmentation"]
        assert same.mean() > 0.99
        seen = same & (ours[camera, "segmentation"] >= 0)
        apart = np.abs(theirs[camera, "depth"] - ours[camera, "depth"])[seen]
        assert np.median(apart) < 1e-4
    gl.close()


@pytest.mark.parametrize("name", TASKS)
def test_every_task_of_ours_is_drawn_fast(name):
    model = recipe(name, {}).group(1, 1)
    physics = getattr(model, "model", None) or model.physics[0].model
    assert why_not(physics) is None


REASONS = {
    "mesh": '<geom type="mesh" mesh="m"/>',
    "transparent": '<geom size=".1" rgba="1 1 1 .5"/>',
    "endless": '<geom type="plane" size="0 0 .1"/>',
    "texture": '<geom size=".1" material="t"/>',
    "reflects": '<geom size=".1" material="r"/>',
    "site": '<site pos="0 0 1"/>',
    "spot": "<light/>",
    "orthographic": '<camera name="c" projection="orthographic"/>',
    "sensor": '<camera name="c" sensorsize=".1 .1" focal=".1 .1" resolution="9 9"/>',
    "geoms": '<geom size=".1"/>' * 260,
}


@pytest.mark.parametrize(("word", "part"), REASONS.items())
def test_it_says_what_it_cannot_draw(word, part):
    assets = """<asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <texture name="x" type="2d" builtin="flat" width="4" height="4"/>
    <material name="t" texture="x"/><material name="r" reflectance=".5"/></asset>"""
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco>{assets}<worldbody><geom size=".1"/>{part}</worldbody></mujoco>'
    )
    reason = why_not(model)
    assert reason is not None and word in reason
    with pytest.raises(BadConfig, match="choose 'mujoco'"):
        FastRenderer(source_of(model), (8, 8), "lean")


def test_without_a_compiler_the_pictures_are_the_same(monkeypatch):
    options = {"cameras": ("front",), "image_size": (24, 24), "renderer": "fast"}
    compiled = maniple.make("so101/Reach-v0", **options).reset(seed=1)[0]["front_rgb"]
    monkeypatch.setattr("maniple.sim.fast.renderer.compiled_library", lambda: None)
    plain = maniple.make("so101/Reach-v0", **options).reset(seed=1)[0]["front_rgb"]
    assert (np.abs(plain.astype(int) - compiled.astype(int)) <= 1).mean() > 0.99


@NEEDS_KERNEL
@pytest.mark.parametrize(("lanes", "variant"), [("4", "baseline"), ("8", "avx2"), ("16", None)])
def test_the_variant_can_be_chosen(monkeypatch, lanes, variant):
    if variant == "avx2" and compiled_library().kernel_widest() < 8:
        pytest.skip("this processor has no AVX2")
    monkeypatch.setenv("MANIPLE_LANES", lanes)
    source = source_of(random_scene(np.random.default_rng(1)))
    if variant is None:
        with pytest.raises(BadConfig, match="MANIPLE_LANES"):
            FastRenderer(source, (8, 8), "lean")
    else:
        assert FastRenderer(source, (8, 8), "lean").variant == variant


def test_same_step_shows_every_row_as_it_is(make_vec):
    """A step in which one row ends is reported twice; the others must not go back a step."""
    from gymnasium.vector import AutoresetMode

    options = {"cameras": ("front",), "image_size": (24, 24), "engine": "native"}
    envs = make_vec(
        "so101/Reach-v0", 2, autoreset_mode=AutoresetMode.SAME_STEP, max_episode_steps=3, **options
    )
    lone = make_vec("so101/Reach-v0", 1, max_episode_steps=9, **options)
    envs.reset(seed=[1, 2])
    lone.reset(seed=[2])
    # Row 0 ends one step before row 1.
    rng = np.random.default_rng(0)
    envs.step(np.zeros((2, *envs.single_action_space.shape), np.float32))
    envs.reset(seed=[None, 2], options={"reset_mask": np.array([False, True])})
    for _ in range(2):
        action = rng.uniform(-1, 1, (2, *envs.single_action_space.shape)).astype(np.float32)
        both, _, _, truncated, _ = envs.step(action)
        alone = lone.step(action[1:])[0]
        assert np.array_equal(both["front_rgb"][1], alone["front_rgb"][0])
    assert truncated.tolist() == [True, False]


@pytest.mark.alone
@NEEDS_KERNEL
def test_a_forked_child_draws_too():
    """Threads do not survive a fork; the child's pool is its own."""
    code = """
import os, sys, numpy as np
sys.path.insert(0, sys.argv[1])
from primitive_scenes import *
from maniple.registry import recipe
from maniple.sim.fast.renderer import FastRenderer
group = recipe("so101/Reach-v0", {}).group(4, 2)
group.reset(np.arange(4), [1, 2, 3, 4])
tool = FastRenderer(group._source, (32, 32), "lean")
def draw():
    out = pictures(4, 32, 32)
    tool.render([0, 1, 2, 3], [0], KINDS, out)
    return out[0, "rgb"]
mine = draw()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(draw(), mine) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert np.array_equal(draw(), mine)
"""
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, here], timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.alone
def test_no_gl_library_is_needed(tmp_path):
    """Pictures, films and environments with cameras where every GL library is hidden."""
    code = """
import ctypes.util, sys
real = ctypes.util.find_library
ctypes.util.find_library = lambda name: None if name in ("EGL", "GL", "OSMesa") else real(name)
import maniple, numpy as np
envs = maniple.make_vec("so101/LiftCube-v0", 2, cameras=("front", "wrist"), image_size=(32, 32))
obs, _ = envs.reset(seed=0)
assert envs.stats()["renderer"] == "fast" and obs["wrist_rgb"].std() > 5
envs.close()
env = maniple.make("panda/OpenDrawer-v0", render_mode="rgb_array")
env.reset(seed=0)
assert env.render().std() > 5
assert not [name for name in sys.modules if name.startswith("OpenGL.")], "GL was imported"
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "MANIPLE_GL")}
    environment |= {"DISPLAY": "", "XDG_CACHE_HOME": str(tmp_path), "LIBGL_ALWAYS_SOFTWARE": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], timeout=120, capture_output=True, text=True,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


FLUSH = """<mujoco><worldbody>
  <light dir="0 0 -1" directional="true"/><camera name="front" pos="0 0 2" fovy="60"/>
  <geom type="box" size="0.6 0.6 0.1" pos="0 0 -0.1" rgba="0.8 0.2 0.2 1"/>
  <body mocap="true"><geom type="box" size="0.3 0.3 0.05" pos="0 0 -0.05" rgba="0 1 0 1"/></body>
  <body pos="0.2 0 0"><joint type="slide" axis="1 0 0"/>
    <geom type="box" size="0.3 0.1 0.05" pos="0 0 -0.05" rgba="0 0 1 1"/></body>
</worldbody></mujoco>"""


@NEEDS_KERNEL
def test_flush_faces_look_the_same_whatever_is_kept():
    """What never moves wins, then what is placed: in full pictures and from every kind of layer."""
    model = mujoco.MjModel.from_xml_string(FLUSH)
    data = mujoco.MjData(model)
    source = DataSource(model, data)
    tools = [FastRenderer(source, (64, 64), "lean", most) for most in (0, 50_000, 1 << 26)]
    for step in range(8):  # from the fourth on the lid counts as one that moves all the time
        data.mocap_pos[0, :2] = 0.01 * step
        mujoco.mj_forward(model, data)
        drawn = []
        for tool in tools:
            out = pictures(1, 64, 64)
            tool.render([0], [0], KINDS, out)
            drawn.append(out)
        for other in drawn[1:]:
            assert all(np.array_equal(drawn[0][key], other[key]) for key in other), step
        assert set(np.unique(drawn[0][0, "segmentation"])) == {-1, 0}
