"""A child ends with the process that started it, however many threads that has."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from maniple.core.child import start_child

SOURCE = Path(__file__).parents[2] / "src"

PARENT = """
import signal, sys, threading, time
from maniple.core.child import start_child

def busy():
    while True:
        sum(range(1000))

for _ in range(4):
    threading.Thread(target=busy, daemon=True).start()

children = []
def start():
    words = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    children.append(start_child(words, signal.{signum}, stdout=-1, text=True))

start()
thread = threading.Thread(target=start)
thread.start()
thread.join()
for child in children:
    assert child.stdout.readline() == "up\\n"
time.sleep(0.3)
assert all(child.poll() is None for child in children), "a child ended with its thread"
print(*[child.pid for child in children], flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("signum", ["SIGKILL", "SIGTERM"])
def test_a_killed_parent_with_threads_takes_its_children_along(signum):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(signum=signum)], stdout=subprocess.PIPE, text=True
    )
    try:
        children = [psutil.Process(int(word)) for word in parent.stdout.readline().split()]
        assert len(children) == 2
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert [c for c in alive if c.status() != psutil.STATUS_ZOMBIE] == []


def test_the_program_is_the_child_itself():
    child = start_child([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1)
    assert int(child.communicate()[0]) == child.pid
    assert child.returncode == 0


def test_the_program_gets_the_usual_signals():
    child = start_child(["sh", "-c", "kill -PIPE $$; sleep 5"])
    assert child.wait(5) == -signal.SIGPIPE


def test_a_missing_program_is_an_error_here():
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        start_child(["no-such-program"])


def test_a_parent_that_is_gone_already_is_noticed():
    # The stub is given the id of a process that is not its parent.
    from maniple.core.child import _STUB

    started = time.monotonic()
    words = [sys.executable, "-I", "-S", "-c", _STUB, "1", "9", "sleep", "60"]
    assert subprocess.run(words, check=False).returncode == 0
    assert time.monotonic() - started < 30


def test_no_preexec_fn_is_left():
    found = [p for p in SOURCE.rglob("*.py") if "preexec_fn=" in p.read_text()]
    assert found == []
