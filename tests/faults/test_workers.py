"""Every fault of a worker or its environment has a named outcome, and close() always works."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from faulty import Faulty, Wide

import maniple
from maniple.core.errors import ManipleError, WorkerDied

ROWS, WORKERS = 4, 2
QUIET = np.zeros((ROWS, 2), np.float32)


def make(**options):
    options = {"workers": WORKERS, "step_timeout_s": 1.0, "engine": "process"} | options
    return maniple.make_vec(Faulty, ROWS, **options)


def fault(code, row=1):
    actions = QUIET.copy()
    actions[row, 0] = code
    return actions


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def left_over():
    """Children of this process that are still there."""
    return [p for p in psutil.Process().children(recursive=True) if p.status() != "zombie"]


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    until = time.monotonic() + 2
    while left_over() and time.monotonic() < until:
        time.sleep(0.01)
    assert not left_over()


WORKER_FAULTS = {
    "killed": (1, "SIGKILL"),
    "segfault": (2, "SIGSEGV"),
    "aborted": (3, "SIGABRT"),
    "stopped": (4, "gave no answer in 1 s"),
    "exited": (5, "exited with code 9"),
    "hung": (7, "gave no answer in 1 s"),
    "hung with the GIL": (8, "gave no answer in 1 s"),
    "SystemExit": (19, "exited with code 7"),
}


@pytest.mark.parametrize("name", WORKER_FAULTS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_lost_worker_is_replaced_alone(name, workers):
    code, cause = WORKER_FAULTS[name]
    envs = make(workers=workers)
    envs.reset(seed=0)
    envs.step(QUIET)
    start = time.monotonic()
    obs, reward, term, trunc, info = envs.step(fault(code))
    assert time.monotonic() - start < 1.0 + 1.0, "nothing hangs past its deadline"
    lost = np.array([True] * (4 // workers) + [False] * (4 - 4 // workers))
    assert np.array_equal(trunc, lost) and not term.any()
    assert np.array_equal(info["_worker_restarted"], lost)
    text = info["worker_restarted"][1]
    assert cause in text and "seeds [0, 1" in text and "last action" in text
    if name in ("segfault", "aborted", "hung", "hung with the GIL"):
        assert "faulty.py" in text, "the stack names the line"
    assert obs["count"][lost].tolist() == [[1] * 4] * lost.sum(), "the last good observation"
    assert obs["count"][~lost].tolist() == [[2] * 4] * (~lost).sum()
    obs, reward, term, trunc, info = envs.step(QUIET)
    assert not trunc.any() and (reward == 0).all()
    assert obs["count"][lost].max() == 0, "the row begins a new episode"
    assert (obs["count"][~lost] == 3).all(), "the others lost no step"
    obs, *_ = envs.step(QUIET)
    assert (obs["count"][lost] == 1).all() and (obs["count"][~lost] == 4).all()
    assert envs.stats()["restarts"] == 1
    envs.close()
    envs.close()


ENV_FAULTS = {
    "raises": (6, "step is broken"),
    "nan": (9, "'count' is not finite"),
    "inf": (10, "'count' is not finite"),
    "reward nan": (11, "the reward is nan"),
    "reward None": (12, "NoneType"),
    "size": (13, r"shape (5,); its space says (4,)"),
    "broadcastable": (14, r"shape (1,); its space says (4,)"),
    "transposed": (15, r"shape (8, 6); its space says (6, 8)"),
    "float image": (16, "dtype float32; its space says uint8"),
    "overflow": (17, "dtype int64; its space says uint8"),
    "None": (18, "no number"),
}


@pytest.mark.parametrize("name", ENV_FAULTS)
@pytest.mark.parametrize("engine", ["process", "native"])
def test_a_broken_promise_ends_its_row_only(name, engine):
    code, cause = ENV_FAULTS[name]
    envs = make() if engine == "process" else maniple.make_vec(Faulty, ROWS, engine=engine)
    envs.reset(seed=0)
    envs.step(QUIET)
    obs, reward, term, trunc, info = envs.step(fault(code))
    assert trunc.tolist() == [False, True, False, False] and reward[1] == 0 and not term.any()
    assert info["_env_error"].tolist() == [False, True, False, False]
    text = info["env_error"][1]
    assert cause in text and "row 1" in text and "seed 1" in text
    assert obs["count"][:, 0].tolist() == [2, 1, 2, 2]
    obs, *_, info = envs.step(QUIET)
    assert obs["count"][:, 0].tolist() == [3, 0, 3, 3] and "env_error" not in info
    envs.close()


def test_raising_in_reset():
    envs = make()
    envs.reset(seed=0)
    envs.step(QUIET)
    mask = np.array([False, False, True, False])
    _, info = envs.reset(options={"reset_mask": mask, "break": True})
    assert "reset is broken" in info["env_error"][2]
    assert info["_env_error"].tolist() == mask.tolist()
    envs.close()


def test_the_constructor_fails_in_one_of_many():
    made = []

    def maker():
        # Rows 2 and 3 belong to the second worker, which makes its second one wrongly.
        made.append(1)
        return Faulty(broken_maker=len(made) == 2)

    with pytest.raises(WorkerDied, match="no such camera") as caught:
        maniple.make_vec(maker, 3, engine="process", workers=2)
    assert "row 2" in str(caught.value) and "rows 1-2" in str(caught.value)


def test_same_step_mode_gets_its_reset_at_once():
    envs = make(autoreset_mode="SameStep")
    envs.reset(seed=0)
    envs.step(QUIET)
    obs, _, _, trunc, info = envs.step(fault(1))
    assert trunc.tolist() == [True, True, False, False]
    assert obs["count"][:, 0].tolist() == [0, 0, 2, 2]
    assert info["final_obs"][0]["count"][0] == 1
    assert "SIGKILL" in info["final_info"]["worker_restarted"][1]
    envs.close()


def test_disabled_mode_waits_for_the_user():
    envs = make(autoreset_mode="Disabled")
    envs.reset(seed=0)
    *_, trunc, _ = envs.step(fault(1))
    obs, _ = envs.reset(options={"reset_mask": trunc})
    assert obs["count"][:, 0].tolist() == [0, 0, 1, 1]
    envs.step(QUIET)
    envs.close()


def test_masked_rows_pause_while_the_worker_comes_back():
    envs = make(on_restart="mask")
    envs.reset(seed=0)
    envs.step(fault(1))
    for k in range(2000):  # noqa: B007
        obs, _, _, trunc, info = envs.step(QUIET)
        assert not trunc.any()
        if "worker_restarting" not in info:
            break
        assert info["_worker_restarting"].tolist() == [True, True, False, False]
        time.sleep(0.001)
    assert obs["count"][:, 0].tolist() == [0, 0, k + 2, k + 2]
    envs.close()


def test_past_the_budget_it_raises_with_evidence():
    envs = make(max_restarts=2)
    envs.reset(seed=5)
    for _ in range(2):
        envs.step(fault(2))
        envs.step(QUIET)
    with pytest.raises(WorkerDied, match="SIGSEGV") as caught:
        envs.step(fault(2))
    evidence = ("rows 0-1", "seeds [5, 6]", "last action of row 0", "replaced 2 times", "faulty.py")
    assert all(part in str(caught.value) for part in evidence)
    envs.close()
    envs.close()


def test_starts_that_fail_one_after_the_other_are_permanent(tmp_path):
    """However slowly they fail: a window of time would never fill."""
    (tmp_path / "may-start").touch()
    starts = tmp_path / "starts"

    def build():
        with starts.open("a") as file:
            file.write("x")
        if not (tmp_path / "may-start").exists():
            raise RuntimeError("no licence")
        return Faulty()

    options = {"engine": "process", "workers": 1, "restart_window_s": 0.001, "max_restarts": 99}
    envs = maniple.make_vec(build, 1, **options)
    envs.reset(seed=0)
    (tmp_path / "may-start").unlink()
    before = len(starts.read_text())
    envs.step(fault(1, row=0)[:1])
    with pytest.raises(WorkerDied, match="no licence"):
        envs.step(QUIET[:1])
    assert len(starts.read_text()) == before + 3
    envs.close()


def test_a_worker_that_dies_between_steps():
    envs = make()
    envs.reset(seed=0)
    os.kill(envs._engine._handles[1].pid, signal.SIGKILL)
    time.sleep(0.05)
    *_, trunc, _ = envs.step(QUIET)
    assert trunc.tolist() == [False, False, True, True]
    envs.step(QUIET)
    envs.close()


def test_a_worker_that_dies_after_its_answer_while_another_works():
    """Its death is seen while the parent waits for somebody else, and must not be forgotten."""
    envs = make(step_timeout_s=20)
    envs.reset(seed=0)
    slow = fault(20, row=2)
    slow[2, 0] = 21
    pid = envs._engine._handles[0].pid
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.15; kill -9 {pid}"])
    *_, trunc, _ = envs.step(slow)
    killer.wait()
    assert not trunc.any(), "it had answered already"
    start = time.monotonic()
    *_, trunc, info = envs.step(QUIET)
    assert time.monotonic() - start < 2.0
    assert trunc.tolist() == [True, True, False, False]
    assert "SIGKILL" in info["worker_restarted"][0]
    envs.close()


def test_the_zygote_is_killed():
    envs = make()
    envs.reset(seed=0)
    envs._engine._pool._launcher._zygote._process.kill()
    time.sleep(0.1)
    *_, trunc, info = envs.step(QUIET)
    assert trunc.all()
    assert "forked from" in info["worker_restarted"][0]
    obs, *_ = envs.step(QUIET)
    assert (obs["count"] == 0).all()
    envs.close()


def test_attributes_of_a_dead_worker():
    envs = make()
    envs.reset(seed=0)
    os.kill(envs._engine._handles[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        envs.get_attr("steps")
    envs.close()


def test_descriptors_exhausted_at_the_start():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = open_descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 12, hard))
    try:
        with pytest.raises(ManipleError, match="ulimit -n"):
            maniple.make_vec(Faulty, 16, engine="process", workers=16)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert open_descriptors() <= used


def test_no_observation_is_torn():
    """Kills in the middle of writing three megabytes; what is returned is always whole."""
    envs = maniple.make_vec(Wide, 2, engine="process", workers=2, copy_obs=False, max_restarts=99)
    envs.reset(seed=0)
    actions = np.zeros((2, 1), np.float32)
    rng = np.random.default_rng(0)
    for _ in range(12):
        victim = envs._engine._handles[0].pid
        late = f"sleep {rng.uniform(0, 0.02):.4f}; kill -9 {victim}"
        killer = subprocess.Popen(["sh", "-c", late], stderr=subprocess.DEVNULL)
        for _ in range(12):
            obs, *_ = envs.step(actions)
            for row in range(2):
                assert obs[row].min() == obs[row].max()
        killer.wait()
    envs.close()


def test_two_runs_with_restarts_are_equal():
    """In block mode twenty killed workers do not make a run irreproducible."""

    def run():
        envs = maniple.make_vec(
            "so101/Reach-v0", 4, engine="process", workers=2, max_restarts=99, max_episode_steps=9
        )
        told = [envs.reset(seed=3)[0]]
        rng = np.random.default_rng(0)
        for k in range(100):
            if k % 5 == 2:
                os.kill(envs._engine._handles[(k // 5) % 2].pid, signal.SIGKILL)
                time.sleep(0.02)
            obs, reward, term, trunc, _ = envs.step(rng.uniform(-1, 1, (4, 4)))
            told.append({**obs, "reward": reward, "term": term, "trunc": trunc})
        envs.close()
        return told

    first, second = run(), run()
    assert sum(step["trunc"].sum() for step in first[1:]) >= 2 * 20
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in a)


def test_mujoco_warning_in_a_worker(capfd):
    envs = maniple.make_vec("so101/Reach-v0", 4, engine="process", workers=2)
    envs.reset(seed=0)
    states = list(envs.get_attr("sim_state"))
    states[2]["integration"][5] = np.nan
    envs.set_attr("sim_state", states)
    *_, trunc, info = envs.step(np.zeros((4, 4), np.float32))
    assert trunc.tolist() == [False, False, True, False]
    assert "row 2" in info["env_error"][2] and "seed 2" in info["env_error"][2]
    envs.close()
    capfd.readouterr()


def test_no_process_is_left_to_be_had():
    """The zygote says so, and lives on: the workers that there are do not end with it."""
    import resource

    envs = make()
    envs.reset(seed=0)
    zygote = envs._engine._pool._launcher._zygote
    limits = resource.prlimit(zygote._process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(zygote._process.pid, resource.RLIMIT_NOFILE, (11, limits[1]))
    try:
        os.kill(envs._engine._handles[0].pid, signal.SIGKILL)
        time.sleep(0.05)
        with pytest.raises(ManipleError, match="ulimit -n"):
            envs.step(QUIET)
            envs.step(QUIET)
    finally:
        resource.prlimit(zygote._process.pid, resource.RLIMIT_NOFILE, limits)
    obs, _, _, trunc, _ = envs.step(QUIET)
    assert trunc.tolist() == [True, True, False, False] and obs["count"][2, 0] >= 1
    envs.close()
