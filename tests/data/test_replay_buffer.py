"""The replay gives back what happened, each frame once, and never mixes episodes."""

from __future__ import annotations

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.replay_buffer import ReplayBuffer

ROWS = 3
LAYOUT = Layout(
    {
        "mark": ArraySpec((3,), np.dtype(np.int64)),
        "front_rgb": ArraySpec((2, 2, 3), np.dtype(np.uint8), 0, 255, "rgb"),
    }
)
ACTION = ArraySpec((1,), np.dtype(np.float32), -1e9, 1e9)


class Story:
    """Rows whose observations say which row, episode and step they belong to."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.episode = np.zeros(ROWS, int)
        self.t = np.zeros(ROWS, int)
        self.waiting = np.zeros(ROWS, bool)

    def obs(self) -> dict:
        mark = np.stack([np.arange(ROWS), self.episode, self.t], 1)
        frame = np.broadcast_to((self.t % 256)[:, None, None, None], (ROWS, 2, 2, 3))
        return {"mark": mark, "front_rgb": frame.astype(np.uint8)}

    def step(self) -> tuple:
        """Step as next-step autoreset does."""
        action = (self.episode * 1000 + self.t)[:, None].astype(np.float32)
        fresh = self.waiting.copy()
        self.episode += fresh
        self.t = np.where(fresh, 0, self.t + 1)
        ends = (self.rng.random(ROWS) < 0.15) & ~fresh
        terminated = ends & (self.rng.random(ROWS) < 0.5)
        truncated = ends & ~terminated
        reward = np.where(fresh, 0.0, self.t.astype(float))
        self.waiting = ends
        return action, reward, terminated, truncated, self.obs()


def fill(ring: ReplayBuffer, steps: int, story: Story | None = None) -> dict:
    """Play a story into a ring; return how every episode ended: (row, episode) -> (t, kind)."""
    story = story or Story()
    ring.begin(story.obs())
    ends = {}
    for _ in range(steps):
        action, reward, terminated, truncated, obs = story.step()
        ring.add(action, reward, terminated, truncated, obs)
        for row in np.flatnonzero(terminated | truncated):
            ends[row, story.episode[row]] = (story.t[row], bool(terminated[row]))
    return ends


@pytest.mark.parametrize("steps", [20, 400])
def test_every_draw_is_a_transition_that_happened(steps):
    """Neither before nor after the ring is full is anything mixed up."""
    ring = ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=300)
    ends = fill(ring, steps)
    batch = ring.sample(2000, discount=0.9)
    row, episode, t = batch.obs["mark"].T
    assert np.array_equal(batch.next_obs["mark"], np.stack([row, episode, t + 1], 1))
    assert np.array_equal(batch.action[:, 0], episode * 1000 + t)
    assert np.array_equal(batch.reward, t + 1)
    for k in range(len(t)):
        last, is_terminal = ends.get((row[k], episode[k]), (None, False))
        is_last = last is not None and t[k] + 1 == last
        assert batch.discount[k] == (0.0 if is_last and is_terminal else np.float32(0.9))


def test_all_that_is_remembered_is_drawn():
    """Every usable transition can come up, and the oldest are the ones that are forgotten."""
    ring = ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=60)
    story = Story()
    fill(ring, 100, story)
    drawn = {tuple(m) for m in ring.sample(20_000, 0.9).obs["mark"].tolist()}
    usable = {
        tuple(m)
        for slot in range(ring.steps)
        for row, m in enumerate(ring.arrays["obs.mark"][slot].tolist())
        if slot != ring.head and ring.arrays["usable"][slot, row]
    }
    assert drawn == usable
    assert len(ring) == 60


def test_lost_rows_are_not_learned_from():
    """A row whose simulator was replaced leads nowhere."""
    ring = ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=300)
    story = Story()
    ring.begin(story.obs())
    for k in range(50):
        action, reward, terminated, truncated, obs = story.step()
        lost = np.zeros(ROWS, bool)
        if k % 5 == 0:
            lost[1] = truncated[1] = True
            terminated[1], story.waiting[1] = False, True
        ring.add(action, reward, terminated, truncated, obs, lost)
    batch = ring.sample(3000, 0.9, n_step=3)
    row, episode, t = batch.obs["mark"].T
    after = batch.next_obs["mark"].T
    assert np.array_equal(row, after[0]) and np.array_equal(episode, after[1])
    assert (after[2] > t).all() and (after[2] <= t + 3).all()


def test_a_row_that_pauses_still_waits_for_its_reset():
    """Lost, two pauses, reset: none of these steps follows from its action."""
    ring, obs = ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=300), Story().obs()
    action = np.zeros((ROWS, *ACTION.shape), np.float32)
    flags, reward = np.zeros(ROWS, bool), np.zeros(ROWS)
    ring.begin(obs)
    one = np.arange(ROWS) == 1
    for lost, truncated in ((flags, flags), (one, one), (one, flags), (one, flags), (None, flags)):
        ring.add(action, reward, flags, truncated, obs, lost)
    ring.add(action, reward, flags, flags, obs)
    assert ring.arrays["usable"][:6, 1].tolist() == [True, False, False, False, False, True]
    assert ring.arrays["usable"][:6, 0].all()


def test_n_steps_sum_rewards_and_stop_at_the_end():
    """Three steps are three rewards, discounted, and fewer where the episode ends."""
    ring = ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=600)
    ends = fill(ring, 150)
    batch = ring.sample(2000, discount=0.5, n_step=3)
    row, episode, t = batch.obs["mark"].T
    for k in range(len(t)):
        last, is_terminal = ends.get((row[k], episode[k]), (10**9, False))
        newest = ring.newest()["mark"][row[k]]
        limit = newest[2] if newest[1] == episode[k] else last
        n = min(3, last - t[k], limit - t[k])
        assert batch.next_obs["mark"][k, 2] == t[k] + n
        assert batch.reward[k] == pytest.approx(sum(0.5**j * (t[k] + 1 + j) for j in range(n)))
        ended = t[k] + n == last and is_terminal
        assert batch.discount[k] == pytest.approx(0.0 if ended else 0.5**n)


def test_stacked_pictures_do_not_cross_episodes():
    """Before an episode's first picture there is only that picture."""
    ring = ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=600, stack=3)
    fill(ring, 150)
    batch = ring.sample(1000, 0.9)
    t = batch.obs["mark"][:, 2]
    frames = batch.obs["front_rgb"][:, 0, 0, ::3]
    assert np.array_equal(frames[:, 2], t)
    assert np.array_equal(frames[:, 1], np.maximum(t - 1, 0))
    assert np.array_equal(frames[:, 0], np.maximum(t - 2, 0))


