"""Splats and geoms in one picture: each hides what is behind it."""

import numpy as np
import pytest
from splat_scenes import compiled, part, random_cloud

from maniple.registry import recipe
from maniple.sim.fast.support import still_bodies
from maniple.splat.hybrid import still_part
from maniple.splat.quality import psnr
from maniple.splat.raster import Raster, compiled_library
from maniple.splat.reference import draw_reference
from maniple.splat.scene import read_scene
from maniple.splat.store import find_scene
from maniple.splat.structs import ROW_FIELDS

pytestmark = pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")
SIZE = (64, 64)


def solid_plane(depth_m, far):
    """A picture of another renderer: something at one depth in the left half."""
    depth = np.full((1, *SIZE), np.inf, np.float32)
    depth[:, :, :32] = depth_m
    rgb = np.zeros((1, *SIZE, 3), np.uint8)
    rgb[..., 1] = 200
    return {"rgb": rgb, "depth": depth, "segmentation": np.where(depth < far, 1, -1).astype("i4")}


@pytest.mark.parametrize("layer_bytes", [0, 32 << 20])
@pytest.mark.parametrize("depth_m", [0.05, 1.4, 50.0])
def test_a_solid_picture_is_between_the_splats(layer_bytes, depth_m):
    scene, source = compiled(part(random_cloud(600, 3)))
    raster = Raster(scene, source, layer_bytes)
    solid = solid_plane(depth_m, scene.far)
    out = {(0, "colour"): np.empty((1, *SIZE, 4), np.float32),
           (0, "depth"): np.empty((1, *SIZE), np.float32)}  # fmt: skip
    under = {(0, kind): picture for kind, picture in solid.items()}
    raster.render([0], [0], ("colour", "depth"), out, under)
    fields = {name: source.field(name) for name in ROW_FIELDS}
    row = {name: array[0] if has else array for name, (array, has) in fields.items()}
    wanted = draw_reference(
        scene, row, raster.camera(row, 0, SIZE), None, {k: v[0] for k, v in solid.items()}
    )
    # A fragment that touches the surface is in front of it or not by its last digit.
    assert psnr(out[0, "colour"][0][..., :3], wanted["rgb"]) > 60
    if depth_m == 0.05:
        left = out[0, "colour"][0][:, :32]
        np.testing.assert_allclose(left[..., 1], 200 / 255, atol=1e-5)


def test_what_hides_what_is_right(make_vec):
    """Against a picture of geoms alone fewer than half a percent of a camera's pixels are wrong.

    Where geoms and splats hide each other, that is of all pixels; where splats hide splats, pixels
    whose neighbours show something else are left out: edges of splats are soft.
    """
    model = recipe("PiperMobileRobot-v0", {}).group(1, 1).model
    # One more for the label -1: what is behind everything never moves.
    is_splat = np.append(still_bodies(model)[model.geom_bodyid], True)
    oracle: dict = {}
    pictures: dict = {}
    for renderer in ("fast", "hybrid"):
        envs = make_vec(
            "PiperMobileRobot-v0", num_envs=3, renderer=renderer, cameras=("3rd", "front"),
            image_kinds=("segmentation",), image_size=(128, 128), engine="native",
        )  # fmt: skip
        obs, _ = envs.reset(seed=4)
        for _ in range(8):
            obs, *_ = envs.step(np.full(envs.action_space.shape, 0.5, np.float32))
        pictures = {name: obs[name].copy() for name in obs if name.endswith("segmentation")}
        oracle = oracle or pictures
    for name, labels in pictures.items():
        mesh = oracle[name]
        is_plain = np.ones(mesh.shape, np.bool_)
        for axis in (1, 2):
            for shift in (-1, 1):
                is_plain &= np.roll(mesh, shift, axis) == mesh
        assert (is_splat[labels] != is_splat[mesh]).mean() < 0.005, name
        assert ((labels != mesh) & is_plain).sum() / is_plain.sum() < 0.005, name


def test_only_what_never_moves_is_splats():
    model = recipe("PiperMobileRobot-v0", {}).group(1, 1).model
    scene = read_scene(find_scene(model))
    kept = still_part(scene, model)
    assert 0 < len(kept) < len(scene)
