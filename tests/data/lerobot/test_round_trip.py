"""What is written is read back, bit for bit where it is no picture."""

import json

import av
import numpy as np
import pytest
from made import assert_same, episode

from maniple.core.errors import BadConfig
from maniple.data.demos import datasets_in, load
from maniple.data.episode import Episode
from maniple.data.lerobot.check import check
from maniple.data.lerobot.read import Dataset
from maniple.data.lerobot.write import DatasetWriter


def write(root, episodes):
    with DatasetWriter(root, fps=25, robot="so101") as writer:
        return [writer.add(e) for e in episodes]


def test_everything_comes_back(tmp_path):
    made = [episode(0), episode(1, terminated=False), episode(2, task="Push it"), episode(3)]
    assert write(tmp_path / "d", made) == [0, 1, 2, 3]
    dataset = Dataset(tmp_path / "d")
    assert len(dataset) == 4 and dataset.tasks == ["Lift the red cube", "Push it"]
    for a, b in zip(made, dataset, strict=True):
        assert_same(a, b)
    assert check(tmp_path / "d") == {
        "ok": True, "episodes": 4, "frames": sum(map(len, made)), "faults": [],
    }  # fmt: skip


def test_episodes_are_read_in_any_order_and_without_pictures(tmp_path):
    made = [episode(k) for k in range(3)]
    write(tmp_path, made)
    dataset = Dataset(tmp_path, with_pictures=False)
    for k in (2, 0, 1):
        assert "front_rgb" not in dataset[k].obs
        assert_same(made[k], dataset[k], pictures=False)
    with pytest.raises(IndexError):
        dataset[3]


def test_pictures_alone(tmp_path):
    made = episode(0)
    only = Episode(
        {"front_rgb": made.obs["front_rgb"]}, made.action, made.reward, True, False, True
    )
    write(tmp_path, [only])
    assert_same(only, Dataset(tmp_path)[0])


@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_actions_of_other_kinds(tmp_path, kind):
    made = episode(0, pictures=False)
    action = np.arange(len(made)).astype(kind)
    scalar = Episode(made.obs, action, made.reward, True, False, True)
    write(tmp_path, [scalar])
    assert_same(scalar, Dataset(tmp_path)[0])


def test_a_writer_goes_on(tmp_path):
    made = [episode(k, pictures=False) for k in range(5)]
    write(tmp_path, made[:2])
    write(tmp_path, made[2:])
    assert check(tmp_path)["ok"]
    for a, b in zip(made, load(tmp_path), strict=True):
        assert_same(a, b)
    stats = json.loads((tmp_path / "meta/stats.json").read_text())
    every = np.concatenate([e.action for e in made]).astype(np.float64)
    assert stats["action"]["count"] == [len(every)]
    np.testing.assert_allclose(stats["action"]["mean"], every.mean(0), atol=1e-12)
    np.testing.assert_allclose(stats["action"]["std"], every.std(0), atol=1e-12)
    np.testing.assert_allclose(stats["action"]["max"], every.max(0))


def test_films_have_every_frame_and_the_final_one(tmp_path):
    made = episode(4, steps=30)
    write(tmp_path, [made])
    path = tmp_path / "videos/observation.images.front/chunk-000/file-000.mp4"
    with av.open(str(path)) as film:
        times = [float(f.pts * f.time_base) for f in film.decode(video=0)]
    # LeRobot looks frames up by their time, to a tenth of a millisecond.
    np.testing.assert_allclose(times, np.arange(31) / 25, atol=1e-6)


