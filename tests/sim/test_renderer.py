"""The one way in which pictures are made: a table of renderers behind one batched protocol."""

import mujoco
import numpy as np
import pytest

import maniple
from maniple.core.errors import BadConfig
from maniple.envs.cameras import picture_spec
from maniple.registry import recipe
from maniple.sim import gl_backend, renderer
from maniple.sim.physics import Physics
from maniple.sim.renderer import RENDERERS, make_renderer, render_still, renderer_class

NEEDS_GL = pytest.mark.skipif(
    gl_backend.backend() == gl_backend.RAYS, reason="no GL library works on this machine"
)
EVERY = pytest.mark.parametrize("name", ["fast", "rays", pytest.param("mujoco", marks=NEEDS_GL)])
KINDS = ("rgb", "depth", "segmentation")
CAMERAS = {"cameras": ("front", "wrist"), "image_size": (24, 32)}
BALL = "<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>"
MESH = """<mujoco><asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>"""


class OneProcessRenderer:
    """As a CUDA renderer would be: grey pictures, drawn in one process."""

    name = "grey"
    wants_one_process = True

    def __init__(self, source, size, quality):
        self.calls = []

    def render(self, rows, cameras, kinds, out):
        self.calls.append((list(rows), list(cameras), list(kinds)))
        for picture in out.values():
            picture[...] = 77

    def close(self):
        pass


@pytest.fixture
def grey(monkeypatch):
    monkeypatch.setitem(RENDERERS, "grey", f"{__name__}:OneProcessRenderer")


@pytest.mark.parametrize("name", RENDERERS)
def test_every_renderer_says_what_it_is(name):
    kind = renderer_class(name)
    assert kind.name == name and kind.wants_one_process in (True, False)


@EVERY
def test_a_batch_is_its_rows(name, make_vec):
    """Many rows and cameras in one call, in the order asked for, equal them one by one."""
    group = recipe("panda/ReachTarget-v0", {"randomize": True}).group(3, 1)
    group.reset(np.arange(3), [1, 2, 3])
    tool = make_renderer(name, group._source, (24, 32))
    specs = {kind: picture_spec(kind, (24, 32)) for kind in KINDS}
    out = {
        (camera, kind): np.empty((2, *spec.shape), spec.dtype)
        for camera in (0, 1)
        for kind, spec in specs.items()
    }
    tool.render([2, 0], [0, 1], KINDS, out)
    for k, row in enumerate((2, 0)):
        for camera in (0, 1):
            assert np.array_equal(out[camera, "rgb"][k], render_still(tool, row, camera, 32, 24))
    assert not np.array_equal(out[0, "rgb"][0], out[0, "rgb"][1]), "rows have their own colours"
    tool.close(), group.close()


@EVERY
def test_an_environment_tells_which_renderer_draws(name, make_vec):
    envs = make_vec("so101/Reach-v0", 2, renderer=name, engine="native", **CAMERAS)
    assert envs.get_attr("renderer") == (name, name)
    assert maniple.make("so101/Reach-v0")._row.renderer in RENDERERS


def test_an_unknown_renderer_is_named():
    with pytest.raises(BadConfig, match="Did you mean mujoco"):
        maniple.make_vec("so101/Reach-v0", 1, renderer="mujoko")


def test_gl_that_is_asked_for_and_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr("maniple.sim.gl_renderer.backend", lambda: gl_backend.RAYS)
    env = maniple.make("so101/Reach-v0", renderer="mujoco", render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(BadConfig, match="maniple doctor"):
        env.render()


@pytest.mark.parametrize(
    ("has_compiler", "has_gl", "mesh", "chosen"),
    [
        (True, True, False, "fast"),
        (True, False, False, "fast"),
        (False, True, False, "mujoco"),
        (False, False, False, "fast"),
        (True, True, True, "mujoco"),
        (True, False, True, "rays"),
    ],
)
def test_auto_takes_what_can_draw_the_scene(monkeypatch, has_compiler, has_gl, mesh, chosen):
    """The renderer of primitives where it can, GL where it cannot, rays last."""
    backend = "egl" if has_gl else gl_backend.RAYS
    monkeypatch.setattr("maniple.sim.gl_backend.backend", lambda: backend)
    if not has_compiler:
        monkeypatch.setattr("maniple.sim.fast.renderer.compiled_library", lambda: None)
    model = mujoco.MjModel.from_xml_string(MESH if mesh else BALL)
    assert renderer.resolve_renderer("auto", model) == chosen
    assert renderer.resolve_renderer("rays", model) == "rays"


def test_the_engine_follows_the_renderer(grey):
    """Workers multiply GL and rays; what draws on threads, or in one process, stays here."""
    for name, engine in (
        ("auto", "native"),
        ("fast", "native"),
        ("rays", "process"),
        ("grey", "native"),
    ):
        assert (
            recipe("so101/Reach-v0", {"renderer": name, **CAMERAS}).preferred_engine(4, None)
            == engine
        )
        assert recipe("so101/Reach-v0", {"renderer": name}).preferred_engine(4, None) == "native"


def test_all_rows_are_drawn_in_one_call(grey, make_vec):
    """Observations, render() and Physics.render go through the table."""
    group = recipe("so101/Reach-v0", {"renderer": "grey", **CAMERAS}).group(3, 1)
    group.reset(np.arange(3), [1, 2, 3])
    group.report()
    assert (group._out.obs["wrist_rgb"] == 77).all()
    (call,) = group._cameras._renderer.calls
    assert call[0] == [0, 1, 2] and len(call[1]) == 2 and call[2] == ["rgb"]
    assert (group.picture(1, "front", 20, 10) == 77).all()
    physics = Physics(group.model, "grey")
    assert (physics.render(10, 20) == 77).all()
