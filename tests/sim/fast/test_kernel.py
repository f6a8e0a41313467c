"""The compiled ray-caster against numpy, against MuJoCo's own rays, and against itself."""

import mujoco
import numpy as np
import pytest
from primitive_scenes import KINDS, pictures, random_scene, row_fields, source_of

from maniple.sim.fast.reference import draw_reference
from maniple.sim.fast.renderer import FastRenderer, compiled_library
from maniple.sim.fast.scene import SceneArrays, free_view

pytestmark = pytest.mark.skipif(compiled_library() is None, reason="the kernel was not compiled")
EVERYWHERE = -1  # as tolerance: four rays in every pixel
EVERY_WIDTH = pytest.mark.parametrize("lanes", [4, 8])


@pytest.fixture(autouse=True)
def skip_what_the_processor_cannot(request):
    lanes = getattr(request.node, "callspec", None) and request.node.callspec.params.get("lanes")
    if lanes and lanes > compiled_library().kernel_widest():
        pytest.skip(f"this processor has no {lanes}-wide vectors")


def drawn(model, size, lanes=None, quality="lean", layer_bytes=0, tolerance=None):
    """Pictures of a model at rest, by the kernel."""
    tool, camera = FastRenderer(source_of(model), size, quality, layer_bytes), 0
    tool.lanes = lanes or tool.lanes
    tool._tolerance = tool._tolerance if tolerance is None else tolerance
    out = pictures(1, *size, camera)
    tool.render([0], [camera], KINDS, out)
    tool.close()
    return {kind: array[0] for (_, kind), array in out.items()}


def referred(model, size, is_fine=False, camera=0):
    """The same by the reference."""
    source = source_of(model)
    out = {kind: array[0] for (_, kind), array in pictures(1, *size).items()}
    fields = row_fields(source)
    draw_reference(SceneArrays(model), fields, free_view(model), camera, out, is_fine)
    return out


def assert_alike(kernel, reference, far_m=30.0):
    """Equal but for pixels on a silhouette, where a rounding decides."""
    same = kernel["segmentation"] == reference["segmentation"]
    assert same.mean() > 0.998
    apart = np.abs(kernel["rgb"].astype(int) - reference["rgb"].astype(int)).max(-1)
    assert (apart[same] <= 1).mean() > 0.999
    seen = same & (reference["segmentation"] >= 0)
    error = np.abs(kernel["depth"] - reference["depth"]) / reference["depth"]
    if seen.any():
        assert np.all(error[seen] < 1e-3) and np.median(error[seen]) < 1e-5
    assert np.all(kernel["depth"][kernel["segmentation"] < 0] == pytest.approx(far_m))


@EVERY_WIDTH
@pytest.mark.parametrize("light", ["directional", "point", "none"])
def test_the_kernel_draws_what_the_reference_draws(lanes, light):
    rng = np.random.default_rng(11)
    for k in range(6):
        model = random_scene(rng, light=light, shininess=None if k % 2 else rng.uniform(0.05, 1))
        assert_alike(drawn(model, (48, 64), lanes), referred(model, (48, 64)))


@EVERY_WIDTH
def test_shadows_and_smooth_edges(lanes):
    rng = np.random.default_rng(5)
    for _ in range(3):
        model = random_scene(rng, geoms=8)
        fine = drawn(model, (40, 40), lanes, "fine", tolerance=EVERYWHERE)
        reference = referred(model, (40, 40), True)
        apart = np.abs(fine["rgb"].astype(int) - reference["rgb"].astype(int)).max(-1)
        assert (apart <= 2).mean() > 0.985
    # There are shadows at all.
    assert not np.array_equal(fine["rgb"], referred(model, (40, 40))["rgb"])


@EVERY_WIDTH
@pytest.mark.parametrize("light", ["directional", "point"])
def test_four_rays_where_pixels_differ_are_as_good_as_everywhere(lanes, light):
    rng = np.random.default_rng(12)
    decibels = []
    for _ in range(8):
        model = random_scene(rng, light=light)
        lean = drawn(model, (96, 120), lanes)
        fine = drawn(model, (96, 120), lanes, "fine")
        every = drawn(model, (96, 120), lanes, "fine", tolerance=EVERYWHERE)
        # The numbers are those of the middle of a pixel, whatever its colour is made of.
        assert np.array_equal(fine["depth"], lean["depth"])
        assert np.array_equal(fine["segmentation"], lean["segmentation"])
        error = fine["rgb"].astype(float) - every["rgb"]
        decibels.append(10 * np.log10(255**2 / max((error**2).mean(), 1e-9)))
    assert np.median(decibels) > 45 and min(decibels) > 38


