"""MuJoCo asks for the time only where somebody wants to know it."""

from __future__ import annotations

import mujoco
import pytest

from maniple.sim.mujoco_timers import stop_timers

STEP = int(mujoco.mjtTimer.mjTIMER_STEP)


def steps_and_time(count: int = 50) -> tuple[bytes, float]:
    """The state after some steps, and how long MuJoCo says that they took."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 1'><freejoint/>"
        "<geom size='.1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    for _ in range(count):
        mujoco.mj_step(model, data)
    return data.qpos.tobytes() + data.qvel.tobytes(), float(data.timer[STEP].duration)


@pytest.fixture(autouse=True)
def timers_as_they_were():
    yield
    mujoco.set_mjcb_time(None)
    stop_timers()


def test_timers_stop_and_can_be_brought_back() -> None:
    """The states have the same bits with and without them."""
    mujoco.set_mjcb_time(None)
    state, spent = steps_and_time()
    assert spent > 0
    stop_timers()
    assert steps_and_time() == (state, 0.0)
    mujoco.set_mjcb_time(None)
    assert steps_and_time()[1] > 0


def test_a_clock_that_somebody_has_set_stays() -> None:
    """Who measures MuJoCo with a clock of their own goes on doing so."""
    calls = []

    def clock() -> float:
        calls.append(1)
        return float(len(calls))

    mujoco.set_mjcb_time(clock)
    stop_timers()
    steps_and_time(2)
    assert calls
