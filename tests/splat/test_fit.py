"""Bake and fit: gradients are right, and what is fitted looks like what was seen."""

import json

import numpy as np
import pytest
from splat_scenes import model_and_data, part, random_cloud

from maniple.core.errors import BadConfig
from maniple.data.video import save_png
from maniple.splat.bake import bake
from maniple.splat.fit import Fit, FitConfig, fit, split
from maniple.splat.photos import read_photos
from maniple.splat.poses import Moment, PoseSource, draw_moments
from maniple.splat.quality import likeness, psnr
from maniple.splat.raster import compiled_library
from maniple.splat.scene import Scene
from maniple.splat.structs import COLOUR, FACTOR, LOG2_OPACITY
from maniple.splat.surfaces import surface_points
from maniple.splat.views import draw_views

pytestmark = pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")
C0 = 0.28209479


def views_of(model, moments, size=(48, 48)):
    """Draw a model in some states."""
    source = PoseSource(model, moments)
    return source, draw_views(source, len(source), size)


@pytest.mark.parametrize("is_lit", [False, True])
@pytest.mark.parametrize("mode", ["default", "mip"])
def test_gradients_are_those_of_finite_differences(mode, is_lit):
    model, data = model_and_data()
    source, views = views_of(model, [Moment.of(data)], (32, 32))
    cloud = random_cloud(12, 4, 0, size=0.15, box=0.4, mode=mode, spread=0.3)
    cloud = cloud.coloured(np.random.default_rng(0).uniform(0.2, 0.7, (12, 3)))
    scene = Scene((part(cloud, is_lit=is_lit),), np.full((1, 3), 0.3, np.float32))
    running = Fit(scene, source, views, FitConfig(depth_weight=0.0))
    planes, at = running._compiled.planes, running.discs["at"]
    running._gradient[...] = 0.0
    running.differentiate(0)
    found = running._gradient[:, at].copy()
    size = views.rgb[0].size
    checked = {0: 0, 1: 1, 2: 2, 12: LOG2_OPACITY, 13: COLOUR, 15: COLOUR + 2}
    checked |= {3 + k: FACTOR + k for k in range(9)}
    worst = []
    for gradient, plane in checked.items():
        for k in range(0, 12, 3):
            step = 2e-3 if plane != LOG2_OPACITY else 5e-3
            value = planes[plane, at[k]]
            losses = []
            for sign in (-1, 1):
                planes[plane, at[k]] = value + sign * step
                losses.append(running.differentiate(0) * size)
            planes[plane, at[k]] = value
            numeric = (losses[1] - losses[0]) / (2 * step)
            # The gradient is that of the colour, the plane holds its harmonic.
            numeric = numeric / C0 if plane >= COLOUR else numeric
            scale = np.abs(found[gradient]).max() + 0.05
            worst.append(abs(numeric - found[gradient, k]) / scale)
    assert np.median(worst) < 0.01 and np.max(worst) < 0.15


def test_fitting_makes_a_scene_alike():
    """Baked discs of the little world, fitted for a second, against states they have not seen."""
    model, data = model_and_data()
    seen = [Moment.of(data)]
    source, views = views_of(model, draw_moments(model, seen, 10))
    baked = bake(model, source, views, 500)
    fitted = fit(baked, source, views, FitConfig(250, 2000))
    test = views_of(model, draw_moments(model, seen, 4, seed=9))
    before, after = likeness(baked, *test), likeness(fitted, *test)
    assert len(fitted) <= 2000
    assert after["front"].psnr_db > before["front"].psnr_db + 4
    assert after["above"].psnr_db > before["above"].psnr_db + 4
    assert after["front"].depth_error_mm < 12


def test_the_same_seed_gives_the_same_scene():
    model, data = model_and_data()
    source, views = views_of(model, [Moment.of(data)])
    baked = bake(model, source, views, 200)
    a, b = (fit(baked, source, views, FitConfig(20, 300)) for _ in range(2))
    assert np.array_equal(a.parts[0].cloud.means, b.parts[0].cloud.means)


def test_splitting_leaves_the_picture_roughly_as_it_was():
    model, data = model_and_data()
    source, views = views_of(model, [Moment.of(data)])
    cloud = random_cloud(30, 1, size=0.1)
    scene, halves = (Scene((part(c),)) for c in (cloud, split(cloud, np.arange(30))))
    assert len(halves) == 60
    assert abs(likeness(scene, source, views)["front"].psnr_db
               - likeness(halves, source, views)["front"].psnr_db) < 2  # fmt: skip