@pytest.mark.parametrize("scenes", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_geometry_is_that_of_mujocos_rays(scenes):
    """Cameras inside and outside of geoms, near-plane cuts, grazing angles."""
    rng, wrong, total = np.random.default_rng(3), 0, 0
    for _ in range(scenes):
        model = random_scene(rng, geoms=14)
        source, size = source_of(model), (48, 64)
        data = source.load(0)[1]
        found = drawn(model, size)
        pos, turn = data.cam_xpos[0], data.cam_xmat[0].reshape(3, 3)
        top = np.tan(np.radians(model.cam_fovy[0]) / 2)
        y = top * (1 - (np.arange(size[0]) + 0.5) * 2 / size[0])
        x = top * size[1] / size[0] * ((np.arange(size[1]) + 0.5) * 2 / size[1] - 1)
        rays = np.stack([*np.meshgrid(x, y), np.full(size, -1.0)], -1).reshape(-1, 3)
        scale = np.linalg.norm(rays, axis=1)
        rays = rays / scale[:, None] @ turn.T
        # A ray that begins inside a geom, or that meets one before the near plane, is another
        # question to MuJoCo: it sees inner sides.
        geoms, far = np.full(len(rays), -1, np.int32), np.full(len(rays), -1.0)
        mujoco.mj_multiRay(
            model, data, pos.copy(), rays.ravel().copy(), None, True, -1, geoms, far, None,
            len(rays), 1e6,
        )  # fmt: skip
        if _is_inside_any(model, data, pos):
            continue
        clear = (far / scale > 0.02) | (geoms < 0)
        planes = np.isin(geoms, np.flatnonzero(model.geom_type == 0)) & (pos[2] < -0.6)
        judged = clear & ~planes
        mine = found["segmentation"].ravel()
        if pos[2] < -0.6:
            judged &= mine == mine  # planes are not seen from behind, here as in GL
            judged &= ~np.isin(geoms, np.flatnonzero(model.geom_type == 0))
        wrong += int((mine != geoms)[judged].sum())
        total += int(judged.sum())
        both = judged & (mine == geoms) & (geoms >= 0)
        depth = found["depth"].ravel()[both]
        if both.any():
            assert np.median(np.abs(depth - (far / scale)[both]) / depth) < 1e-5
    assert total > 1000 * scenes and wrong <= 1e-4 * total


def _is_inside_any(model, data, pos):
    hits = np.full(1, -1, np.int32)
    for geom in range(model.ngeom):
        if model.geom_type[geom] == 0:
            continue
        local = (pos - data.geom_xpos[geom]) @ data.geom_xmat[geom].reshape(3, 3)
        if (
            np.all(np.abs(local) <= model.geom_rbound[geom])
            and np.linalg.norm(local) < (model.geom_rbound[geom])
        ):
            return True
    return hits[0] >= 0


@EVERY_WIDTH
@pytest.mark.parametrize("quality", ["lean", "fine"])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (5, 3), (17, 23), (24, 7)])
def test_any_size(lanes, quality, size):
    """Widths that no vector divides, and not a byte beyond the picture."""
    model = random_scene(np.random.default_rng(8), geoms=20)
    tool = FastRenderer(source_of(model), size, quality)
    tool.lanes, tool._tolerance = lanes, EVERYWHERE
    height, width = size
    room = np.full(height * width * 3 + 64, 123, np.uint8)
    rgb = room[: height * width * 3].reshape(1, height, width, 3)
    tool.render([0], [0], ("rgb",), {(0, "rgb"): rgb})
    assert np.all(room[height * width * 3 :] == 123)
    apart = np.abs(rgb[0].astype(int) - referred(model, size, quality == "fine")["rgb"]).max(-1)
    assert (apart <= 1).mean() > (0.99 if quality == "lean" else 0.97)


@EVERY_WIDTH
@pytest.mark.parametrize("quality", ["lean", "fine"])
def test_vectors_of_both_widths_agree(lanes, quality):
    model = random_scene(np.random.default_rng(21), geoms=25)
    one, other = drawn(model, (64, 64), lanes, quality), drawn(model, (64, 64), None, quality)
    apart = np.abs(one["rgb"].astype(int) - other["rgb"].astype(int))
    assert (apart <= 1).mean() > 0.9995
    assert (one["segmentation"] == other["segmentation"]).mean() > 0.9995


def test_the_free_view_is_mujocos():
    model = random_scene(np.random.default_rng(2))
    view = free_view(model)
    camera, scene = mujoco.MjvCamera(), mujoco.MjvScene(model, 100)
    mujoco.mjv_defaultFreeCamera(model, camera)
    data = source_of(model).load(0)[1]
    option = mujoco.MjvOption()
    every = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(model, data, option, None, camera, every, scene)
    eyes = scene.camera
    middle = (np.array(eyes[0].pos) + np.array(eyes[1].pos)) / 2
    turn = np.array(view.mat).reshape(3, 3)
    assert np.allclose(middle, view.pos, atol=1e-5)
    assert np.allclose(eyes[0].forward, -turn[:, 2], atol=1e-5)
    assert np.allclose(eyes[0].up, turn[:, 1], atol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300, -1e38])
def test_broken_places_give_a_finite_picture(bad):
    """A geom that is nowhere is not drawn; a camera that is nowhere sees nothing."""
    model = random_scene(np.random.default_rng(4))
    source = source_of(model)
    data = source.load(0)[1]
    tool = FastRenderer(source, (32, 32), "fine")
    out = pictures(1, 32, 32)
    for field in ("geom_xpos", "geom_xmat", "light_xdir", "cam_xpos", "cam_xmat"):
        array = getattr(data, field)
        kept = array.copy()
        array[-1] = bad
        tool.render([0], [0], KINDS, out)
        assert np.all(np.isfinite(out[0, "depth"])), field
        assert out[0, "segmentation"].min() >= -1
        assert out[0, "segmentation"].max() < model.ngeom
        array[:] = kept


def test_sizes_of_nothing():
    xml = "".join(
        f'<geom type="{kind}" size="1e-9 1e-9 1e-9" pos="{k * 0.1} 0 0"/>'
        for k, kind in enumerate(("sphere", "capsule", "ellipsoid", "cylinder", "box"))
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody>{xml}<camera name="c" pos="0 0 1"/></worldbody></mujoco>'
    )
    assert np.all(np.isfinite(drawn(model, (16, 16))["depth"]))
