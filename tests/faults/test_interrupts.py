"""After Ctrl-C at any moment the next call goes on, and nothing is shifted by a step."""

import os
import signal
import time

import numpy as np
import pytest
from telling import Telling, Unreadable, check

import maniple
from maniple.core.errors import BadConfig

ROWS = 4
QUIET = np.zeros((ROWS, 1), np.float32)


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt, which pytest would take for itself."""


@pytest.fixture
def alarm():
    """Raise Interrupt after some seconds, wherever the main thread is then."""

    def ring(*_):
        raise Interrupt

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def make(env=Telling, **options):
    return maniple.make_vec(env, ROWS, engine="process", workers=2, max_restarts=10**6, **options)


def interrupt(alarm, after_s, act):
    """Call something that is interrupted after a while, or has ended by then."""
    try:
        alarm(after_s)
        act()
        alarm(0)
    except Interrupt:
        return True
    finally:
        alarm(0)
    return False


@pytest.mark.parametrize("ballast", [0, 300_000])
def test_interrupts_at_many_moments(alarm, ballast):
    """Steps, calls, resets: the ones after an interrupt tell what is true."""
    envs = make(lambda: Telling(ballast), step_timeout_s=20)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    begin = time.perf_counter()
    envs.step(QUIET)
    usual = max(2e-4, time.perf_counter() - begin)
    acts = [
        lambda: envs.step(QUIET),
        lambda: envs.get_attr("count"),
        lambda: envs.call("now", np.zeros(ballast)),
        lambda: envs.reset(options={"told": 3}),
        lambda: (envs.send(QUIET), envs.recv(ROWS)),
    ]
    hits, until, slowest = 0, time.monotonic() + 4, 0.0
    while time.monotonic() < until:
        began = time.monotonic()
        act = acts[rng.integers(len(acts))]
        hits += interrupt(alarm, rng.uniform(1e-6, 2 * usual), act)
        while any(handle.is_sent for handle in envs._engine._handles):
            rows, result = envs.recv(1)
            check(result, len(rows))
        slowest = max(slowest, time.monotonic() - began)
        counts = envs.get_attr("count")
        for k in range(2):
            result = envs.step(QUIET)
            check(result, ROWS)
            for row in range(ROWS):
                if not result[3][row] and result[0][row, 0] > 0:
                    assert result[0][row, 0] in (counts[row] + k + 1, k), "one step at a time"
    assert hits > 10 and slowest < 10, "nobody waits for what will not come"
    _, info = envs.reset(options={"told": 8})
    assert info["told"].tolist() == [8] * ROWS
    envs.close()


def test_a_worker_is_not_replaced_for_an_interrupt_while_it_works(alarm):
    """Only one that was interrupted in the middle of a message is."""
    envs = make()
    envs.reset(seed=0)
    restarts = [0]
    # Where others use the machine, more interrupts fall into messages: the best of three counts.
    for _ in range(3):
        for _ in range(30):
            interrupt(alarm, 3e-4, lambda: [envs.step(QUIET) for _ in range(20)])
            check(envs.step(QUIET), ROWS)
        restarts.append(envs.stats()["restarts"])
    assert np.diff(restarts).min() <= 3
    envs.close()


def test_a_real_sigint_in_the_middle_of_a_call():
    envs = make()
    envs.reset(seed=0)
    before = signal.signal(signal.SIGINT, lambda *_: (_ for _ in ()).throw(Interrupt()))
    pid = os.getpid()
    try:
        for _ in range(5):
            killer = os.posix_spawnp("sh", ["sh", "-c", f"sleep 0.05; kill -INT {pid}"], os.environ)
            with pytest.raises(Interrupt):
                while True:
                    envs.step(QUIET)
                    envs.get_attr("count")
            os.waitpid(killer, 0)
            counts = envs.get_attr("count")
            result = envs.step(QUIET)
            check(result, ROWS)
            # A worker that was hit in the middle of a message is replaced, and says so.
            for row in np.flatnonzero(~result[3]):
                assert result[0][row, 0] == counts[row] + 1
            envs.step(QUIET)
    finally:
        signal.signal(signal.SIGINT, before)
    envs.close()


def test_an_order_that_was_written_but_not_noted(monkeypatch):
    """The interrupt comes between the slab and the handle: the order is not forgotten."""
    envs = make()
    envs.reset(seed=0)
    pool = envs._engine._pool
    inner, calls = pool.post, []

    def post(handle, *args, **kwargs):
        before = handle.order, handle.buffer
        inner(handle, *args, **kwargs)
        handle.order, handle.buffer = before
        calls.append(1)
        raise Interrupt

    monkeypatch.setattr(pool, "post", post)
    with pytest.raises(Interrupt):
        envs.step(QUIET)
    monkeypatch.undo()
    assert len(calls) == 1
    start = time.monotonic()
    result = envs.step(QUIET)
    assert time.monotonic() - start < 5
    check(result, ROWS)
    assert result[0].ravel().tolist() == [2, 2, 1, 1], "the first worker got one order more"
    envs.close()


def test_an_info_that_cannot_be_unpickled_is_text():
    """Rows of the same and of other workers keep theirs, then and in the next steps."""
    envs = make(Unreadable)
    envs.reset(seed=0)
    bad = QUIET.copy()
    bad[0] = bad[2] = 7
    for _ in range(3):
        result = envs.step(bad)
        check(result, ROWS)
        info = result[4]
        assert info["_info_error"].tolist() == [True, False, True, False]
        assert "boom" in info["info_error"][0]
        assert info["_count"].tolist() == [False, True, False, True]
        result = envs.step(QUIET)
        check(result, ROWS)
        assert result[4]["_count"].all() and "info_error" not in result[4]
    envs.close()


class Opaque(Telling):
    """Returns what cannot be unpickled."""

    def gift(self):
        from telling import Bomb

        return Bomb() if self.seeds[0] == 0 else 1


def test_an_answer_that_cannot_be_unpickled_shifts_nothing():
    envs = make(Opaque)
    envs.reset(seed=0)
    for _ in range(2):
        with pytest.raises(BadConfig, match="boom"):
            envs.call("gift")
        assert envs.get_attr("count") == (0,) * ROWS
    envs.close()


def test_a_large_question_is_no_deadlock():
    """A worker reads while the parent still writes."""
    envs = make(step_timeout_s=10)
    envs.reset(seed=0)
    assert envs.call("now", np.zeros(4 << 20, np.uint8)) == (0,) * ROWS
    envs.close()
