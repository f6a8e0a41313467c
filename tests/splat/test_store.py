"""Scenes that are shipped, found, made and kept."""

import json

import numpy as np
import pytest
from splat_scenes import MODEL, model_and_data, random_cloud

from maniple.cli.splat.subject import load_subject
from maniple.core.errors import BadConfig
from maniple.registry import recipe
from maniple.sim.render_source import DataSource
from maniple.sim.renderer import make_renderer, render_still
from maniple.splat import making, store
from maniple.splat.fit import FitConfig
from maniple.splat.raster import compiled_library
from maniple.splat.scene import Scene, read_scene
from maniple.splat.store import SHIPPED, find_scene, scene_name

SHIPPED_TASKS = (
    "PiperMobileRobot-v0", "piper/AppleInBowl-v0", "so101/LiftCube-v0", "panda/OpenDrawer-v0",
    "piper/Reach-v0", "piper/BananaInBowl-v0", "go2_piper/AppleInBowl-v0",
    "go2_piper/BananaInBowl-v0", "mobile_piper/AppleInBowl-v0", "mobile_piper/BananaInBowl-v0",
    "mobile_piper/HandOver-v0",
)  # fmt: skip


@pytest.mark.parametrize("task", SHIPPED_TASKS)
def test_what_is_shipped_is_of_the_tasks_as_they_look(task):
    """If this fails, a model looks different now: python scripts/ship_splats.py makes it anew."""
    model = recipe(task, {}).group(1, 1).model
    path = find_scene(model)
    assert path is not None and path.parent == SHIPPED, scene_name(model)
    scene = read_scene(path)
    assert 1000 < len(scene) <= 20_000
    assert path.with_suffix(".ply").stat().st_size < 2 << 20


@pytest.mark.parametrize(
    "task", ["PiperMobileRobot-v0", "go2_piper/AppleInBowl-v0", "mobile_piper/HandOver-v0"]
)
def test_a_driven_base_brings_a_camera_and_no_other_splats(task):
    models = [recipe(task, options).group(1, 1).model for options in ({}, {"base": True})]
    assert models[0].ncam < models[1].ncam
    assert scene_name(models[0]) == scene_name(models[1])


def test_all_that_is_shipped_is_small():
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 15 << 20


def test_another_look_is_another_scene():
    model, _ = model_and_data()
    name = scene_name(model)
    model.geom_rgba[1, 0] += 0.1
    assert scene_name(model) != name


@pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")
def test_a_scene_is_made_once(tmp_path, monkeypatch):
    """The first picture makes it, the second finds it."""
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path))
    make = making.make_scene
    monkeypatch.setattr(making, "TRAINING_POSES", 4)
    monkeypatch.setattr(
        making, "make_scene", lambda model, seen, tell: make(model, seen, 400, FitConfig(60, 400))
    )
    model, data = model_and_data()
    source = DataSource(model, data)
    assert find_scene(model) is None
    renderer = make_renderer("splat", source, (32, 32))
    first = render_still(renderer, 0, 0, 32, 32)
    path = find_scene(model)
    assert path is not None and path.parent.parent == tmp_path
    monkeypatch.setattr(making, "make_scene", None)
    again = render_still(make_renderer("splat", source, (32, 32)), 0, 0, 32, 32)
    assert np.array_equal(first, again)


def test_a_file_of_a_model_is_a_subject(tmp_path):
    (tmp_path / "room.xml").write_text(MODEL)
    model, seen = load_subject(str(tmp_path / "room.xml"))
    assert model.nbody == 3 and len(seen) == 1


def test_commands_bake_render_and_tell(tmp_path, inside):
    (tmp_path / "room.xml").write_text(MODEL)
    room, scene = tmp_path / "room.xml", tmp_path / "s.yaml"
    said = inside("splat", "bake", room, "--out", scene, "--count", 800, "--json").out
    answer = json.loads(said.splitlines()[-1])
    assert answer["gaussians"] <= 800 and "front" in answer["likeness"]
    told = json.loads(inside("splat", "info", scene, "--json").out.splitlines()[-1])
    assert told["clouds"][0]["lit"] and told["clouds"][0]["bodies"] == ["link", "other", "world"]
    for renderer in ("splat", "hybrid"):
        out = tmp_path / renderer
        inside("splat", "render", room, "--scene", scene, "--out", out, "--width", 64,
               "--height", 48, "--renderer", renderer)  # fmt: skip
        names = sorted(path.name for path in out.iterdir())
        assert names == ["above.png", "front.png", "wrist.png"]
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in out.iterdir())


def test_commands_refuse_in_one_line(tmp_path, inside):
    (tmp_path / "bad.ply").write_bytes(b"ply\nnonsense")
    assert "not a PLY file" in inside("splat", "info", tmp_path / "bad.ply", code=2).err
    assert "No task is named" in inside("splat", "bake", "nonsense/Task", code=2).err
    error = inside("splat", "render", "piper/Reach-v0", "--scene", tmp_path / "no.yaml", code=2).err
    assert "no scene file" in error


