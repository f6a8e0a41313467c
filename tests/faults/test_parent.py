"""Whatever happens to the parent, nothing of it stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent

SCRIPT = """
import os, sys, time
sys.path.insert(0, {here!r})
import numpy as np
import maniple
from faulty import Faulty

envs = maniple.make_vec(Faulty, 4, engine="process", workers=2, step_timeout_s=30)
envs.reset(seed=0)
quiet = np.zeros((4, 2), np.float32)
envs.step(quiet)
print("ready", *[handle.pid for handle in envs._engine._handles],
      envs._engine._pool._launcher._zygote._process.pid, flush=True)
{rest}
"""

IDLE = "time.sleep(60)"
BUSY = "while True: envs.step(quiet)"
HUNG = "quiet[1, 0] = 7; envs.step(quiet)"
HUNG_WITH_GIL = "quiet[1, 0] = 8; envs.step(quiet)"


def start(rest, **options):
    """Run a parent in a process group of its own; return it and the ids of its processes."""
    code = SCRIPT.format(here=str(HERE), rest=rest)
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    words = parent.stdout.readline().split()
    assert words[:1] == ["ready"], parent.stderr.read()
    time.sleep(0.15)
    return parent, [int(word) for word in words[1:]]


def alive(pids):
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            pass
    return found


def gone_within(pids, seconds):
    until = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.005)
    return not alive(pids)


def shared_memory():
    return sum(f.stat().st_size for f in Path("/dev/shm").iterdir() if f.is_file())


@pytest.mark.parametrize("state", [IDLE, BUSY, HUNG, HUNG_WITH_GIL])
@pytest.mark.parametrize("whole_group", [False, True])
def test_sigkill_leaves_nothing(state, whole_group):
    before = shared_memory()
    parent, pids = start(state)
    assert len(alive(pids)) == 3
    if whole_group:
        os.killpg(parent.pid, signal.SIGKILL)
    else:
        parent.kill()
    assert gone_within(pids, 1.0)
    parent.communicate()
    assert shared_memory() <= before


@pytest.mark.parametrize("state", [IDLE, BUSY, HUNG])
def test_ctrl_c_ends_everything_with_one_traceback(state):
    parent, pids = start(state)
    os.killpg(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=5)
    assert gone_within(pids, 1.0)
    assert errors.count("Traceback") == 1 and "KeyboardInterrupt" in errors


def test_ctrl_c_can_be_survived():
    rest = """
import signal, threading
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
quiet[1, 0] = 20
try:
    while True: envs.step(quiet)
except KeyboardInterrupt:
    pass
before = envs.step(quiet)[0]["count"][0, 0]
for _ in range(5): after = envs.step(quiet)[0]["count"][0, 0]
assert after == before + 5, (before, after)
envs.close()
"""
    parent, pids = start(rest)
    _, errors = parent.communicate(timeout=10)
    assert parent.returncode == 0, errors
    assert gone_within(pids, 1.0)


def test_sigterm_ends_everything():
    parent, pids = start(BUSY)
    parent.terminate()
    parent.communicate(timeout=5)
    assert gone_within(pids, 1.0)


@pytest.mark.parametrize("ending", ["raise ValueError('mine')", "pass", "sys.exit(5)"])
def test_leaving_without_close(ending):
    parent, pids = start(ending)
    parent.communicate(timeout=5)
    assert gone_within(pids, 1.0)
    assert parent.returncode == {"r": 1, "p": 0, "s": 5}[ending[0]]


def test_made_in_a_thread_that_ends():
    """The parent-death signal is tied to the thread that starts a child: ours lasts."""
    code = f"""
import sys, threading
sys.path.insert(0, {str(HERE)!r})
import numpy as np, maniple, time
from faulty import Faulty
made = []
def make():
    made.append(maniple.make_vec(Faulty, 2, engine="process", workers=2))
thread = threading.Thread(target=make); thread.start(); thread.join()
time.sleep(0.3)
envs = made[0]
envs.reset(seed=0)
info = envs.step(np.zeros((2, 2), np.float32))[4]
assert "worker_restarted" not in info, info
envs.close()
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "fine", done.stderr


def test_a_tiny_dev_shm_does_not_matter():
    """Docker's default is 64 MB, some clusters give 1: memfd does not care."""
    code = SCRIPT.format(here=str(HERE), rest="envs.close()").replace("Faulty, 4", "Wide, 4")
    code = code.replace("import Faulty", "import Wide").replace("(4, 2)", "(4, 1)")
    mount = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
    words = ["unshare", "-m", "sh", "-c", mount, "sh", sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert done.stdout.startswith("ready"), done.stderr


def test_opening_and_closing_leaks_nothing():
    """Descriptors stay, memory grows by less than 2 MB; 'slow' has the hundred."""
    assert cycles(8) == "fine"


@pytest.mark.slow
def test_opening_and_closing_a_hundred_times():
    assert cycles(100) == "fine"


def cycles(count):
    code = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import os, psutil, numpy as np, maniple
from faulty import Faulty
def cycle():
    envs = maniple.make_vec(Faulty, 4, engine="process", workers=2)
    envs.reset(seed=0); envs.step(np.zeros((4, 2), np.float32)); envs.close()
for _ in range(3): cycle()
me = psutil.Process()
before = me.num_fds(), me.memory_info().rss
for _ in range({count}): cycle()
after = me.num_fds(), me.memory_info().rss
assert after[0] <= before[0], (before, after)
assert after[1] - before[1] < 2 << 20, (before, after)
assert not me.children()
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    return done.stdout.strip() or done.stderr


def test_workers_are_light_and_quick():
    """64 MuJoCo workers share what the zygote imported; none has torch in it."""
    code = """
import time, psutil, maniple
start = time.perf_counter()
envs = maniple.make_vec("so101/Reach-v0", 64, engine="process", workers=64)
took = time.perf_counter() - start
envs.reset(seed=0)
for _ in range(3): envs.step(envs.action_space.sample())
uss = [psutil.Process(h.pid).memory_full_info().uss / 2**20 for h in envs._engine._handles]
maps = open(f"/proc/{envs._engine._handles[0].pid}/maps").read()
assert "torch" not in maps
start = time.perf_counter()
envs.close()
print(f"ready {took:.2f} s, USS median {sorted(uss)[32]:.1f} max {max(uss):.1f} MB,"
      f" close {time.perf_counter() - start:.2f} s")
assert sorted(uss)[32] <= 10, uss
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("ready"), done.stderr
    print(done.stdout)


def test_an_idle_engine_burns_nothing():
    """Below 2 % of a core for parent and workers together."""
    parent, pids = start(IDLE)
    processes = [psutil.Process(pid) for pid in [parent.pid, *pids]]
    used = [sum(p.cpu_times()[:2]) for p in processes]
    time.sleep(2.0)
    now = [sum(p.cpu_times()[:2]) for p in processes]
    parent.kill()
    parent.communicate()
    assert sum(now) - sum(used) < 0.02 * 2.0


@pytest.mark.slow
def test_fifty_parents():
    """Fifty of fifty leave no process and no shared memory within a second of their SIGKILL."""
    before = shared_memory()
    for k in range(50):
        parent, pids = start([IDLE, BUSY, HUNG][k % 3])
        parent.kill()
        assert gone_within(pids, 1.0), f"parent {k}"
        parent.communicate()
    assert shared_memory() <= before
