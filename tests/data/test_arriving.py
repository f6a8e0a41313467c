"""Demonstrations that arrive while they are learned from."""

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.arriving import ArrivingDemos
from maniple.data.demo_mix import DemoMix
from maniple.data.episode import Episode
from maniple.data.lerobot.read import Dataset
from maniple.data.lerobot.write import DatasetWriter
from maniple.data.replay_buffer import ReplayBuffer

pytest.importorskip("pyarrow")
LAYOUT = Layout({"x": ArraySpec((1,), np.dtype(np.float32))})
ACTION = ArraySpec((1,), np.dtype(np.float32), -1.0, 1.0)


def episode(first, steps=6, marks=None):
    seen = np.arange(first, first + steps + 1, dtype=np.float32)[:, None]
    return Episode({"x": seen}, seen[:-1] / 1000, np.ones(steps), True, False, True, 3, "go", marks)


def arriving(folder, **more):
    return ArrivingDemos(folder, LAYOUT, ACTION, 1000, **more)


def look(demos):
    demos._next_look_s = 0.0
    return demos.look()


def test_whole_episodes_are_taken_as_they_come(tmp_path):
    demos = arriving(tmp_path / "d", first=[episode(500)])
    assert look(demos) == 0
    with DatasetWriter(tmp_path / "d", 25) as writer:
        writer.add(episode(0))
        writer.add(episode(100))
        assert look(demos) == 2 and look(demos) == 0
        writer.add(episode(200))
        assert look(demos) == 1 and demos.taken == 3
    drawn = demos.ring.sample(2000, 0.9)
    firsts = {500, 0, 100, 200}
    wanted = {float(first + k) for first in firsts for k in range(6)}
    assert set(drawn.obs["x"].ravel().tolist()) == wanted
    assert np.allclose(drawn.next_obs["x"], drawn.obs["x"] + 1)


def test_an_unreadable_episode_is_left_out(tmp_path):
    """Later ones are learned from; the newest gets a second look, for it may be on its way."""
    with DatasetWriter(tmp_path, 25) as writer:
        for first in (0, 100, 200):
            writer.add(episode(first))
    tables = sorted((tmp_path / "data").rglob("*.parquet"))
    assert len(tables) == 3
    for torn in tables[1:]:
        torn.write_bytes(b"not a table")
    demos = arriving(tmp_path)
    with pytest.warns(UserWarning, match="Episode 1 .* is left out") as told:
        assert look(demos) == 1 and demos.taken == 2
    assert len(told) == 1
    with pytest.warns(UserWarning, match="Episode 2 .* is left out"):
        assert look(demos) == 0 and demos.taken == 3


def test_only_a_persons_steps_are_demonstrations(tmp_path):
    marks = np.array([False, True, True, False, False, True])
    with DatasetWriter(tmp_path, 25) as writer:
        writer.add(episode(0, marks=marks))
        writer.add(episode(100, marks=np.zeros(6, bool)))
    assert np.array_equal(Dataset(tmp_path)[0].intervention, marks)
    demos = arriving(tmp_path)
    assert look(demos) == 2
    drawn = demos.ring.sample(500, 0.9, n_step=3)
    assert set(drawn.obs["x"].ravel().tolist()) == {1.0, 2.0, 5.0}
    # A reward that the policy earned afterwards is not added to the person's.
    assert drawn.reward[drawn.obs["x"].ravel() == 2.0].max() == 1.0


def test_nothing_has_arrived_yet(tmp_path):
    online = ReplayBuffer(LAYOUT, ACTION, 1, 50)
    online.extend(episode(0).obs, episode(0).action, np.ones(6), *np.ones((3, 6), bool))
    mix = DemoMix(online, arriving(tmp_path / "none").ring)
    assert len(mix.sample(8, 0.9).reward) == 8


def test_a_run_goes_on_with_what_it_had(tmp_path):
    with DatasetWriter(tmp_path, 25) as writer:
        for first in (0, 100, 200):
            writer.add(episode(first))
    demos = arriving(tmp_path)
    demos.take_until(2)
    assert demos.taken == 2 and len(demos.ring) < 3 * 7
    with pytest.raises(BadConfig, match="had learned from 5 episodes"):
        demos.take_until(5)


def test_what_does_not_fit_is_said(tmp_path):
    with DatasetWriter(tmp_path, 25) as writer:
        writer.add(episode(0))
    other = Layout({"y": ArraySpec((2,), np.dtype(np.float32))})
    demos = ArrivingDemos(tmp_path, other, ACTION, 100)
    with pytest.raises(BadConfig, match="do not fit the task"):
        look(demos)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfig, match="a file"):
        arriving(tmp_path / "file")


@pytest.mark.slow
def test_a_resumed_run_is_the_same_if_nothing_has_arrived(tmp_path, inside):
    """What was taken in before the checkpoint is taken in again, in the same order."""
    from maniple.run.checkpoint import find

    pytest.importorskip("torch")
    inside("demos", "record", "--out", tmp_path / "d", "--task", "so101/Reach-v0", "--episodes", 3)
    words = ["train", "sac", "--task", "so101/Reach-v0", "--num-envs", 4, "--demos", 0,
             "--eval-n-trajs", 0, "--training-starts", 60, "--random-steps", 60, "--log-period",
             100, "--demos-from", tmp_path / "d", "--run-dir"]  # fmt: skip
    inside(*words, tmp_path / "whole", "--max-steps", 240)
    inside(*words, tmp_path / "parts", "--max-steps", 120)
    inside(*words[:2], "--resume", "--run-dir", tmp_path / "parts", "--max-steps", 240)
    whole, parts = (find(tmp_path / name, best=False) for name in ("whole", "parts"))
    assert whole.state()["learner"]["demo_episodes"] == 3
    ours = parts.arrays()
    assert all(np.array_equal(array, ours[name]) for name, array in whole.arrays().items())
