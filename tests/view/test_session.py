"""Who acts on the page, and what is kept of it; without a browser."""

import time

import numpy as np
import pytest

from maniple.core.spec import ArraySpec
from maniple.registry import make_vec
from maniple.view.keys import LONG_EPISODE, Keys
from maniple.view.person import Person
from maniple.view.session import Session


@pytest.fixture
def play():
    made = []

    def open_session(task="so101/Reach-v0", rows=2, limit=60, **options):
        settings = {"observations": ("all",), "max_episode_steps": LONG_EPISODE, **options}
        made.append(Session(make_vec(task, rows, engine="native", **settings), task, limit))
        return made[-1]

    yield open_session
    for session in made:
        session.close()


def drive(session, *names):
    for name in names:
        session.keys.press(name, time.monotonic())
    session.step()


def test_a_tap_is_one_step_and_a_hold_goes_on():
    keys = Keys(hold_s=0.12, taps=True)
    keys.press("up", 1.0)
    assert keys.step(1.01).tolist() == [0, 0, 1]
    assert keys.step(1.05).tolist() == [0, 0, 0]
    keys.press("up", 1.03)
    assert keys.step(1.10).tolist() == [0, 0, 1] and keys.step(1.14).tolist() == [0, 0, 1]
    assert keys.step(1.20).tolist() == [0, 0, 0]
    keys.press("nonsense", 2.0)
    assert keys.step(2.0).tolist() == [0, 0, 0]
    assert len(keys.take_waits(3.0)) == 2 and keys.take_waits(3.0) == []


def test_the_expert_solves_and_rows_begin_anew(play):
    session = play()
    assert session.acting == "expert"
    for _ in range(60):
        session.step()
    assert session.solved >= 4 and session.episodes == session.solved
    assert set(session.terms) > {"reward", "near"}


def test_noise_is_cut_off_at_the_tasks_own_limit(play):
    session = play(limit=5)
    session.choose("still")
    for _ in range(12):
        session.step()
    assert session.episodes == 4 and session.solved == 0


def test_a_person_takes_over_in_the_middle_and_gives_back(play):
    """The steps of the person are marked; the other row never notices."""
    session, kept = play("so101/LiftCube-v0"), []
    session.on_episode = kept.append
    for _ in range(5):
        session.step()
    session.take_over()
    before = session.obs["tip_pos"][0, 2]
    for _ in range(4):
        drive(session, "up")
    assert session.obs["tip_pos"][0, 2] > before + 0.005
    session.give_back()
    while not kept:
        session.step()
    marks = kept[0].intervention
    assert np.flatnonzero(marks).tolist() == [5, 6, 7, 8] and kept[0].success
    assert len(session.waits_s) == 4


def test_a_person_is_not_cut_off_by_the_tasks_limit(play):
    session = play(limit=5)
    session.choose("still")
    session.take_over()
    for _ in range(12):
        session.step()
    assert session.totals.steps == 12 and session.episodes == 2


def test_whoever_takes_over_does_not_let_go(play):
    """The gripper stays as the policy had it."""
    session = play("so101/LiftCube-v0", rows=1)
    while session.obs["cube_pose"][0, 2] < 0.05:
        session.step()
    session.take_over()
    session.choose("still")
    for _ in range(10):
        session.step()
    assert not session.keys.is_open and session.obs["cube_pose"][0, 2] > 0.04


def test_a_joint_that_is_moved_by_hand_ends_the_seed(play):
    session, kept = play(rows=2), []
    session.on_episode = kept.append
    session.look_at(1)
    name, (_, _, now) = next(iter(session.joints().items()))
    session.set_joint(name, now + 0.2)
    assert session.joints()[name][2] == pytest.approx(now + 0.2)
    assert session.seed == -1
    session.end_episode(keep=True)
    assert not kept and session.seed >= 0
    session.step()
    session.end_episode(keep=True)
    assert kept[0].truncated and len(kept[0]) == 1


@pytest.mark.parametrize(
    ("task", "direction"),
    [("panda/PushButton-v0", "up"), ("PiperMobileRobot-v0", "left"), ("LeRobot-v0", "left")],
)
def test_any_controller_can_be_driven(play, task, direction):
    """A tip that is placed by poses, and joints that are moved by steps or set."""
    session = play(task, rows=1, limit=None)
    session.choose("still")
    still = [session.data.qpos.copy()]
    for _ in range(3):
        session.step()
    still.append(session.data.qpos.copy())
    session.take_over()
    for _ in range(15):
        drive(session, direction)
    moved = np.abs(session.data.qpos - still[1]).max()
    assert moved > 0.02 and moved > 3 * np.abs(still[1] - still[0]).max()


def test_a_gripper_that_is_not_there_is_left_out():
    spec = ArraySpec((3,), np.dtype(np.float32), -1.0, 1.0)
    action = Person("ee", spec, None).act(np.array([1.0, 0, -2.0]), True, None)
    assert action.tolist() == [1, 0, -1] and action.dtype == np.float32
