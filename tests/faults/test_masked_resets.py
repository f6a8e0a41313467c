"""on_reset="mask": rows whose simulator takes long to reset pause, and the others go on."""

import signal
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import maniple
from maniple.core.errors import BadConfig
from maniple.core.faults import waiting_after
from maniple.data.frame_stack import FrameStack
from maniple.learn.episode_stats import EpisodeStats

pytestmark = pytest.mark.alone

SLOW_S = 0.25
GO, END, DIE_IN_RESET, RAISE_IN_RESET = 0.0, 1.0, 2.0, 3.0


class SlowReset(gymnasium.Env):
    """Counts steps and episodes; resets slowly but for the first time; ends on command."""

    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = spaces.Box(0.0, 3.0, (1,), np.float32)
    slow_s = SLOW_S

    def __init__(self, notes=None):
        self.notes = notes and Path(notes)
        self.episode, self.steps, self.last = -1, 0, GO

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.notes:
            with self.notes.open("a") as file:
                file.write("x")
        if self.episode >= 0:
            time.sleep(self.slow_s)
        if self.last == DIE_IN_RESET:
            signal.raise_signal(signal.SIGKILL)
        if self.last == RAISE_IN_RESET:
            self.last = GO
            raise OSError("no scene")
        self.episode, self.steps = self.episode + 1, 0
        return self.seen(), {"began": self.episode}

    def step(self, action):
        self.last = float(action[0])
        self.steps += 1
        return self.seen(), 1.0, self.last != GO, False, {}

    def seen(self):
        return np.array([self.episode, self.steps], np.float32)


class HangingReset(SlowReset):
    """Never comes back from its second reset."""

    slow_s = 600.0


def make(kind=SlowReset, rows=2, workers=None, **options):
    options = {"on_reset": "mask", **options}
    return maniple.make_vec(kind, rows, engine="process", workers=workers or rows, **options)


@pytest.fixture
def envs():
    made = make()
    made.reset(seed=0)
    yield made
    made.close()


def acts(*codes):
    return np.array(codes, np.float32)[:, None]


def until_shown(envs, row=0, actions=None):
    """Step until a row pauses no more; return that step and how many pauses there were."""
    actions = acts(*[GO] * envs.num_envs) if actions is None else actions
    end = time.monotonic() + 20
    for pauses in range(100_000):
        result = envs.step(actions)
        if "resetting" not in result[4] or not result[4]["_resetting"][row]:
            return result, pauses
        assert time.monotonic() < end
        time.sleep(0.001)
    raise AssertionError


def test_the_others_go_on(envs):
    """The row that resets repeats its last observation, earns nothing, and has not ended."""
    obs, _, terminated, _, _ = envs.step(acts(END, GO))
    assert terminated.tolist() == [True, False] and obs.tolist() == [[0, 1], [0, 1]]
    kept = obs.copy()
    start = time.perf_counter()
    obs, reward, terminated, truncated, info = envs.step(acts(GO, GO))
    assert time.perf_counter() - start < SLOW_S / 2
    assert info["_resetting"].tolist() == [True, False]
    assert obs.tolist() == [[0, 1], [0, 2]] and reward.tolist() == [0.0, 1.0]
    assert not terminated.any() and not truncated.any()
    (obs, reward, terminated, truncated, info), pauses = until_shown(envs)
    assert obs[0].tolist() == [1, 0] and obs[1].tolist() == [0, pauses + 3]
    assert reward.tolist() == [0.0, 1.0] and not (terminated | truncated).any()
    assert info["began"][0] == 1 and info["_began"].tolist() == [True, False]
    assert envs.step(acts(GO, GO))[0][0].tolist() == [1, 1]
    assert kept.tolist() == [[0, 1], [0, 1]]


def test_what_is_lent_stays_whole_while_a_row_resets():
    envs = make(copy_obs=False)
    envs.reset(seed=0)
    shown = envs.step(acts(END, GO))[0]
    time.sleep(2 * SLOW_S)
    assert shown.tolist() == [[0, 1], [0, 1]]
    envs.close()


