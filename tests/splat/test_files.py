"""Files of clouds: what is written is read, and what is broken is told in one line."""

from dataclasses import replace

import numpy as np
import pytest
from fuzz_files import mutate_files
from splat_scenes import part, random_cloud

from maniple.core.errors import BadConfig, ManipleError, MissingExtra
from maniple.splat.cloud import BadCloud, make_cloud, quats_of, turns
from maniple.splat.files import read_cloud, write_cloud
from maniple.splat.scene import Part, Scene, read_scene, write_scene


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_ply_keeps_everything(tmp_path, degree):
    cloud = random_cloud(50, degree, degree, mode="mip")
    write_cloud(cloud, tmp_path / "a.ply")
    again = read_cloud(tmp_path / "a.ply")
    for name in ("means", "quats_wxyz", "scales", "opacities", "sh"):
        np.testing.assert_allclose(getattr(again, name), getattr(cloud, name), rtol=1e-4, atol=1e-6)
    assert again.mode == "mip" and again.labels is None


def test_ply_keeps_labels(tmp_path):
    cloud = random_cloud(9)
    labelled = make_cloud(cloud.means, cloud.quats_wxyz, cloud.scales, cloud.opacities, cloud.sh,
                          np.arange(9))  # fmt: skip
    write_cloud(labelled, tmp_path / "a.ply")
    assert read_cloud(tmp_path / "a.ply").labels.tolist() == list(range(9))


def test_the_layout_of_3dgs_is_read(tmp_path):
    """Channel after channel in f_rest, logarithms of scales, opacity before the sigmoid, wxyz."""
    names = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    names += [f"f_rest_{k}" for k in range(9)]
    names += ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    row = np.arange(len(names), dtype="<f4") / 10
    head = "ply\nformat binary_little_endian 1.0\ncomment antialiased 1\nelement vertex 1\n"
    head += "".join(f"property float {n}\n" for n in names) + "end_header\n"
    (tmp_path / "a.ply").write_bytes(head.encode() + row.tobytes())
    cloud = read_cloud(tmp_path / "a.ply")
    value = dict(zip(names, row.tolist(), strict=True))
    assert cloud.mode == "antialiased"
    assert cloud.sh[0, 1].tolist() == pytest.approx([value[f"f_rest_{k}"] for k in (0, 3, 6)])
    assert cloud.scales[0, 1] == pytest.approx(np.exp(value["scale_1"]), rel=1e-5)
    assert cloud.opacities[0] == pytest.approx(1 / (1 + np.exp(-value["opacity"])), rel=1e-5)
    quat = np.array([value[f"rot_{k}"] for k in range(4)])
    np.testing.assert_allclose(cloud.quats_wxyz[0], quat / np.linalg.norm(quat), rtol=1e-5)


def test_splat_files_keep_what_they_can(tmp_path):
    cloud = random_cloud(50)
    write_cloud(cloud, tmp_path / "a.splat")
    again = read_cloud(tmp_path / "a.splat")
    np.testing.assert_array_equal(again.means, cloud.means)
    np.testing.assert_allclose(again.rgb, np.clip(cloud.rgb, 0, 1), atol=0.003)
    alike = np.abs((again.quats_wxyz * cloud.quats_wxyz).sum(1))
    assert alike.min() > 0.999


def test_compressed_files_are_read_with_gsply(tmp_path):
    gsply = pytest.importorskip("gsply")
    cloud = random_cloud(300)
    write_cloud(cloud, tmp_path / "a.ply")
    data = gsply.plyread(tmp_path / "a.ply")
    gsply.plywrite(tmp_path / "b.ply", data, compressed=True)
    gsply.write_spz(tmp_path / "b.spz", data)
    packed = next(p for p in (tmp_path / "b.compressed.ply", tmp_path / "b.ply") if p.exists())
    for path in (packed, tmp_path / "b.spz"):
        again = read_cloud(path)
        near = np.linalg.norm(cloud.means[:, None] - again.means, axis=-1).argmin(1)
        assert np.abs(again.means[near] - cloud.means).max() < 0.01
        np.testing.assert_allclose(again.scales[near], cloud.scales, rtol=0.1)
        np.testing.assert_allclose(again.opacities[near], cloud.opacities, atol=0.02)


def test_compressed_files_without_gsply_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gsply", None)
    (tmp_path / "a.spz").write_bytes(b"NGSP")
    with pytest.raises((MissingExtra, BadCloud), match="gsply"):
        read_cloud(tmp_path / "a.spz")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"means": np.full((4, 3), np.nan)}, "NaN"),
        ({"quats_wxyz": np.zeros((4, 4))}, "length zero"),
        ({"scales": np.full((4, 3), 1e9)}, "larger than"),
        ({"opacities": np.full(4, 2.0)}, "opacity"),
        ({"means": np.full((4, 3), 1e9)}, "beyond"),
        ({"scales": np.ones((3, 3))}, "3 scales"),
        ({"sh": np.zeros((4, 5, 3))}, "shape"),
        ({"means": np.zeros((0, 3))}, "no Gaussians"),
    ],
)
def test_nonsense_is_refused(change, words):
    good = {
        "means": np.zeros((4, 3)), "quats_wxyz": np.ones((4, 4)), "scales": np.ones((4, 3)),
        "opacities": np.full(4, 0.5), "sh": np.zeros((4, 1, 3)),
    }  # fmt: skip
    with pytest.raises(BadCloud, match=words):
        make_cloud(**good | change)


