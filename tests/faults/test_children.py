"""Our child processes run our code only, and what environments start does not outlive them."""

import ast
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from telling import Telling

import maniple
from maniple.core.child import python_code, python_module

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
QUIET = np.zeros((2, 1), np.float32)


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone_within(pids, seconds):
    until = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.005)
    return not any(map(alive, pids))


# Item: code of the current folder.

HOSTILE = (
    "select", "array", "cloudpickle", "socket", "json", "runpy", "ctypes", "pickle", "numpy",
    "mujoco", "gymnasium", "maniple", "sitecustomize", "usercustomize", "faulthandler", "secrets",
)  # fmt: skip


def test_every_python_that_we_start_leaves_the_working_folder_alone():
    """A law: `sys.executable` stands in a command with -P or -I, or is only a name."""
    found = 0
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        lists = [n for n in ast.walk(tree) if isinstance(n, (ast.List, ast.Tuple))]
        for each in lists:
            words = [ast.unparse(word) for word in each.elts]
            if "sys.executable" in words:
                found += 1
                assert {"'-P'", "'-I'"} & set(words), f"{path}:{each.lineno}: {words}"
    assert found >= 3


def test_no_process_is_started_as_python_by_name():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.List) and node.elts and isinstance(node.elts[0], ast.Constant):
                assert not str(node.elts[0].value).startswith("python"), f"{path}:{node.lineno}"


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
import numpy as np, maniple
from telling import Telling
for options in ({{}}, {{"is_fresh": True}}):
    envs = maniple.make_vec(Telling, 2, engine="process", workers=2, **options)
    envs.reset(seed=0)
    envs.step(np.zeros((2, 1), np.float32))
    envs.close()
from maniple.sim.gl_backend import why_not
why_not("osmesa")
from pathlib import Path
from maniple.envs.rlbench.probe import probe
probe(Path("/nowhere"), False, 20.0)
from maniple.core.child import python_module, start_child
start_child(python_module("maniple.cli.main"), stdout=-1, stderr=-1).communicate()
from maniple.cli.bench.contender import Contender
from maniple.cli.bench.isolated import Isolated
import dataclasses
print("fine")
"""


def test_files_in_the_working_folder_do_not_run(tmp_path):
    """They are named as modules of the standard library, of others and of ours."""
    hostile, script = tmp_path / "hostile", tmp_path / "elsewhere" / "script.py"
    hostile.mkdir(), script.parent.mkdir()
    marker = tmp_path / "marker"
    for name in HOSTILE:
        line = f"open({str(marker)!r}, 'a').write({name!r} + '\\n')\nraise SystemExit(9)\n"
        (hostile / f"{name}.py").write_text(line)
    script.write_text(SCRIPT.format(here=str(HERE)))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=hostile, capture_output=True, text=True, timeout=120
    )
    assert not marker.exists(), marker.read_text()
    assert done.stdout.strip().endswith("fine"), done.stderr


def test_a_module_finds_what_its_parent_finds(tmp_path):
    (tmp_path / "mine.py").write_text("import sys; print(sys.argv[1:], __name__)")
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        "import subprocess\n"
        "from maniple.core.child import python_module, python_code\n"
        "subprocess.run(python_module('mine', 'a', 'b'))\n"
        "subprocess.run(python_code('import mine', 'c'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "['a', 'b'] __main__\n['c'] mine\n", done.stderr
    assert python_module("x")[1] == python_code("x")[1] == "-P"


# Item: threads.


def test_threads_that_make_engines_at_once():
    """Each makes, breaks and closes engines; the threads end, the zygote does not."""
    kept, errors = [], []

    def play(k):
        try:
            for _ in range(2):
                envs = maniple.make_vec(Telling, 4, engine="process", workers=2)
                envs.reset(seed=k)
                os.kill(envs._engine._handles[k % 2].pid, signal.SIGKILL)
                for _ in range(3):
                    envs.step(np.zeros((4, 1), np.float32))
                assert envs.stats()["restarts"] == 1
                if k == 0 and not kept:
                    kept.append(envs)
                else:
                    envs.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=play, args=(k,), daemon=True) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    assert not errors, errors
    time.sleep(0.3)
    _, _, _, trunc, info = kept[0].step(np.zeros((4, 1), np.float32))
    assert not trunc.any() and "worker_restarted" not in info, "it lives on without its thread"
    kept[0].close()


# Item: what environments start.


class Parental(Telling):
    """Starts programs: a plain one, one in its own session, a daemon, a fork."""

    def reset(self, *, seed=None, options=None):
        sleeper = ["sleep", "100"]
        self.pids = [
            subprocess.Popen(sleeper).pid,
            subprocess.Popen(sleeper, start_new_session=True).pid,
        ]
        daemon = subprocess.run(
            ["sh", "-c", "setsid sleep 100 >/dev/null 2>&1 & echo $!"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.pids.append(int(daemon.stdout))
        pid = os.fork()
        if pid == 0:
            time.sleep(100)
            os._exit(0)
        self.pids.append(pid)
        return super().reset(seed=seed)


def started(envs):
    pids = [pid for row in envs.get_attr("pids") for pid in row]
    assert len(pids) >= 4 and all(map(alive, pids))
    return pids


def test_close_ends_what_environments_started():
    with_others = maniple.make_vec(Telling, 2, engine="process", workers=2)
    envs = maniple.make_vec(Parental, 2, engine="process", workers=2)
    envs.reset(seed=0)
    pids = started(envs)
    envs.close()
    assert gone_within(pids, 1.0)
    with_others.reset(seed=0)
    with_others.close()


@pytest.mark.parametrize("victim", ["worker", "zygote"])
def test_a_lost_worker_takes_along_what_it_started(victim):
    envs = maniple.make_vec(Parental, 2, engine="process", workers=2)
    envs.reset(seed=0)
    first, second = (list(pids) for pids in envs.get_attr("pids"))
    engine = envs._engine
    zygote = engine._pool._launcher._zygote._process.pid
    lost = engine._handles[0].pid if victim == "worker" else zygote
    os.kill(lost, signal.SIGKILL)
    time.sleep(0.1)
    *_, trunc, _ = envs.step(QUIET)
    assert trunc.tolist() == [True, victim == "zygote"]
    assert gone_within(first, 2.0)
    assert gone_within(second, 2.0) if victim == "zygote" else all(map(alive, second))
    envs.close()
    assert gone_within(second, 1.0)


@pytest.mark.parametrize("how", ["parent", "group", "stopped zygote"])
def test_a_killed_parent_leaves_nothing_that_environments_started(how):
    code = f"""