def test_where_all_reset_the_first_is_awaited(envs):
    """Steps in which nothing moves would only burn the processor."""
    envs.step(acts(END, END))
    start = time.perf_counter()
    obs = envs.step(acts(GO, GO))[0]
    assert time.perf_counter() - start > SLOW_S / 2 and 1 in obs[:, 0]


def test_pauses_are_no_steps(envs):
    before = envs.stats()["env_steps"]
    envs.step(acts(END, GO))
    _, pauses = until_shown(envs)
    assert envs.stats()["env_steps"] - before == 2 + pauses + 2


def test_rows_of_one_worker_pause_together():
    envs = make(rows=4, workers=2)
    envs.reset(seed=0)
    envs.step(acts(END, GO, GO, GO))
    obs, *_, info = envs.step(acts(GO, GO, GO, GO))
    assert info["_resetting"].tolist() == [True, True, False, False]
    assert obs[:, 1].tolist() == [1, 1, 2, 2]
    obs = until_shown(envs)[0][0]
    assert obs[:2].tolist() == [[1, 0], [0, 2]]
    envs.close()


def test_chunks_pause_too(envs):
    actions = np.zeros((2, 3, 1), np.float32)
    actions[0, 1] = END
    *_, info = envs.step_chunk(actions)
    assert info["num_steps"].tolist() == [2, 3]
    *_, info = envs.step_chunk(np.zeros((2, 3, 1), np.float32))
    assert info["num_steps"].tolist() == [0, 3] and info["_resetting"].tolist() == [True, False]


def test_a_worker_that_dies_in_its_reset_is_replaced(envs):
    envs.step(acts(DIE_IN_RESET, GO))
    _, _, _, truncated, info = until_shown(envs)[0]
    assert truncated.tolist() == [True, False] and "SIGKILL" in info["worker_restarted"][0]
    obs = until_shown(envs)[0][0]
    assert obs[0].tolist() == [0, 0]
    assert envs.step(acts(GO, GO))[0][0].tolist() == [0, 1]


def test_a_reset_that_hangs_is_noticed():
    envs = make(HangingReset, step_timeout_s=0.5)
    envs.reset(seed=0)
    envs.step(acts(END, GO))
    _, _, _, truncated, info = until_shown(envs)[0]
    assert truncated.tolist() == [True, False] and "gave no answer" in info["worker_restarted"][0]
    envs.close()


def test_a_reset_that_raises_is_told_and_tried_again(envs):
    envs.step(acts(RAISE_IN_RESET, GO))
    obs, _, _, truncated, info = until_shown(envs)[0]
    assert truncated.tolist() == [True, False] and "no scene" in info["env_error"][0]
    assert obs[0].tolist() == [0, 1]
    obs, _, _, truncated, info = until_shown(envs)[0]
    assert obs[0].tolist() == [0, 0] and not truncated.any() and "env_error" not in info


def test_a_reset_by_hand_waits_for_the_one_under_way(envs):
    envs.step(acts(END, GO))
    obs, _ = envs.reset(options={"reset_mask": np.array([False, True])})
    assert obs[1].tolist() == [1, 0]
    obs, _, terminated, truncated, info = envs.step(acts(GO, GO))
    assert obs.tolist() == [[1, 0], [1, 1]] and "resetting" not in info
    assert not (terminated | truncated).any()


def test_infos_come_with_the_step_that_shows_the_reset(envs):
    """Not with a reset of other rows that came in between."""
    envs.step(acts(END, GO))
    _, info = envs.reset(options={"reset_mask": np.array([False, True])})
    assert info["_began"].tolist() == [False, True]
    *_, info = envs.step(acts(GO, GO))
    assert info["_began"].tolist() == [True, False] and info["began"][0] == 1