def test_the_format_is_what_lerobot_asks_for(tmp_path):
    """Names and values that its reader relies on, for machines where it is not installed."""
    import pyarrow.parquet as pq

    made = [episode(k) for k in range(2)]
    write(tmp_path, made)
    info = json.loads((tmp_path / "meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0" and info["fps"] == 25
    assert info["total_episodes"] == 2 and info["splits"] == {"train": "0:2"}
    assert (
        info["data_path"].format(chunk_index=0, file_index=1) == "data/chunk-000/file-001.parquet"
    )
    stored = {key for key, f in info["features"].items() if f["dtype"] != "video"}
    rows = pq.read_table(tmp_path / "data/chunk-000/file-001.parquet")
    assert set(rows.column_names) == stored, "a column that is no feature stops its reader"
    assert rows["index"].to_pylist()[0] == len(made[0])
    assert rows["episode_index"].to_pylist() == [1] * len(made[1])
    np.testing.assert_allclose(rows["timestamp"], np.arange(len(made[1])) / 25, atol=1e-6)
    facts = pq.read_table(tmp_path / "meta/episodes/chunk-000/file-001.parquet").to_pylist()[0]
    assert facts["dataset_from_index"] == len(made[0])
    assert facts["dataset_to_index"] == len(made[0]) + len(made[1]) == info["total_frames"]
    assert facts["videos/observation.images.front/from_timestamp"] == 0.0
    assert facts["tasks"] == ["Lift the red cube"] and facts["length"] == len(made[1])
    stats = json.loads((tmp_path / "meta/stats.json").read_text())
    assert np.shape(stats["observation.images.front"]["mean"]) == (3, 1, 1)
    about = json.loads(pq.read_schema(tmp_path / "meta/tasks.parquet").metadata[b"pandas"])
    assert about["index_columns"] == ["task"]


def test_another_program_s_dataset(tmp_path):
    """Several episodes per file and film, no final observation, none of our columns."""
    made = [episode(0, steps=5), episode(1, steps=7, terminated=False), episode(2, steps=4)]
    merge_and_strip(tmp_path, made)
    dataset = Dataset(tmp_path)
    assert not dataset.features.has_next
    solved, cut, _ = dataset
    # Solved: the end state is never looked at, so that the last observation stands for it.
    assert len(solved) == 5 and solved.terminated and solved.success
    assert np.array_equal(solved.obs["joint_pos"][:5], made[0].obs["joint_pos"][:5])
    assert np.array_equal(solved.obs["joint_pos"][5], made[0].obs["joint_pos"][4])
    # Cut off: what its last action led to is not known, so that the action is left out.
    assert len(cut) == 6 and cut.truncated and not cut.terminated
    assert np.array_equal(cut.obs["joint_pos"], made[1].obs["joint_pos"][:7])
    assert np.array_equal(cut.action, made[1].action[:6])
    for found, e in ((solved, made[0]), (cut, made[1])):
        steps = min(len(found), len(e))
        error = np.abs(found.obs["front_rgb"][:steps].astype(int) - e.obs["front_rgb"][:steps])
        assert error.mean() < 6
    assert check(tmp_path)["ok"]


def merge_and_strip(root, made):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from maniple.data.lerobot.film import write_film

    write(root, made)
    ours = {"next.terminated", "next.truncated", "episode_seed"}
    tables = [pq.read_table(p) for p in sorted((root / "data").rglob("*.parquet"))]
    names = tables[0].column_names
    kept = [n for n in names if n not in ours and not n.startswith("next.observation")]
    one = pa.concat_tables([t.select(kept).replace_schema_metadata() for t in tables])
    for path in [*(root / "data").rglob("*.parquet"), *(root / "videos").rglob("*.mp4")]:
        path.unlink()
    pq.write_table(one, root / "data/chunk-000/file-000.parquet")
    rows = []
    for name, key in (("front_rgb", "observation.images.front"), ("odd", "observation.images.odd")):
        frames = np.concatenate([e.obs[name][:-1] for e in made])
        write_film(root / f"videos/{key}/chunk-000/file-000.mp4", frames, 25)
    start = 0
    for path in sorted((root / "meta/episodes").rglob("*.parquet")):
        row = pq.read_table(path).to_pylist()[0]
        path.unlink()
        row = {k: 0 if k.endswith("file_index") else v for k, v in row.items()}
        for key in ("observation.images.front", "observation.images.odd"):
            row[f"videos/{key}/from_timestamp"] = start / 25
        start += row["length"]
        rows.append(row)
    pq.write_table(pa.Table.from_pylist(rows), root / "meta/episodes/chunk-000/file-000.parquet")
    info = json.loads((root / "meta/info.json").read_text())
    features = {k: v for k, v in info["features"].items() if k in kept or v["dtype"] == "video"}
    (root / "meta/info.json").write_text(json.dumps({**info, "features": features}))


def test_a_run_folder_is_searched(tmp_path):
    write(tmp_path / "run/demos", [episode(0, pictures=False)])
    write(tmp_path / "run/eval", [episode(1, pictures=False)])
    assert [e.seed for e in load(tmp_path / "run")] == [0, 1]
    assert datasets_in(tmp_path / "run/demos") == [tmp_path / "run/demos"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"joint_pos": np.zeros((9, 5), np.float32)}, "'observation.state' is float32"),
        ({"new": np.zeros((9, 2, 2))}, "'observation.new' is float64"),
    ],
)
def test_episodes_must_be_alike(tmp_path, change, says):
    write(tmp_path, [episode(0, steps=8, pictures=False)])
    with pytest.raises(BadConfig, match=says):
        write(tmp_path, [episode(1, steps=8, pictures=False, **change)])
    assert len(load(tmp_path)) == 1 and check(tmp_path)["ok"]


def test_bad_episodes_are_told():
    made = episode(0, pictures=False)
    with pytest.raises(BadConfig, match="needs at least one action"):
        Episode(made.obs, made.action[:0], made.reward[:0], True, False, True)
    with pytest.raises(BadConfig, match="the final observation included"):
        Episode({k: v[:-1] for k, v in made.obs.items()}, made.action, made.reward, 1, 0, 1)
    with pytest.raises(BadConfig, match="needs rewards of shape"):
        Episode(made.obs, made.action, made.reward[1:], True, False, True)


def test_bad_folders_are_told(tmp_path):
    with pytest.raises(BadConfig, match="nothing at that place"):
        Dataset(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadConfig, match="is a file"):
        DatasetWriter(tmp_path / "file", 25)
    with pytest.raises(BadConfig, match="holds other things"):
        DatasetWriter(tmp_path, 25)
    write(tmp_path / "d", [episode(0, pictures=False)])
    with pytest.raises(BadConfig, match=r"Did you mean .*/d"):
        Dataset(tmp_path)
    with pytest.raises(BadConfig, match="25 steps per second, not 30"):
        DatasetWriter(tmp_path / "d", 30)
    with DatasetWriter(tmp_path / "d", 25), pytest.raises(BadConfig, match="Another process"):
        DatasetWriter(tmp_path / "d", 25)
    info = tmp_path / "d/meta/info.json"
    info.write_text(info.read_text().replace("v3.0", "v2.1"))
    with pytest.raises(BadConfig, match=r"format v2\.1"):
        Dataset(tmp_path / "d")
    info.write_text("{torn")
    with pytest.raises(BadConfig, match="maniple data repair"):
        Dataset(tmp_path / "d")
