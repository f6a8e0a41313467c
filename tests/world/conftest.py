"""A tiny teacher that every test of later phases begins from."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("accelerate")

SMALL = ["--task", "so101/Reach-v0", "--steps-per-episode", "10", "--updates-per-episode", "1",
         "--batch-size", "3", "--sequence-length", "3", "--held-out", "1", "--log-every", "1",
         "--image-size", "32", "32", "--buffer-frames", "2000"]  # fmt: skip


@pytest.fixture(scope="session")
def teacher_dir(tmp_path_factory):
    """The run folder of a teacher that was trained for two episodes."""
    from maniple.cli.main import main

    folder = tmp_path_factory.mktemp("teacher") / "run"
    words = ["train", "teacher", "1", "2", "--num-episodes", "2", *SMALL]
    assert main([*words, "--output-dir", str(folder), "--json"]) == 0
    return folder


@pytest.fixture
def small():
    """Words that make any phase small."""
    return list(SMALL)