import sys, time
sys.path.insert(0, {str(HERE)!r})
import maniple
from test_children import Parental
envs = maniple.make_vec(Parental, 2, engine="process", workers=2)
envs.reset(seed=0)
print(*[p for row in envs.get_attr("pids") for p in row], *[h.pid for h in envs._engine._handles],
      envs._engine._pool._launcher._zygote._process.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 11 and all(map(alive, pids))
    if how == "stopped zygote":
        os.kill(pids[-1], signal.SIGSTOP)
    (os.killpg if how == "group" else os.kill)(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone_within(pids, 2.0), [psutil.Process(p) for p in pids if alive(p)]


@pytest.mark.parametrize(
    "ending", ["sys.exit(0)", "envs.close(); sys.exit(0)", "del envs", "use()"]
)
def test_a_fork_of_the_users_leaves_the_workers_alone(ending):
    """os.fork in the user's own program; the child runs its exit handlers."""
    code = f"""
import gc, os, sys
sys.path.insert(0, {str(HERE)!r})
import numpy as np, maniple
from maniple.core.errors import ClosedError
from telling import Telling
quiet = np.zeros((2, 1), np.float32)
envs = maniple.make_vec(Telling, 2, engine="process", workers=2)
envs.reset(seed=0)
def use():
    try:
        envs.step(quiet)
        os._exit(3)
    except ClosedError:
        pass
    mine = maniple.make_vec(Telling, 2, engine="process", workers=2)
    mine.reset(seed=0)
    assert (mine.step(quiet)[0] == 1).all()
    mine.close()
if os.fork() == 0:
    {ending}
    gc.collect()
    sys.exit(0)
assert os.wait()[1] == 0
for k in range(3):
    obs, _, _, trunc, info = envs.step(quiet)
    assert not trunc.any() and (obs == k + 1).all(), info
envs.close()
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "fine", done.stderr


def test_a_stopped_zygote_is_renewed(monkeypatch):
    """Noticed after FORK_SECONDS, in words for people."""
    monkeypatch.setattr("maniple.engine.zygote.FORK_SECONDS", 2.0)
    envs = maniple.make_vec(Telling, 2, engine="process", workers=2)
    envs.reset(seed=0)
    os.kill(envs._engine._pool._launcher._zygote._process.pid, signal.SIGSTOP)
    os.kill(envs._engine._handles[0].pid, signal.SIGKILL)
    *_, trunc, info = envs.step(QUIET)
    assert trunc[0] and info["worker_restarted"][0]
    for _ in range(3):
        obs, *_, info = envs.step(QUIET)
    assert obs[0] > 0
    envs.close()


# Item: large recipes.


@pytest.mark.parametrize("megabytes", [64, pytest.param(200, marks=pytest.mark.slow)])
def test_a_large_recipe(megabytes):
    weight = np.zeros(megabytes << 20, np.uint8)

    def make():
        env = Telling()
        env.weight = len(weight)
        return env

    start = time.monotonic()
    envs = maniple.make_vec(make, 2, engine="process", workers=2)
    took = time.monotonic() - start
    assert envs.get_attr("weight") == (len(weight),) * 2
    os.kill(envs._engine._handles[0].pid, signal.SIGKILL)
    envs.reset(seed=0)
    envs.close()
    assert took < 10


class Polite(Telling):
    """Starts a program that removes its file when it is asked to end, and one that does not end."""

    def reset(self, *, seed=None, options=None):
        self.file = str(Path(tempfile.gettempdir()) / f"maniple-polite-{os.getpid()}")
        words = f"trap 'rm {self.file}; exit' TERM; touch {self.file}; while :; do sleep 0.01; done"
        self.pids = [
            subprocess.Popen(["sh", "-c", words]).pid,
            subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"]).pid,
        ]
        return super().reset(seed=seed)


def test_programs_are_asked_before_they_are_killed():
    envs = maniple.make_vec(Polite, 1, engine="process", workers=1)
    envs.reset(seed=0)
    (file,), (pids,) = envs.get_attr("file"), envs.get_attr("pids")
    until = time.monotonic() + 5
    while not Path(file).exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)
    envs.close()
    assert gone_within(pids, 2.0)
    assert not Path(file).exists()