class QuietReset(SlowReset):
    """Says something in its second reset, and nothing in later ones."""

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        return obs, info if self.episode == 1 else {}


def test_infos_of_a_reset_that_was_overtaken_are_forgotten():
    envs = make(QuietReset)
    envs.reset(seed=0)
    envs.step(acts(END, GO))
    envs.reset(seed=1)
    envs.step(acts(END, GO))
    (_, _, _, _, info), _ = until_shown(envs)
    assert "began" not in info
    envs.close()


def test_a_state_of_a_row_that_was_reset_ahead():
    """From there it goes on as it would have: the episode that was begun is not skipped."""
    envs = maniple.make_vec(
        "so101/Reach-v0", 2, engine="process", workers=2, max_episode_steps=2, on_reset="mask"
    )
    envs.reset(seed=0)
    quiet = np.zeros(envs.action_space.shape, np.float32)
    envs.step(quiet)
    _, _, _, truncated, _ = envs.step(quiet)
    assert truncated.all()
    states = envs.get_state()
    first = until_shown(envs, actions=quiet)[0][0]
    envs.set_state(states)
    again = until_shown(envs, actions=quiet)[0][0]
    assert envs.get_attr("episode") == (1, 1)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    envs.close()


class Remembering(maniple.ExtendedTask):
    """Counts how often its reward is asked for."""

    XML_PATH = Path(__file__).parents[2] / "examples" / "models" / "pendulum.xml"
    ACTION_SPACE = spaces.Box(-1.0, 1.0, (1,), np.float64)
    OBSERVATION_SPACE = spaces.Dict({"speed": spaces.Box(-99.0, 99.0, (1,), np.float64)})

    def __init__(self):
        self.asked = 0

    def get_observation(self, physics):
        return {"speed": physics.data.qvel.copy()}

    def get_reward(self, physics):
        self.asked += 1
        return float(self.asked)


def test_rows_that_go_on_are_asked_once_a_step():
    """Also where another row of their worker is reset ahead."""
    maniple.register("tests/Remembering-v0", Remembering)
    found = []
    for on_reset in ("block", "mask"):
        envs = maniple.make_vec(
            "tests/Remembering-v0", 2, engine="process", workers=1, max_episode_steps=3,
            on_reset=on_reset,
        )  # fmt: skip
        envs.reset(seed=0)
        rewards = [envs.step(np.zeros((2, 1)))[1].tolist() for _ in range(3)]
        until_shown(envs, actions=np.zeros((2, 1)))
        rewards.append(until_shown(envs, actions=np.zeros((2, 1)))[0][1].tolist())
        found.append(rewards)
        envs.close()
    assert found[0] == found[1]


def test_where_one_comes_back_and_the_other_resets_a_step_waits():
    envs = make(on_restart="mask", spares=0)
    envs.reset(seed=0)
    envs.step(acts(DIE_IN_RESET, GO))
    envs.step(acts(GO, END))
    for _ in range(2000):
        _, _, _, _, info = envs.step(acts(GO, GO))
        if "resetting" not in info and "worker_restarting" not in info:
            break
    else:
        raise AssertionError("it returns again and again, although no row moves")
    envs.close()


def test_questions_wait_too(envs):
    envs.step(acts(END, GO))
    assert envs.get_attr("episode") == (1, 0)
    assert envs.step(acts(GO, GO))[0].tolist() == [[1, 0], [0, 2]]


def test_send_and_recv_wait_too(envs):
    envs.step(acts(END, GO))
    envs.send(acts(GO, GO))
    rows, (obs, *_) = envs.recv(2)
    assert rows.tolist() == [0, 1] and obs.tolist() == [[1, 0], [0, 2]]


