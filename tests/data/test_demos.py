"""Demonstrations of experts: the same episodes however they are played."""

import os
import signal

import numpy as np
import pytest
from conftest import listed

import maniple
from maniple.core.errors import BadConfig, ManipleError
from maniple.data.demos import Tally, collect

REACH = "so101/Reach-v0"


def play(make_vec, num_envs, episodes=5, task=REACH, expert=None, **options):
    envs = make_vec(task, num_envs, **options)
    return list(collect(envs, expert or maniple.expert(task, num_envs), episodes, seed=3))


def equal(a, b):
    names = ("terminated", "truncated", "success", "seed", "task")
    return (
        a.obs.keys() == b.obs.keys()
        and all(a.obs[k].tobytes() == b.obs[k].tobytes() for k in a.obs)
        and a.action.tobytes() == b.action.tobytes()
        and a.reward.tobytes() == b.reward.tobytes()
        and all(getattr(a, n) == getattr(b, n) for n in names)
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"num_envs": 1, "engine": "serial"},
        {"num_envs": 3, "engine": "native", "copy_obs": False},
        {"num_envs": 4, "engine": "process", "workers": 2},
        {"num_envs": 2, "autoreset_mode": "Disabled"},
    ],
)
def test_the_same_episodes_on_any_engine_and_number(make_vec, settings):
    expected = play(make_vec, 2)
    assert [e.seed for e in expected] == [3, 4, 5, 6, 7] and all(e.success for e in expected)
    assert expected[0].task == make_vec(REACH, 1).get_attr("sentence")[0]
    for a, b in zip(expected, play(make_vec, **settings), strict=True):
        assert equal(a, b)


@pytest.mark.parametrize("task", listed(maniple.registry.EXPERTS))
def test_every_expert(make_vec, task):
    # Some tasks show less by themselves than their expert looks at.
    episode = play(make_vec, 2, episodes=1, task=task, observations="all")[0]
    assert episode.success and episode.terminated
    layout = make_vec(task, 1, observations="all").single_observation_space
    for name, space in layout.items():
        assert episode.obs[name].shape == (len(episode) + 1, *space.shape)
        assert episode.obs[name].dtype == space.dtype


def test_an_episode_replays_from_its_seed(make_vec):
    episode = play(make_vec, 3, task="so101/LiftCube-v0")[-1]
    envs = make_vec("so101/LiftCube-v0", 1)
    obs, _ = envs.reset(seed=episode.seed)
    for t, action in enumerate(episode.action):
        assert all(np.array_equal(obs[k][0], episode.obs[k][t]) for k in obs)
        obs, reward, *_ = envs.step(action[None])
        assert np.float32(reward[0]) == episode.reward[t]
    assert all(np.array_equal(obs[k][0], episode.obs[k][-1]) for k in obs)


def test_pictures_are_part_of_it(make_vec):
    episode = play(make_vec, 2, episodes=1, cameras=("front",), image_size=(32, 48))[0]
    assert episode.obs["front_rgb"].shape == (len(episode) + 1, 32, 48, 3)
    assert (episode.obs["front_rgb"][0] != episode.obs["front_rgb"][-1]).any()


class Still:
    """Never gets anywhere."""

    def __init__(self, num_envs):
        self.num_envs = num_envs

    def act(self, obs):
        return np.zeros((self.num_envs, 4), np.float32)

    def reset(self, rows):
        pass


def test_failures_are_left_out_unless_asked_for(make_vec):
    tallies = []
    envs = make_vec("so101/LiftCube-v0", 2, max_episode_steps=4)
    found = list(collect(envs, Still(2), 3, only_successes=False, on_end=tallies.append))
    assert [len(e) for e in found] == [4, 4, 4]
    assert all(e.truncated and not e.terminated and not e.success for e in found)
    assert tallies[-1] == Tally(4, 0)
    with pytest.raises(ManipleError, match="Of 30 episodes only 0 were usable"):
        list(collect(envs, Still(2), 3))


def test_what_cannot_work_is_told(make_vec):
    with pytest.raises(BadConfig, match="without SameStep"):
        play(make_vec, 2, autoreset_mode="SameStep")
    with pytest.raises(BadConfig, match="episodes is 0"):
        play(make_vec, 2, episodes=0)


class Killer:
    """An expert whose first worker dies in the middle of an episode."""

    def __init__(self, envs, expert):
        self._envs, self._expert, self._steps = envs, expert, 0

    def act(self, obs):
        self._steps += 1
        if self._steps == 3:
            os.kill(self._envs._engine._handles[0].pid, signal.SIGKILL)
        return self._expert.act(obs)

    def reset(self, rows):
        self._expert.reset(rows)


def test_an_episode_that_a_dead_worker_cut_off_is_left_out(make_vec):
    envs = make_vec(REACH, 4, engine="process", workers=4)
    found = list(collect(envs, Killer(envs, maniple.expert(REACH, 4)), 5, seed=3))
    assert [e.seed for e in found] == [4, 5, 6, 7, 8]
    expected = play(make_vec, 2, episodes=6)
    assert all(equal(a, b) for a, b in zip(expected[1:], found, strict=True))


def test_every_episode_tells_its_own_variation(make_vec):
    """Two rows play eight episodes: what is said belongs to the episode, not to the row."""
    task = maniple.registry.find("OpenDrawer")()
    for episode in play(make_vec, 2, episodes=8, task="OpenDrawer"):
        variation = int(episode.obs["variation_index"][0, 0])
        assert episode.task == task.sentences(variation)[0]