def test_segments_bring_everything_back():
    """Pieces stored now and then make the same ring, which goes on with the same draws."""
    ring, twin = (ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=90) for _ in range(2))
    story = Story()
    ring.begin(story.obs())
    since = 0
    for k in range(100):
        ring.add(*story.step())
        if k % 13 == 12 or k == 99:
            start = max(since, ring.oldest())
            twin.restore(ring.segment(since), start, ring.total)
            since = ring.total
    twin.set_rng_state(ring.rng_state())
    one, two = ring.sample(500, 0.9, 2), twin.sample(500, 0.9, 2)
    assert np.array_equal(one.obs["mark"], two.obs["mark"])
    assert np.array_equal(one.reward, two.reward)
    ring.add(*(step := story.step()))
    twin.add(*step)
    assert np.array_equal(ring.arrays["usable"], twin.arrays["usable"])


def test_frames_are_stored_once():
    """100k transitions of two cameras need hardly more than their frames."""
    pictures = {n: ArraySpec((128, 128, 3), np.dtype(np.uint8), 0, 255, "rgb") for n in ("a", "b")}
    layout = Layout({**pictures, "state": ArraySpec((18,))})
    ring = ReplayBuffer(layout, ArraySpec((4,), np.dtype(np.float32), -1, 1), 8, capacity=100_000)
    raw = 100_000 * 2 * 128 * 128 * 3
    assert ring.nbytes <= 1.05 * raw


def test_frames_may_live_in_files(tmp_path):
    """With a folder the frames are on disk, and come back the same."""
    ring = ReplayBuffer(LAYOUT, ACTION, ROWS, capacity=90, folder=tmp_path)
    fill(ring, 60)
    assert (tmp_path / "obs.front_rgb.npy").stat().st_size > 31 * ROWS * 12
    batch = ring.sample(200, 0.9)
    assert np.array_equal(batch.obs["front_rgb"][:, 0, 0, 0], batch.obs["mark"][:, 2])


def test_bad_use_is_named():
    """Too small, and empty."""
    with pytest.raises(BadConfig, match="too small"):
        ReplayBuffer(LAYOUT, ACTION, 64, capacity=10)
    with pytest.raises(BadConfig, match="empty"):
        ReplayBuffer(LAYOUT, ACTION, 2, capacity=10).sample(4)
