"""Fixtures that every test may use, and which tests cannot run beside others."""

import sys
from pathlib import Path

import numpy as np
import pytest
import task_sample

import maniple

ALONE = (
    "core/test_child.py",
    "e2e/test_torchrun.py",
    "engine/test_pinning.py",
    "envs/coppelia/test_adapter.py",
    "faults",
    "learn/test_cluster.py",
    "learn/test_ranks.py",
    "run/test_lock.py",
    "sim/test_gl_backend.py",
)
"""Files and folders about time, processes, cores, signals, displays, leaks or ports."""


@pytest.hookimpl(tryfirst=True)  # Before pytest selects by marker.
def pytest_collection_modifyitems(items):
    """Mark what is in ALONE; a single test elsewhere has the marker itself."""
    paths = [Path(__file__).parent / name for name in ALONE]
    missing = [str(path) for path in paths if not path.exists()]
    assert not missing, f"ALONE in tests/conftest.py names what is not there: {missing}"
    for item in items:
        if any(path == item.path or path in item.path.parents for path in paths):
            item.add_marker(pytest.mark.alone)


@pytest.fixture(autouse=True)
def one_torch_thread():
    """Small networks on a shared machine are quickest, and the same everywhere, on one thread."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def make_vec():
    """Make vector environments with the same samples every time, closed when the test ends."""
    made = []

    def make(*args, **kwargs):
        made.append(maniple.make_vec(*args, **kwargs))
        made[-1].action_space.seed(0)
        return made[-1]

    yield make
    for envs in made:
        envs.close()


@pytest.fixture
def inside(capsys):
    """Run a command in this process: quicker than starting Python and its packages again."""
    from maniple.cli.main import main

    def run(*words, code: int = 0):
        capsys.readouterr()
        try:
            found = main([str(word) for word in words])
        except SystemExit as ending:
            found = ending.code
        printed = capsys.readouterr()
        assert found == code, printed.err + printed.out
        return printed

    return run


SMALL_PHASE = [
    "--task", "so101/Reach-v0", "--steps-per-episode", "10", "--updates-per-episode", "1",
    "--batch-size", "3", "--sequence-length", "3", "--held-out", "1", "--log-every", "1",
    "--image-size", "32", "32", "--buffer-frames", "2000",
]  # fmt: skip


@pytest.fixture
def small():
    """Words that make any phase of a world model small."""
    return list(SMALL_PHASE)


@pytest.fixture(scope="session")
def teacher_dir(tmp_path_factory):
    """The run folder of a tiny teacher, from which tests of later phases begin."""
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    from maniple.cli.main import main

    folder = tmp_path_factory.mktemp("teacher") / "run"
    words = ["train", "teacher", "1", "2", "--num-episodes", "2", *SMALL_PHASE]
    assert main([*words, "--output-dir", str(folder), "--json"]) == 0
    return folder


def same(a, b) -> bool:
    """Tell whether two nested structures hold the same bits."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) and a.dtype == object:
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(a, b)


def listed(tasks):
    """Every task; those that are not in this run's sample are marked slow."""
    chosen = task_sample.chosen()
    slow = pytest.mark.slow
    return [pytest.param(task, marks=() if task in chosen else slow) for task in sorted(tasks)]


def near_actions(envs, obs, rng, chunk=()):
    """Random actions, (num_envs, *chunk, size); where they are poses, near the present one.

    Of uniform poses 4 % lie in the workspace: a tenth of the actions is such a one.
    """
    space, lead = envs.single_action_space, (envs.num_envs, *chunk)
    actions = rng.uniform(space.low, space.high, (*lead, *space.shape)).astype(space.dtype)
    if envs.metadata["arm_mode"] in ("ik", "planning"):
        pose = obs["gripper_pose"].reshape(envs.num_envs, *(1 for _ in chunk), 7)
        noise = rng.normal(0.0, [0.03] * 3 + [0.05] * 4, (*lead, 7))
        is_near = rng.random((*lead, 1)) < 0.9
        actions[..., :7] = np.where(is_near, pose + noise, actions[..., :7])
    return actions


def pytest_configure(config):
    """Choose the tasks of this run, in the process that starts the others."""
    task_sample.start(config)


def pytest_terminal_summary(terminalreporter):
    """Say which tasks were taken; the next run takes the next ones."""
    task_sample.finish(terminalreporter)
