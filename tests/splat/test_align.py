"""A capture in another scale, pose and tint finds its place."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from splat_scenes import MODEL, model_and_data, part

from maniple.core.errors import BadConfig, ManipleError
from maniple.splat.align import FLIP, References, align, match_colours, placed, read_references
from maniple.splat.bake import bake
from maniple.splat.cloud import Cloud, multiply_quats, quats_of, turns
from maniple.splat.compiled import CompiledScene
from maniple.splat.files import write_cloud
from maniple.splat.fit import FitConfig, fit
from maniple.splat.poses import Moment, PoseSource
from maniple.splat.quality import likeness
from maniple.splat.raster import Raster, compiled_library
from maniple.splat.reference import colours_of
from maniple.splat.scene import Scene
from maniple.splat.structs import ROW_FIELDS
from maniple.splat.views import Views, draw_views

SCALE, SHIFT = 2.7, np.array([0.4, -1.1, 0.8])
TURN = turns(np.array([0.5, 0.7, -0.3, 0.4]) / np.linalg.norm([0.5, 0.7, -0.3, 0.4]))


def to_capture(points_w):
    """From the world to the frame of the capture."""
    return SCALE * points_w @ TURN.T + SHIFT


def turn_deg(a, b):
    """Angle between two rotations."""
    return np.degrees(np.arccos(np.clip((np.trace(a @ b.T) - 1) / 2, -1, 1)))


def check(found):
    """The inverse of to_capture is found."""
    assert abs(found.scale * SCALE - 1) < 0.005
    assert turn_deg(found.turn, TURN.T) < 0.3
    somewhere = np.array([[0.3, 0.2, 0.1]])
    back = found.scale * to_capture(somewhere) @ found.turn.T + found.shift
    assert np.linalg.norm(back - somewhere) < 0.003


def test_points_that_were_measured_by_hand():
    rng = np.random.default_rng(0)
    world = rng.uniform(-0.5, 0.5, (8, 3))
    check(align(References(to_capture(world + rng.normal(size=world.shape) * 0.001), world)))


def test_poses_of_cameras():
    _, data = model_and_data()
    pos = data.cam_xpos.copy()
    turn = np.array([m.reshape(3, 3) @ FLIP for m in data.cam_xmat])
    check(align(References(to_capture(pos), pos, TURN @ turn, turn)))


def test_too_little_is_refused():
    two = np.eye(3)[:2]
    with pytest.raises(BadConfig, match="3 reference points"):
        align(References(two, two))
    line = np.outer(np.arange(4), [1.0, 2.0, 3.0])
    with pytest.raises(BadConfig, match="one line"):
        align(References(line, line))


def test_mirrored_points_are_refused():
    rng = np.random.default_rng(0)
    world = rng.uniform(-0.5, 0.5, (4, 3))
    with pytest.raises(BadConfig, match="mirrored"):
        align(References(to_capture(world) * [1, 1, -1], world))
    # On a desk nobody can tell: all lie in one plane, but for errors of measurement.
    world[:, 2] = 0
    for _ in range(20):
        check(align(References(to_capture(world + rng.normal(size=world.shape) * 1e-4), world)))


def test_the_points_of_the_documentation_fit():
    text = (Path(__file__).parents[2] / "docs/how-to/splats.md").read_text()
    lines = [line.strip() for line in text.splitlines() if "- {capture:" in line]
    points = yaml.safe_load("\n".join(lines))
    found = align(References(*(np.array([p[k] for p in points]) for k in ("capture", "world"))))
    assert found.error_m < 0.05


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("points: [{capture: [0, 0, 0]}]", "point 0: it has no 'world'"),
        ("points: [{capture: [0, 0], world: [0, 0, 0]}]", "three finite numbers"),
        ("points: [{capture: a, world: [0, 0, 0]}]", "cannot be read as reference points"),
        ("cameras: [{camera: front, capture_pos: [0, 0, 0]}]", "no 'capture_quat_wxyz'"),
        ("cameras: [{camera: front, capture_pos: [0, 0, 0], capture_quat_wxyz: [0, 0, 0, 0]}]",
         "length zero"),
        ("cameras: [{camera: fron, capture_pos: [0, 0, 0], capture_quat_wxyz: [1, 0, 0, 0]}]",
         "Did you mean front"),
        ("a: &a [1]\npoints: [*a, *a]", "aliases"),
        ("points: 3", "neither"),
    ],
)  # fmt: skip
def test_wrong_references_are_told(tmp_path, text, words):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ManipleError, match=words) as told:
        read_references(tmp_path / "p.yaml", model_and_data()[0])
    assert ".." not in str(told.value)


@pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")
def test_a_capture_is_put_into_a_scene(tmp_path, inside):
    """A tinted capture of the little world, aligned by the command, gains 5 dB and more."""
    model, data = model_and_data()
    source = PoseSource(model, [Moment.of(data)])
    views = draw_views(source, 1, (64, 64))
    room = fit(bake(model, source, views, 600), source, views, FitConfig(250, 1500))
    # What the bodies look like to the front camera, in one cloud in the world's frame.
    whole = _in_world(CompiledScene(room, model), source, data)
    capture = Cloud(
        to_capture(whole.means).astype(np.float32),
        multiply_quats(quats_of(TURN[None])[0], whole.quats_wxyz).astype(np.float32),
        (SCALE * whole.scales).astype(np.float32), whole.opacities, whole.sh, None, "mip",
    ).coloured(whole.rgb * [0.55, 0.8, 1.2])  # fmt: skip
    write_cloud(capture, tmp_path / "capture.ply")
    world = np.array([[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0.2, 0.1, 0.4]])
    points = [{"capture": c, "world": w}
              for c, w in zip(to_capture(world).tolist(), world.tolist(), strict=True)]  # fmt: skip
    (tmp_path / "points.yaml").write_text(yaml.safe_dump({"points": points}))
    (tmp_path / "room.xml").write_text(MODEL)
    said = inside("splat", "align", tmp_path / "capture.ply", tmp_path / "room.xml", "--points",
                  tmp_path / "points.yaml", "--out", tmp_path / "s.yaml", "--json").out  # fmt: skip
    answer = json.loads(said.splitlines()[-1])
    assert abs(answer["scale"] * SCALE - 1) < 0.005
    found = align(References(to_capture(world), world))
    plain = placed(Scene((part(capture),)), found)
    # The headlight goes with the camera: a capture has one look, that of the front camera here.
    views = Views(*(array[:1] for array in views))
    before = likeness(plain, source, views)["front"].psnr_db
    after = likeness(match_colours(plain, source, views), source, views)["front"].psnr_db
    assert after > before + 5


def _in_world(scene, source, data):
    fields = {name: source.field(name) for name in ROW_FIELDS}
    row = {name: array[0] if has else array for name, (array, has) in fields.items()}
    camera = Raster(scene, source, 0).camera(row, 0, (64, 64))
    clouds = []
    for group in scene.bound:
        turn, pos = data.xmat[group.body].reshape(3, 3), data.xpos[group.body]
        cloud = group.cloud
        rgb, faces = colours_of(scene, group, row, camera)
        turned = multiply_quats(quats_of(turn[None])[0], cloud.quats_wxyz)
        whole = Cloud((cloud.means @ turn.T + pos).astype(np.float32), turned.astype(np.float32),
                      cloud.scales, cloud.opacities, cloud.sh).coloured(rgb)  # fmt: skip
        clouds.append(whole.take(np.flatnonzero(faces)))
    names = ("means", "quats_wxyz", "scales", "opacities", "sh")
    return Cloud(*(np.concatenate([getattr(c, n) for c in clouds]) for n in names))
