"""What the rasteriser draws: against the reference, against itself, against MuJoCo."""

import mujoco
import numpy as np
import pytest
from splat_scenes import compiled, model_and_data, part, random_cloud

from maniple.sim.kernel.library import WIDTHS
from maniple.sim.render_source import DataSource
from maniple.splat.cloud import make_cloud, multiply_quats
from maniple.splat.compiled import CompiledScene
from maniple.splat.quality import psnr
from maniple.splat.raster import BYTES_PER_PIXEL, Raster, compiled_library
from maniple.splat.reference import draw_reference
from maniple.splat.scene import Scene
from maniple.splat.structs import ROW_FIELDS

pytestmark = pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")

SKY = ((0.2, 0.3, 0.4), (0.5, 0.6, 0.9), (0.9, 0.8, 0.7))
WIDE = (24, 530)
"""More than 64 blocks of pixels in a row."""
TURNED = [np.sqrt(0.5), 0, np.sqrt(0.5), 0, 0, 0.5, 0.2, 1, 0, 0, 0]
SHAPES = {"rgb": 3, "colour": 4}
DTYPES = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32, "colour": np.float32}


def draw(scene, source, camera=0, size=(96, 96), kinds=("colour",), layer_bytes=0, lanes=None):
    """Draw one row; return what was asked for."""
    raster = Raster(scene, source, layer_bytes)
    raster.lanes = lanes or raster.lanes
    out = {}
    for kind in kinds:
        last = (SHAPES[kind],) if kind in SHAPES else ()
        out[camera, kind] = np.empty((1, *size, *last), DTYPES[kind])
    raster.render([0], [camera], kinds, out)
    raster.close()
    return [out[camera, kind][0] for kind in kinds]


def reference(scene, source, camera=0, size=(96, 96)):
    """Draw one row with the oracle."""
    fields = {name: source.field(name) for name in ROW_FIELDS}
    row = {name: array[0] if has else array for name, (array, has) in fields.items()}
    raster = Raster(scene, source, 0)
    return draw_reference(scene, row, raster.camera(row, camera, size))


SCENES = {
    "plain": lambda: compiled(part(random_cloud(1200)), background=SKY),
    "harmonics": lambda: compiled(
        part(random_cloud(800, 1, 3)), part(random_cloud(200, 2, 3, box=0.2), "link"), qpos=TURNED
    ),
    "tiny": lambda: compiled(part(random_cloud(1500, 3, size=0.002, mode="mip"))),
    "huge": lambda: compiled(part(random_cloud(150, 4, size=0.8, box=2.0))),
    "behind": lambda: compiled(part(random_cloud(800, 5, 1, size=0.3, box=3.0))),
    "needles": lambda: compiled(part(random_cloud(800, 6, spread=2.0, mode="antialiased"))),
    "lit": lambda: compiled(
        part(random_cloud(800, 7), is_lit=True, is_two_sided=False),
        part(random_cloud(200, 8, box=0.2), "link", is_lit=True),
        qpos=TURNED,
    ),
}


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("lanes", WIDTHS)
def test_it_draws_what_the_reference_draws(name, lanes):
    scene, source = SCENES[name]()
    if lanes > compiled_library().kernel_widest():
        pytest.skip("this processor cannot do that")
    for camera, size in ((0, (96, 96)), (2, (61, 83)), (0, WIDE)):
        kinds = ("colour", "depth", "segmentation")
        colour, depth, labels = draw(scene, source, camera, size, kinds, lanes=lanes)
        wanted = reference(scene, source, camera, size)
        assert psnr(colour[..., :3], wanted["rgb"]) > 80
        assert psnr(colour[..., 3], wanted["alpha"]) > 80
        # Where a pixel is half transparent the last digit decides.
        clear = np.abs(wanted["alpha"] - 0.5) > 1e-4
        np.testing.assert_allclose(depth[clear], wanted["depth"][clear], rtol=1e-3)
        assert np.mean(labels != wanted["segmentation"]) < 1e-3


