"""Episodes as states: what was written comes back, and nothing else is read."""

import io
import json
import os
import zipfile

import numpy as np
import pytest

import maniple
from maniple.core.checked_arrays import read_arrays, write_arrays
from maniple.core.checked_file import BadFile
from maniple.core.errors import BadConfig
from maniple.data.demos import collect
from maniple.data.trajectory import (
    Origin,
    TrajectoryWriter,
    arrays_file,
    facts_file,
    numbers_in,
    read_trajectory,
    states_in,
)

LIFT = "so101/LiftCube-v0"


def recorded(folder, episodes=2, task=LIFT, **options):
    envs = maniple.make_vec(task, 2, observations="all", **options)
    made = list(collect(envs, maniple.expert(task, 2), episodes, with_states=True))
    envs.close()
    with TrajectoryWriter(folder, Origin(task, {"observations": "all", **options}, 25)) as writer:
        for number, episode in enumerate(made):
            writer.add(episode, number)
    return made, states_in(folder)


@pytest.mark.parametrize("options", [{}, {"randomize": True}])
def test_what_was_recorded_comes_back(tmp_path, options):
    made, folder = recorded(tmp_path, **options)
    assert numbers_in(folder) == [0, 1]
    for number, episode in enumerate(made):
        read = read_trajectory(folder, number)
        assert read.states.integration.tobytes() == episode.states.integration.tobytes()
        assert read.action.tobytes() == episode.action.tobytes()
        assert (read.seed, read.success, read.sentence) == (number, True, episode.task)
        for step in (0, len(episode)):
            a, b = read.states.at(step), episode.states.at(step)
            assert a["counters"] == b["counters"] and a["expanded"].keys() == b["expanded"].keys()
            assert a["randomised"].keys() == b["randomised"].keys()
        assert bool(read.states.randomised) == bool(options)


def test_the_facts_are_written_last(tmp_path, monkeypatch):
    """An episode of which only the arrays are there is not there."""
    _, folder = recorded(tmp_path)
    facts_file(folder, 1).unlink()
    assert numbers_in(folder) == [0]
    made, _ = recorded(tmp_path / "other")
    writer = TrajectoryWriter(tmp_path, Origin(LIFT, {}, 25))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("maniple.core.checked_arrays.atomic.write_bytes", full)
    with pytest.raises(maniple.core.errors.ManipleError, match="No space left"):
        writer.add(made[0], 0)
    writer.close()
    assert numbers_in(folder) == [], "the old facts do not tell of half-new arrays"


def test_one_writer_at_a_time(tmp_path):
    origin = Origin(LIFT, {}, 25)
    says = pytest.raises(BadConfig, match="Another process is writing")
    with TrajectoryWriter(tmp_path, origin), says:
        TrajectoryWriter(tmp_path, origin)


def spoiled_npz(path, **arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    path.write_bytes(file.getvalue())


def compressed(path):
    file = io.BytesIO()
    np.savez_compressed(file, integration=np.zeros((1000, 1000)))
    path.write_bytes(file.getvalue())


def with_objects(path):
    spoiled_npz(path, integration=np.array([print], object))


def lying_header(path):
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        array, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 9)}
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("integration.npy", array.getvalue() + b"12345678")


def torn(path):
    path.write_bytes(path.read_bytes()[:-100])


def not_finite(path):
    arrays = read_arrays(path)
    arrays["integration"][3, 3] = np.nan
    spoiled_npz(path, **arrays)


def too_few(path):
    arrays = read_arrays(path)
    spoiled_npz(path, **{**arrays, "action": arrays["action"][:-1]})


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil",
    [compressed, with_objects, lying_header, torn, not_finite, too_few, a_pipe,
     lambda path: path.write_bytes(b"rubbish"), lambda path: path.unlink()],
)  # fmt: skip
def test_arrays_that_are_refused(tmp_path, spoil):
    _, folder = recorded(tmp_path, 1)
    spoil(arrays_file(folder, 0))
    with pytest.raises(BadFile) as error:
        read_trajectory(folder, 0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other"}, "does not tell of states"),
        ({"format_version": 99, "versions": {"maniple": "9.9"}}, "version 99.*maniple 9.9"),
        ({"task": 5}, "'task'"),
        ({"settings": []}, "'settings'"),
        ({"fps": 0}, "'fps'"),
        ({"seed": True}, "'seed'"),
        ({"randomised": ["nothing"]}, "was randomised and is missing"),
        ({"steps": 3}, "do not fit together"),
    ],
)
def test_facts_that_are_refused(tmp_path, change, says):
    _, folder = recorded(tmp_path, 1)
    facts = json.loads(facts_file(folder, 0).read_text())
    facts_file(folder, 0).write_text(json.dumps({**facts, **change}))
    with pytest.raises(BadFile, match=says):
        read_trajectory(folder, 0)


def test_arrays_come_back(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True]), "c": np.array(7, np.uint64)}
    write_arrays(tmp_path / "x.npz", arrays)
    found = read_arrays(tmp_path / "x.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
