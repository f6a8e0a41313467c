"""kill -9 while 'maniple record' writes: every episode that it told of is there, whole."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from maniple.cli.replay_group import make_group
from maniple.core.errors import BadConfig
from maniple.data.lerobot.read import Dataset
from maniple.data.lerobot.repair import repair
from maniple.data.redraw import Redrawing
from maniple.data.trajectory import numbers_in, read_trajectory, states_in

LEROBOT = os.environ.get("MANIPLE_LEROBOT_PYTHON")
ORACLE = Path(__file__).parents[1] / "data" / "lerobot" / "oracle.py"
REACH = "so101/Reach-v0"


def record_and_kill(out, episodes, delay_s):
    """Let it tell of some episodes, kill it a moment later; return the seeds that it told of."""
    words = [sys.executable, "-m", "maniple.cli", "record", REACH, "--episodes", "100000",
             "--num-envs", "2", "--cameras", "front", "--image-size", "32", "32",
             "--out", str(out), "--append"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        told = [run.stdout.readline() for _ in range(episodes)]
        time.sleep(delay_s)
        os.killpg(run.pid, signal.SIGKILL)
        told += run.stdout.readlines()
    whole = [line for line in told if line.startswith("episode ") and line.endswith("\n")]
    assert len(whole) >= episodes, told
    return [int(line.split("seed ")[1].split(",")[0]) for line in whole]


def opened(out, told):
    """Return the episodes after 'maniple data repair'; before it, it opens or asks for that."""
    try:
        assert set(told) <= {e.seed for e in Dataset(out, with_pictures=False)}
    except BadConfig as error:
        assert "maniple data repair" in str(error)
    assert repair(out)["ok"]
    return list(Dataset(out))


def check(out, told):
    episodes = opened(out, told)
    assert set(told) <= {e.seed for e in episodes}
    assert len({e.seed for e in episodes}) == len(episodes), "no episode twice"
    folder = states_in(out)
    states = {n: read_trajectory(folder, n) for n in numbers_in(folder)}
    assert set(told) <= {t.seed for t in states.values()}
    for number, episode in enumerate(episodes):
        assert states[number].seed == episode.seed
        assert np.array_equal(states[number].action, episode.action)
    return episodes, states


def frames_are_ours(episodes, states):
    """What the films show is what the states look like, within the codec's error."""
    for number in (0, len(episodes) - 1):
        settings = states[number].origin.settings
        with closing(make_group(REACH, settings, 1)) as group:
            (drawn,) = Redrawing(group, [states[number]]).episodes()
        gap = np.abs(drawn.obs["front_rgb"].astype(int) - episodes[number].obs["front_rgb"])
        assert gap.mean() < 4 and gap.max() < 80


def lerobot_opens(out, episodes):
    """LeRobot's own reader sees as many episodes and steps, and the same actions."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(out.parent / "hf")}
    env.pop("PYTHONPATH", None)
    words = [str(LEROBOT), str(ORACLE), str(out), str(out.parent / "both")]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["episodes"] == len(episodes) and seen["frames"] == sum(map(len, episodes))
    assert np.array_equal(np.float32(seen["action"]), np.concatenate([e.action for e in episodes]))


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_kill_9(tmp_path, kills):
    """Each recording goes on where the one before it was killed, ten times."""
    rng = random.Random(kills)
    for start in range(0, kills, 10):
        told, out = [], tmp_path / str(start) / "r"
        for _ in range(min(10, kills - start)):
            told += record_and_kill(out, rng.randint(1, 4), rng.uniform(0, 0.05))
            episodes, states = check(out, told)
        frames_are_ours(episodes, states)
        if LEROBOT:
            lerobot_opens(out, episodes)


FULL = """
import resource, sys
from maniple.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), -1))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("form", ["states", "both"])
def test_a_disk_that_takes_no_more(tmp_path, form):
    """One line, exit code 2, nothing half-written that is told of."""
    words = ["record", "so101/LiftCube-v0", "--episodes", "3", "--format", form]
    done = subprocess.run(
        [sys.executable, "-c", FULL, "20000", *words, "--out", str(tmp_path / "r")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2 and "Cannot write" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and "episode 0:" not in done.stdout
    folder = tmp_path / "r" / "states"
    assert numbers_in(folder) == [] and not list(folder.glob("*.part"))