@pytest.mark.parametrize("size", [(96, 96), WIDE], ids=str)
@pytest.mark.parametrize("name", SCENES)
def test_what_is_kept_changes_nothing_that_can_be_seen(name, size):
    scene, source = SCENES[name]()
    scene2, _ = SCENES[name]()
    kinds = ("rgb", "depth", "segmentation")
    full = draw(scene, source, 0, size, kinds)
    kept = draw(scene2, source, 0, size, kinds, layer_bytes=64 << 20)
    assert psnr(full[0] / 255, kept[0] / 255) > 70
    assert np.median(np.abs(full[1] - kept[1])) < 1e-4
    assert np.mean(full[2] != kept[2]) < 5e-3


def pictures_of(raster, cameras, size):
    """Draw row 0 through cameras; return their colours."""
    out = {(camera, "rgb"): np.empty((1, *size, 3), np.uint8) for camera in cameras}
    raster.render([0], cameras, ("rgb",), out)
    return [out[camera, "rgb"][0] for camera in cameras]


def test_two_still_cameras_are_kept_and_not_made_again():
    scene, source = compiled(part(random_cloud(1200)), part(random_cloud(200, 2), "link"))
    raster = Raster(scene, source)
    first = pictures_of(raster, [0, 1], (256, 256))
    kept = raster.kept_bytes
    pictures_of(raster, [0], (256, 256))
    one = raster.kept_bytes
    assert one > kept > 0
    again = pictures_of(raster, [0, 1], (256, 256))
    assert raster.kept_bytes == one
    full = pictures_of(Raster(scene, source, 0), [0, 1], (256, 256))
    for a, b, c in zip(first, full, again, strict=True):
        assert np.array_equal(a, c)
        assert psnr(a / 255, b / 255) > 70


def test_a_large_still_picture_keeps_nothing():
    """Its layer would be made anew for every picture, or fill the memory."""
    scene, source = compiled(part(random_cloud(300)))
    raster = Raster(scene, source)
    (picture,) = pictures_of(raster, [0], (480, 640))
    assert raster.kept_bytes == 0
    assert np.array_equal(picture, pictures_of(Raster(scene, source, 0), [0], (480, 640))[0])


def test_a_layer_that_turns_out_too_large_is_not_used():
    """Many thin splats at every pixel: more than a layer takes elsewhere."""
    cloud = random_cloud(4000, size=0.2)
    cloud.opacities[:] = 0.02
    scene, source = compiled(part(cloud))
    raster = Raster(scene, source, 96 * 96 * BYTES_PER_PIXEL)
    first, again = (pictures_of(raster, [0], (96, 96))[0] for _ in range(2))
    assert raster.kept_bytes == 0
    assert np.array_equal(first, again)
    assert np.array_equal(first, pictures_of(Raster(scene, source, 0), [0], (96, 96))[0])


def test_a_turned_link_keeps_its_colours():
    """Harmonics belong to the link: link and camera turned together see the same picture."""
    cloud = random_cloud(400, 9, 3, box=0.2)
    turn = np.array([0.6, 0.5, -0.4, 0.3])
    turn /= np.linalg.norm(turn)
    pictures = []
    for quat in ([1.0, 0, 0, 0], [np.sqrt(0.5), np.sqrt(0.5), 0, 0], turn):
        # The wrist camera is mounted on the link.
        scene, source = compiled(part(cloud, "link"), qpos=[*quat, 0, 0.5, 0.2, 1, 0, 0, 0])
        pictures.append(draw(scene, source, 2)[0])
    for picture in pictures[1:]:
        assert np.abs(picture - pictures[0]).max() < 1 / 255


def test_a_gaussian_is_where_mujoco_draws_a_ball():
    """A camera and its picture agree with MuJoCo's own, within half a pixel."""
    model, data = model_and_data([1, 0, 0, 0, 0.1, 0.45, 0.25, 1, 0, 0, 0])
    sphere = make_cloud(
        np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), np.full((1, 3), 0.03), np.array([0.9]),
        np.full((1, 1, 3), 1.5),
    )  # fmt: skip
    scene = CompiledScene(Scene((part(sphere, "other"),)), model)
    for camera in (0, 1):
        (alpha,) = draw(scene, DataSource(model, data), camera, (128, 128), ("colour",))
        weight = alpha[..., 3] / alpha[..., 3].sum()
        y, x = np.mgrid[:128, :128] + 0.5
        found = np.array([(weight * x).sum(), (weight * y).sum()])
        turn = data.cam_xmat[camera].reshape(3, 3)
        p = turn.T @ (data.body("other").xpos - data.cam_xpos[camera])
        focal = 64 / np.tan(np.radians(model.cam_fovy[camera]) / 2)
        wanted = np.array([64 - focal * p[0] / p[2], 64 + focal * p[1] / p[2]])
        assert np.abs(found - wanted).max() < 0.5