def test_a_place_that_cannot_be_written_is_told(tmp_path, inside):
    (tmp_path / "room.xml").write_text(MODEL)
    (tmp_path / "a.ply").write_bytes(b"capture")
    (tmp_path / "p.yaml").write_text("points: []")
    room, ply = tmp_path / "room.xml", tmp_path / "a.ply"
    assert "end with .yaml" in inside("splat", "bake", room, "--out", ply, code=2).err
    error = inside("splat", "bake", room, "--out", ply / "s.yaml", code=2).err
    assert "cannot be written" in error
    error = inside("splat", "align", ply, room, "--points", tmp_path / "p.yaml", "--out",
                   tmp_path / "a.yaml", code=2).err  # fmt: skip
    assert "would be overwritten" in error
    assert "is a file" in inside("splat", "render", room, "--out", ply, code=2).err
    assert ply.read_bytes() == b"capture"


@pytest.mark.parametrize(
    ("inner", "words"),
    [("<geom size='.1'/>", "no cameras"), ("<camera name='a'/>", "see no geom")],
)
def test_a_model_of_which_nothing_is_seen_is_told(tmp_path, inside, inner, words):
    (tmp_path / "m.xml").write_text(f"<mujoco><worldbody>{inner}</worldbody></mujoco>")
    out = tmp_path / "s.yaml"
    assert words in inside("splat", "bake", tmp_path / "m.xml", "--out", out, code=2).err


def test_a_camera_may_have_any_name(tmp_path, inside):
    text = MODEL.replace('"front"', '"../a/b"').replace('"above"', '".._a_b"')
    (tmp_path / "room.xml").write_text(text)
    inside("splat", "render", tmp_path / "room.xml", "--renderer", "fast", "--out",
           tmp_path / "out", "--width", 16, "--height", 16)  # fmt: skip
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [".._a_b.png", ".._a_b_1.png", "wrist.png"]


def test_a_cache_that_cannot_be_used_is_told(tmp_path, monkeypatch):
    model, data = model_and_data()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(BadConfig, match="MANIPLE_CACHE"):
        store.scene_for(DataSource(model, data))
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path))
    (tmp_path / "splats").mkdir()
    (tmp_path / "splats" / scene_name(model)).write_text("format: [")
    with pytest.raises(BadConfig, match="to have it made again"):
        store.scene_for(DataSource(model, data))


def test_info_of_a_task_is_of_its_scene(inside):
    told = json.loads(inside("splat", "info", "piper/Reach-v0", "--json").out.splitlines()[-1])
    assert told["file"].endswith(".yaml") and told["clouds"][0]["gaussians"] > 1000


def test_fit_shows_before_and_after(tmp_path, inside):
    if compiled_library() is None:
        pytest.skip("it was not compiled")
    (tmp_path / "room.xml").write_text(MODEL)
    said = inside("splat", "fit", tmp_path / "room.xml", "--out", tmp_path / "s.yaml", "--count",
                  600, "--steps", 80, "--json").out  # fmt: skip
    answer = json.loads(said.splitlines()[-1])
    likeness = answer["likeness"]
    assert likeness["after"]["front"]["psnr_db"] > likeness["before"]["front"]["psnr_db"]
    assert len(read_scene(tmp_path / "s.yaml")) <= 600


def test_an_environment_takes_a_scene_of_ones_own(tmp_path, make_vec):
    from maniple.splat.scene import Part, write_scene

    red = random_cloud(40, 0, size=0.5, box=3).coloured(np.tile([1.0, 0.0, 0.0], (40, 1)))
    write_scene(Scene((Part(red),)), tmp_path / "red.yaml")
    envs = make_vec("so101/LiftCube-v0", num_envs=2, cameras=("front",), image_size=(32, 32),
                    renderer="splat", scene=str(tmp_path / "red.yaml"))  # fmt: skip
    obs, _ = envs.reset(seed=0)
    assert envs.get_attr("renderer") == ("splat", "splat")
    assert obs["front_rgb"][..., 0].max() > 200 and obs["front_rgb"][..., 1].max() < 5


def test_piper_mobile_draws_splats_by_default(make_vec):
    envs = make_vec("PiperMobileRobot-v0", num_envs=2)
    obs, _ = envs.reset(seed=0)
    assert obs["rgb"].shape == (2, 128, 128, 3)
    assert set(envs.get_attr("renderer")) == {"splat"}


def test_a_random_look_reaches_splats(make_vec):
    pictures = []
    for randomize in (False, True):
        envs = make_vec("so101/LiftCube-v0", num_envs=2, cameras=("front",), renderer="splat",
                        image_size=(64, 64), randomize=randomize)  # fmt: skip
        obs, _ = envs.reset(seed=3)
        pictures.append(obs["front_rgb"].copy())
    assert np.abs(pictures[0].astype(int) - pictures[1]).mean() > 1