def test_a_replacement_resets_beside_the_others_too(tmp_path):
    """It comes back with all rows to be reset: nobody waits for that either."""
    envs = make(lambda: SlowReset(tmp_path / "resets"))
    envs.reset(seed=0)
    envs.step(acts(DIE_IN_RESET, GO))
    until_shown(envs)
    _, _, _, _, info = envs.step(acts(GO, GO))
    assert info["_resetting"].tolist() == [True, False]
    until_shown(envs)
    envs.close()


def test_an_interrupt_changes_nothing(envs, monkeypatch):
    """The next step goes on, and no row is reset twice."""
    envs.step(acts(END, GO))
    engine = envs._engine
    monkeypatch.setattr(engine, "_finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        envs.step(acts(GO, GO))
    monkeypatch.undo()
    obs = until_shown(envs)[0][0]
    assert obs[0].tolist() == [1, 0] and obs[1][0] == 0


def test_our_own_tasks_show_the_same_episodes():
    """Pictures included: what was reset aside is what a blocking engine shows."""
    options = {"engine": "process", "workers": 2, "max_episode_steps": 3, "cameras": ("front",),
               "image_size": (32, 32), "render_every": 2}  # fmt: skip
    shown = []
    for on_reset in ("block", "mask"):
        envs = maniple.make_vec("so101/Reach-v0", 2, on_reset=on_reset, **options)
        obs, _ = envs.reset(seed=3)
        seen = [{name: array[0].copy() for name, array in obs.items()}]
        while len(seen) < 10:
            obs, _, _, _, info = envs.step(np.full(envs.action_space.shape, 0.3, np.float32))
            if "resetting" not in info or not info["_resetting"][0]:
                seen.append({name: array[0].copy() for name, array in obs.items()})
                seen[-1]["rendered"] = info["rendered"][0]
        shown.append(seen)
        envs.close()
    for one, other in zip(*shown, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_other_ways_to_reset_have_no_place_for_it(mode):
    with pytest.raises(BadConfig, match="on_reset='mask'"):
        make(autoreset_mode=mode)
    with pytest.raises(BadConfig, match="on_reset is 'later'"):
        make(on_reset="later")


def test_pauses_do_not_lengthen_episodes():
    """Of a row that pauses because another one of its worker is reset."""
    stats, none = EpisodeStats(1), np.zeros(1, bool)
    pause = {"resetting": np.array([True]), "_resetting": np.array([True])}
    for info in ({}, pause, pause, {}):
        stats.add(np.array([0.0 if info else 1.0]), none, info)
    stats.add(np.array([1.0]), ~none, {})
    assert stats.summary()["train_length"] == 3 and stats.summary()["train_return"] == 3


def test_who_waits_goes_on_waiting():
    """A row that pauses between episodes belongs to neither."""
    ended, paused = np.array([True, False]), np.array([True, False])
    no = np.zeros(2, np.bool_)
    waiting = waiting_after(ended, no, None)
    assert waiting_after(no, waiting, paused).tolist() == [True, False]
    assert waiting_after(no, waiting, None).tolist() == [False, False]

    stats = EpisodeStats(2)
    stats.add(np.ones(2), ended, {})
    for _ in range(5):
        stats.add(np.zeros(2), no, {"resetting": paused, "_resetting": paused})
    stats.add(np.zeros(2), no, {})
    stats.add(np.ones(2), np.array([True, False]), {})
    assert stats.summary()["train_length"] == 1.0 and stats.episodes == 2


def test_pictures_of_two_episodes_are_not_mixed():
    layout = maniple.make_vec(
        "so101/Reach-v0", 1, cameras=("front",), image_size=(8, 8)
    ).layout  # fmt: skip
    frames = FrameStack(layout, 2)
    picture = lambda value: {"front_rgb": np.full((1, 8, 8, 3), value, np.uint8)}  # noqa: E731
    yes, no = np.array([True]), np.array([False])
    frames.begin(picture(1))
    frames.push(picture(2), yes)
    frames.push(picture(2), no, lost=yes)
    seen = frames.push(picture(9), no)
    assert set(np.unique(seen["front_rgb"])) == {9}