def test_points_are_on_their_surface():
    """Every kind of geom: points lie on it, normals point outwards, areas add up."""
    import mujoco

    model = mujoco.MjModel.from_xml_string("""
      <mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
        <geom type="plane" size="1 2 .1"/><geom type="sphere" size=".3"/>
        <geom type="capsule" size=".1 .2"/><geom type="ellipsoid" size=".1 .2 .3"/>
        <geom type="cylinder" size=".1 .2"/><geom type="box" size=".1 .2 .3"/>
        <geom type="mesh" mesh="m"/>
      </worldbody></mujoco>""")
    areas = [8.0, 4 * np.pi * 0.09, 4 * np.pi * 0.01 + 2 * np.pi * 0.1 * 0.4, 0.4928,
             2 * np.pi * 0.01 + 2 * np.pi * 0.1 * 0.4, 8 * (0.02 + 0.06 + 0.03),
             1.5 + np.sqrt(3) / 2]  # fmt: skip
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for geom, area in enumerate(areas):
        points = surface_points(model, geom, 600)
        assert points.area.sum() == pytest.approx(area, rel=0.02)
        np.testing.assert_allclose(np.linalg.norm(points.normal, axis=1), 1, atol=1e-6)
        turn, pos = data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom]
        for at, normal in zip(points.at[::40], points.normal[::40], strict=True):
            # A ray from a little outside, straight in, meets the surface at once.
            start, way = pos + turn @ (at + 0.01 * normal), -turn @ normal
            far = (mujoco.mj_rayMesh(model, data, geom, start, way) if geom == 6 else
                   mujoco.mju_rayGeom(pos, data.geom_xmat[geom], model.geom_size[geom], start, way,
                                      int(model.geom_type[geom])))  # fmt: skip
            distance = far[0] if isinstance(far, tuple) else far
            assert distance == pytest.approx(0.01, abs=1e-3)


def test_photographs_are_fitted(tmp_path, inside):
    """A cloud with wrong colours becomes like the photographs of a transforms.json."""
    import json

    from maniple.data.video import save_png
    from maniple.splat.compiled import CompiledScene
    from maniple.splat.files import write_cloud
    from maniple.splat.raster import Raster

    model, data = model_and_data()
    source = PoseSource(model, draw_moments(model, [Moment.of(data)], 6), jitter_seed=2)
    truth = random_cloud(150, 5, size=0.1, box=0.5)
    raster = Raster(CompiledScene(Scene((part(truth),)), model), source, 0)
    frames = []
    for row in range(6):
        out = {(0, "rgb"): np.empty((1, 64, 64, 3), np.uint8)}
        raster.render([row], [0], ("rgb",), out)
        save_png(tmp_path / f"{row}.png", out[0, "rgb"][0])
        pose = np.eye(4)
        pose[:3, :3] = source.field("cam_xmat")[0][row, 0].reshape(3, 3)
        pose[:3, 3] = source.field("cam_xpos")[0][row, 0]
        frames.append({"file_path": f"{row}.png", "transform_matrix": pose.tolist()})
    angle = float(np.radians(model.cam_fovy[0]))
    (tmp_path / "transforms.json").write_text(
        json.dumps({"camera_angle_x": angle, "frames": frames})
    )
    write_cloud(truth.coloured(np.full((150, 3), 0.5)), tmp_path / "grey.ply")
    said = inside("splat", "fit", tmp_path / "grey.ply", "--photos", tmp_path / "transforms.json",
                  "--steps", 300, "--count", 150, "--json").out  # fmt: skip
    answer = json.loads(said.splitlines()[-1])
    assert answer["after_db"] > answer["before_db"] + 8


def test_psnr_is_in_decibels():
    assert psnr(np.zeros(4), np.full(4, 0.1)) == pytest.approx(20)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fl_x": 0}, "fl_x is '0'"),
        ({"fl_x": "long"}, "fl_x is 'long'"),
        ({"fl_x": 1e8}, "degrees across"),
        ({"w": None}, "w is 'None'"),
        ({"frames": []}, "4 x 4"),
        ({"frames": [{"file_path": "a.png"}]}, "no 'transform_matrix'"),
    ],
)
def test_photographs_with_nonsense_are_told(tmp_path, change, words):
    save_png(tmp_path / "a.png", np.zeros((8, 8, 3), np.uint8))
    frame = {"file_path": "a.png", "transform_matrix": np.eye(4).tolist()}
    text = {"fl_x": 8.0, "w": 8, "frames": [frame]}
    (tmp_path / "t.json").write_text(json.dumps(text))
    assert len(read_photos(tmp_path / "t.json")[1]) == 1
    (tmp_path / "t.json").write_text(json.dumps(text | change))
    with pytest.raises(BadConfig, match=words):
        read_photos(tmp_path / "t.json")