def test_rows_cameras_and_threads_change_no_bit(make_vec):
    pictures = {}
    for rows, threads, cameras in ((4, 1, ("front", "wrist")), (4, 2, ("front", "wrist")),
                                   (2, 1, ("wrist", "front"))):  # fmt: skip
        envs = make_vec(
            "so101/LiftCube-v0", num_envs=rows, threads=threads, engine="native", cameras=cameras,
            renderer="splat", image_size=(48, 48), image_kinds=("rgb", "depth"),
        )  # fmt: skip
        obs, _ = envs.reset(seed=5)
        for _ in range(3):
            obs, *_ = envs.step(np.zeros_like(envs.action_space.sample()))
        for name in ("front_rgb", "wrist_rgb", "wrist_depth"):
            first = pictures.setdefault(name, obs[name][:2].copy())
            assert np.array_equal(obs[name][:2], first), (rows, threads, name)


def test_a_row_has_its_own_colours():
    model, data = model_and_data()
    scene = CompiledScene(
        Scene((part(random_cloud(300, 2, box=0.15), "link", is_lit=True),)), model
    )
    source = DataSource(model, data)
    red = source.field("geom_rgba")[0].copy()
    red[model.geom("box").id, :3] += [0.15, -0.3, -0.2]
    source.field = lambda name, plain=source.field: (
        (red[None], True) if name == "geom_rgba" else plain(name)
    )
    tinted = draw(scene, source, 0)[0]
    plain = draw(scene, DataSource(model, data), 0)[0]
    seen = plain[..., 3] > 0.9
    change = (tinted - plain)[seen][:, :3].mean(0)
    assert change[0] > 0.02 and change[1] < -0.02 and change[2] < -0.02


def test_turning_the_world_changes_nothing():
    """Splats, camera and light turned together look the same."""
    cloud = random_cloud(500, 3, 0)
    pictures = []
    for angle in (0.0, np.pi / 2, 2.0):
        quat = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
        model, data = model_and_data()
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, quat)
        turn = turn.reshape(3, 3)
        data.cam_xpos[:] = data.cam_xpos @ turn.T
        data.cam_xmat[:] = np.array([(turn @ m.reshape(3, 3)).ravel() for m in data.cam_xmat])
        placed = part(cloud, "world", quat_wxyz=tuple(multiply_quats(quat, [1.0, 0, 0, 0])))
        scene = CompiledScene(Scene((placed,)), model)
        pictures.append(draw(scene, DataSource(model, data), 0)[0])
    assert psnr(pictures[0], pictures[1]) > 80
    assert psnr(pictures[0], pictures[2]) > 80


def test_without_a_compiler_numpy_draws_the_same():
    """Slowly: every kind, a still camera and one on the link."""
    scene, source = compiled(
        part(random_cloud(80, 1)), part(random_cloud(40, 2, box=0.2), "link", is_lit=True)
    )
    pictures = []
    for is_compiled in (True, False):
        raster = Raster(scene, source)
        if not is_compiled:
            raster.close()
            raster._library = None
        assert raster.variant in ("avx2", "baseline") if is_compiled else raster.variant == "numpy"
        out = {
            (camera, kind): np.empty((1, 40, 48, *((3,) if kind == "rgb" else ())), DTYPES[kind])
            for camera in (0, 2, -1)
            for kind in ("rgb", "depth", "segmentation")
        }
        raster.render([0], [0, 2, -1], ("rgb", "depth", "segmentation"), out)
        pictures.append(out)
    for key, picture in pictures[0].items():
        other = pictures[1][key]
        if key[1] == "rgb":
            assert np.abs(picture.astype(int) - other).max() <= 1
        else:
            assert np.mean(~np.isclose(picture, other, rtol=1e-3)) < 0.005


def test_the_slower_instructions_can_be_asked_for(monkeypatch):
    scene, source = compiled(part(random_cloud(10)))
    monkeypatch.setenv("MANIPLE_LANES", "4")
    assert Raster(scene, source).variant == "baseline"
