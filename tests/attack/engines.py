"""Attack engines: faults, kills, interrupts and threads at random moments."""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from faulty import FAULTS, Faulty
from telling import Telling, check

import maniple
from maniple.core.errors import ManipleError

ROWS = 4
QUIET = np.zeros((ROWS, 2), np.float32)
OPTIONS = {"engine": "process", "step_timeout_s": 2.0, "max_restarts": 10**6}


class Interrupt(BaseException):
    """Comes at any moment."""


def faults(draw: random.Random, until: float) -> dict:
    """Break environments, kill workers; every row counts its own steps, or says that it broke."""
    calls = broken = 0
    while time.monotonic() < until:
        spare = draw.choice((0, 1))
        mode = draw.choice(("NextStep", "SameStep"))
        envs = maniple.make_vec(
            Faulty,
            ROWS,
            workers=draw.choice((1, 2, 4)),
            spares=spare,
            autoreset_mode=mode,
            on_reset=draw.choice(("block", "mask")) if mode == "NextStep" else "block",
            **OPTIONS,
        )
        envs.reset(seed=draw.randrange(1000))
        expected: list[float | None] = [0.0] * ROWS
        for _ in range(40):
            calls += 1
            act = draw.random()
            if act < 0.06:
                pid = draw.choice(envs._engine._handles).pid
                os.kill(pid, draw.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV)))
                broken += 1
            if act < 0.75:
                actions = QUIET.copy()
                if draw.random() < 0.35:
                    fault = draw.choice([k for k in FAULTS if k not in (7, 8)])
                    actions[draw.randrange(ROWS), 0] = fault
                    broken += 1
                obs, reward, terminated, truncated, info = envs.step(actions)
                told = [key for key in info if key in ("env_error", "worker_restarted")]
                lost = np.zeros(ROWS, bool)
                for key in told:
                    lost |= info[f"_{key}"]
                paused = info.get("_resetting", np.zeros(ROWS, bool))
                for row in range(ROWS):
                    now, before = float(obs["count"][row, 0]), expected[row]
                    if paused[row]:
                        assert before is None or now == before, (row, now, before)
                        assert not truncated[row] and reward[row] == 0
                    elif truncated[row]:
                        assert lost[row] or mode == "SameStep", (row, info)
                        assert reward[row] == 0
                        expected[row] = 0.0 if mode == "SameStep" else None
                    elif before is None:
                        assert now == 0, (row, now)
                        expected[row] = 0.0
                    else:
                        assert now == before + 1, (row, now, before, info)
                        expected[row] = now
                    assert not terminated[row]
            elif act < 0.9:
                try:
                    counts = envs.get_attr("steps")
                    for row in range(ROWS):
                        wanted = expected[row]
                        assert wanted is None or counts[row] == wanted, (row, counts, expected)
                except ManipleError:
                    # A worker that was killed just before; the next step tells its rows.
                    expected = _after_loss(envs, expected)
            else:
                mask = np.array([draw.random() < 0.5 for _ in range(ROWS)])
                if mask.any():
                    obs, info = envs.reset(options={"reset_mask": mask})
                    lost = info.get("_worker_restarted", np.zeros(ROWS, bool))
                    for row in range(ROWS):
                        if mask[row]:
                            expected[row] = 0.0
                            assert obs["count"][row, 0] == 0
                        elif lost[row]:
                            expected[row] = None
        envs.close()
    return {"tries": calls, "faults": broken}


def _after_loss(envs, expected):
    """Read where every row is from a step that reports a loss."""
    obs, _, _, truncated, info = envs.step(QUIET)
    paused = info.get("_resetting", np.zeros(ROWS, bool))
    return [
        expected[row] if paused[row]
        else None if truncated[row] and envs.metadata["autoreset_mode"].value == "NextStep"
        else float(obs["count"][row, 0])
        for row in range(ROWS)
    ]  # fmt: skip


def interrupts(draw: random.Random, until: float) -> dict:
    """Interrupt calls at random moments; infos must stay beside their observations."""

    def ring(*_):
        raise Interrupt

    signal.signal(signal.SIGALRM, ring)
    tries = hits = 0
    while time.monotonic() < until:
        ballast = draw.choice((0, 1000, 200_000))
        on_reset = draw.choice(("block", "mask"))
        envs = maniple.make_vec(
            lambda b=ballast: Telling(b), ROWS, workers=2, on_reset=on_reset, **OPTIONS
        )
        envs.reset(seed=0)
        quiet = np.zeros((ROWS, 1), np.float32)
        acts = [
            lambda e=envs, q=quiet: e.step(q),
            lambda e=envs: e.get_attr("count"),
            lambda e=envs, b=ballast: e.call("now", np.zeros(b)),
            lambda e=envs: e.reset(options={"told": 3}),
            lambda e=envs, q=quiet: (e.send(q), e.recv(ROWS)),
        ]
        for _ in range(60):
            tries += 1
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 4e-3))
                draw.choice(acts)()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                hits += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            while any(handle.is_sent for handle in envs._engine._handles):
                rows, result = envs.recv(1)
                check(result, len(rows))
            check(envs.step(quiet), ROWS)
        envs.close()
    return {"tries": tries, "faults": hits}


def threads(draw: random.Random, until: float) -> dict:
    """Make, use and close engines in several threads at once."""
    tries, wrong = [0], []

    def use(seed: int) -> None:
        own = random.Random(seed)
        try:
            while time.monotonic() < until:
                envs = maniple.make_vec(Telling, 2, engine="process", workers=own.choice((1, 2)))
                envs.reset(seed=0)
                for _ in range(own.randrange(1, 20)):
                    check(envs.step(np.zeros((2, 1), np.float32)), 2)
                if own.random() < 0.3:
                    os.kill(envs._engine._handles[0].pid, signal.SIGKILL)
                    envs.step(np.zeros((2, 1), np.float32))
                envs.close()
                tries[0] += 1
        except BaseException as error:
            wrong.append(repr(error))

    pool = [threading.Thread(target=use, args=(draw.randrange(2**30),)) for _ in range(4)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join(120 + max(0.0, until - time.monotonic()))
    assert not any(thread.is_alive() for thread in pool), "a thread hangs"
    assert not wrong, wrong
    return {"tries": tries[0], "faults": 0}