def test_cut_off_and_lying_files_are_refused(tmp_path):
    path = tmp_path / "a.ply"
    write_cloud(random_cloud(50), path)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(BadCloud, match="cut off"):
        read_cloud(path)
    path.write_bytes(data.replace(b"vertex 50", b"vertex 99999999999"))
    with pytest.raises(BadCloud, match="cut off"):
        read_cloud(path)
    path.write_bytes(data.replace(b"binary_little_endian", b"ascii"))
    with pytest.raises(BadCloud, match="binary_little_endian"):
        read_cloud(path)
    with pytest.raises(BadCloud, match="no file"):
        read_cloud(tmp_path / "nothing.ply")


def test_a_scene_is_written_and_read(tmp_path):
    cloud = random_cloud(20)
    scene = Scene((part(cloud, "link", scale=2.0, gain=(1.0, 0.5, 0.25), is_lit=True),
                   Part(cloud)))  # fmt: skip
    write_scene(scene, tmp_path / "s.yaml")
    again = read_scene(tmp_path / "s.yaml")
    assert [p.owners for p in again.parts] == [(("link", -1),), (("world", -1),)]
    assert again.parts[0].scale == 2.0 and again.parts[0].gain == (1.0, 0.5, 0.25)
    assert again.parts[0].is_lit and not again.parts[1].is_lit


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("format: splatscene/2", "format: splatscene/1"),
        ("[1, 2", "not readable YAML"),
        ("a: &a [1]\nb: [*a, *a]", "aliases"),
        ("format: splatscene/1\nclouds: []", "no clouds"),
        ("format: splatscene/1\nclouds: [{file: a.ply, scal: 2}]", "Did you mean scale"),
        ("format: splatscene/1\nclouds: [{file: a.ply, scale: -1}]", "larger than 0"),
        ("format: splatscene/1\nclouds: [{file: a.ply, scale: [1, 2]}]", "must be a number"),
        ("format: splatscene/1\nclouds: [{file: a.ply, gain: [1, -1, 1]}]", "negative"),
        ("format: splatscene/1\nclouds: [{file: a.ply, lit: 3}]", "true or false"),
        ("format: splatscene/1\nclouds: [{file: a.ply, labels: [link]}]", "no property 'label'"),
        ("format: splatscene/1\nclouds: [{file: b.ply}]", "no file"),
    ],
)
def test_a_wrong_scene_is_told(tmp_path, text, words):
    write_cloud(random_cloud(5), tmp_path / "a.ply")
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ManipleError, match=words):
        read_scene(tmp_path / "s.yaml")


def test_an_unknown_body_is_told():
    from splat_scenes import compiled

    with pytest.raises(BadConfig, match="Did you mean link"):
        compiled(part(random_cloud(5), "lin"))


@pytest.mark.parametrize("name", ["#\u00b2", "#99", "#", "#" + 5000 * "1"])
def test_a_number_that_is_no_body_is_told(name):
    from splat_scenes import compiled

    with pytest.raises(BadConfig, match="does not have"):
        compiled(part(random_cloud(5), name))


def test_labels_that_the_scene_does_not_name_are_left_out(tmp_path):
    from splat_scenes import model_and_data

    from maniple.splat.compiled import CompiledScene

    cloud = replace(random_cloud(6), labels=np.array([0, 1, 2, 3, 4, 5], np.int32))
    write_cloud(cloud, tmp_path / "a.ply")
    (tmp_path / "s.yaml").write_text("format: splatscene/1\nclouds: [{file: a.ply, body: link}]")
    scene = CompiledScene(read_scene(tmp_path / "s.yaml"), model_and_data()[0])
    assert len(scene.bound) == 1 and len(scene.bound[0].cloud) == 6


def test_a_header_may_end_its_lines_as_windows_does(tmp_path):
    write_cloud(random_cloud(7), tmp_path / "a.ply")
    head, _, rows = (tmp_path / "a.ply").read_bytes().partition(b"end_header\n")
    text = (head + b"end_header\n").replace(b"\n", b"\r\n")
    (tmp_path / "b.ply").write_bytes(text + rows)
    assert np.array_equal(
        read_cloud(tmp_path / "b.ply").means, read_cloud(tmp_path / "a.ply").means
    )


def test_a_scene_is_written_only_as_one(tmp_path):
    scene = Scene((Part(random_cloud(5)),))
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "file").write_text("")
    for name, words in (("a.ply", "must end with .yaml"), ("folder.yaml", "is a folder"),
                        ("file/a.yaml", "cannot be written")):  # fmt: skip
        with pytest.raises(BadConfig, match=words):
            write_scene(scene, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.yaml"]


def test_rotations_survive():
    rng = np.random.default_rng(0)
    quats = rng.normal(size=(200, 4))
    quats /= np.linalg.norm(quats, axis=1, keepdims=True)
    assert np.abs((quats_of(turns(quats)) * quats).sum(1)).min() > 1 - 1e-9


def test_mutated_files_never_crash(tmp_path):
    assert mutate_files(tmp_path, 400, seed=1) > 100


@pytest.mark.slow
@pytest.mark.alone
def test_twenty_thousand_mutated_files_never_crash(tmp_path):
    """No crash, no hang, no unbounded memory."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mutate_files(tmp_path, 20_000, seed=2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB
