"""Virtual displays: owned, distinct, and gone with their owner."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from maniple.core.errors import BadConfig, NoDisplay
from maniple.sim import gl_backend, gl_context, xvfb
from maniple.sim.xvfb import SWITCHES, Xvfb, sweep_stale_sockets

NEEDS_XVFB = pytest.mark.skipif(
    shutil.which("Xvfb") is None, reason=f"Xvfb is not installed: {xvfb.INSTALL}"
)


def answers(path):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def is_running(pid):
    """Whether a process does anything; one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(is_true, seconds):
    until = time.monotonic() + seconds
    while not is_true() and time.monotonic() < until:
        time.sleep(0.005)
    return is_true()


@pytest.fixture
def clean(monkeypatch):
    """An environment that asks for nothing."""
    for name in (*SWITCHES, "DISPLAY", "MUJOCO_EGL_DEVICE_ID", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    forget = gl_backend.why_not.cache_clear
    forget()
    yield monkeypatch
    forget()


@pytest.fixture
def owner():
    """Start Python code that prints a display's process id and socket; yield all three."""
    started = []

    def start(code):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        started.append(process)
        pid, path = process.stdout.readline().split()
        return process, int(pid), Path(path)

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


OWN_ONE = (
    "import time\n"
    "from maniple.sim.xvfb import Xvfb\n"
    "x = Xvfb()\n"
    "print(x.pid, x.socket, flush=True)\n"
)


@NEEDS_XVFB
def test_eight_at_once_are_distinct_and_leave_nothing():
    with ThreadPoolExecutor(8) as pool:
        screens = list(pool.map(lambda _: Xvfb(), range(8)))
    try:
        assert len({screen.display for screen in screens}) == 8
        # The threads that asked for them are gone by now; the displays are not.
        assert all(screen.is_alive and answers(screen.socket) for screen in screens)
    finally:
        for screen in screens:
            screen.close()
            screen.close()
    for screen in screens:
        assert not screen.is_alive and not is_running(screen.pid) and not screen.socket.exists()
    assert not [t for t in threading.enumerate() if t.name == "maniple-xvfb-keeper"]


@NEEDS_XVFB
def test_no_descriptor_is_left():
    Xvfb().close()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        Xvfb().close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@NEEDS_XVFB
def test_one_that_ignores_sigterm_is_killed_and_its_socket_removed(monkeypatch):
    monkeypatch.setattr(xvfb, "GRACE_SECONDS", 0.1)
    screen = Xvfb()
    os.kill(screen.pid, signal.SIGSTOP)
    screen.close()
    assert not is_running(screen.pid) and not screen.socket.exists()


@NEEDS_XVFB
def test_close_leaves_the_socket_of_a_server_that_took_the_number_over():
    with Xvfb() as first:
        os.kill(first.pid, signal.SIGKILL)
        assert wait_until(lambda: not first.is_alive, 1)
        with Xvfb() as second:
            first.close()
            assert answers(second.socket)


def test_only_the_very_socket_that_was_seen_is_removed(tmp_path):
    path = tmp_path / "X3"
    for is_same in (True, False):
        with socket.socket(socket.AF_UNIX) as before, socket.socket(socket.AF_UNIX) as after:
            before.bind(str(path))
            seen = xvfb._identity(path)
            if not is_same:
                path.unlink()
                after.bind(str(path))
            assert xvfb._remove_exactly(path, seen) == is_same
        assert path.exists() == (not is_same)
    assert [file.name for file in tmp_path.iterdir()] == ["X3"]


@NEEDS_XVFB
@pytest.mark.parametrize("how", ["owner", "group"])
def test_a_killed_owner_takes_its_display_along(owner, how):
    process, pid, path = owner("import os; os.setpgid(0, 0)\n" + OWN_ONE + "time.sleep(60)")
    assert is_running(pid) and answers(path)
    (os.kill if how == "owner" else os.killpg)(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not is_running(pid) and not path.exists(), 1)


@NEEDS_XVFB
def test_an_owner_that_exits_takes_its_display_along(owner):
    process, pid, path = owner(OWN_ONE)
    assert process.wait(10) == 0
    assert wait_until(lambda: not is_running(pid) and not path.exists(), 1)


@NEEDS_XVFB
def test_an_owner_killed_during_the_start_leaves_none():
    """Whatever the moment: before the wrapper, before the kernel is asked, before it is ready."""
    mine = "1021x767x24"
    code = f"from maniple.sim.xvfb import Xvfb; print(flush=True); Xvfb('{mine}')"
    for wait_s in (0.0, 0.01, 0.02, 0.03, 0.05):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(wait_s)
        process.kill()
        process.communicate()
    assert wait_until(lambda: not _servers_with(mine), 2)


def _servers_with(word):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(path)
    return found


@NEEDS_XVFB
def test_a_forked_child_does_not_close_its_parents_display():
    with Xvfb() as screen:
        pid = os.fork()
        if pid == 0:
            screen.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert screen.is_alive and answers(screen.socket)


@NEEDS_XVFB
def test_a_start_has_a_deadline_and_tells_why():
    with pytest.raises(NoDisplay, match=r"not ready in 0\.001 s"):
        Xvfb(start_timeout_s=0.001)
    with pytest.raises(NoDisplay, match=r"Xvfb ended: .*nonsense.*Try by hand"):
        Xvfb(screen="nonsense")


def test_a_missing_xvfb_is_told(monkeypatch, clean):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoDisplay, match="apt-get install xvfb xauth"):
        Xvfb()
    assert "Xvfb is not installed" in gl_backend.why_not("glfw")


def test_only_stale_sockets_are_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(xvfb, "_YOUNG_SECONDS", 0.0)
    stale, live, foreign, file = (tmp_path / name for name in ("X7", "X8", "other", "X9"))
    servers = []
    for path in (stale, live, foreign):
        servers.append(socket.socket(socket.AF_UNIX))
        servers[-1].bind(str(path))
        servers[-1].listen()
    file.write_text("no socket")
    servers[0].close()
    servers[2].close()
    assert sweep_stale_sockets(tmp_path) == [stale]
    assert sorted(tmp_path.iterdir()) == [live, file, foreign]
    servers[1].close()
    assert sweep_stale_sockets(tmp_path / "missing") == []


@NEEDS_XVFB
def test_a_killed_server_is_swept_and_a_living_one_is_not():
    with Xvfb() as dead, Xvfb() as living:
        os.kill(dead.pid, signal.SIGKILL)
        assert wait_until(lambda: not dead.is_alive, 1)
        assert dead.socket not in sweep_stale_sockets(), "it might be between bind and listen"
        for screen in (dead, living):
            os.utime(screen.socket, (1, 1))
        removed = sweep_stale_sockets()
        assert dead.socket in removed and living.socket not in removed
        assert not dead.socket.exists() and answers(living.socket)


@pytest.mark.parametrize("name", SWITCHES)
def test_the_switch_forbids_or_demands_an_own_display(name, clean):
    assert xvfb.wants_own_display()
    clean.setenv("DISPLAY", ":99")
    assert not xvfb.wants_own_display()
    clean.setenv(name, "1")
    assert xvfb.wants_own_display()
    clean.setenv(name, "0")
    assert not xvfb.wants_own_display()
    clean.delenv("DISPLAY")
    assert not xvfb.wants_own_display()
    with pytest.raises(NoDisplay, match=f"unset {name}"), gl_context._display():
        pass
    assert "no DISPLAY" in gl_backend.why_not("glfw")
    clean.setenv(name, "no")
    with pytest.raises(BadConfig, match="0, 1 or unset"):
        xvfb.wants_own_display()


@NEEDS_XVFB
def test_glfw_draws_without_a_display_and_leaves_nothing(clean):
    """In a process of its own: a context cannot be had twice."""
    if gl_backend.why_not("glfw") is not None:
        pytest.skip(f"GLFW does not draw here: {gl_backend.why_not('glfw')}")
    code = (
        "import os, maniple\n"
        "env = maniple.make('so101/Reach-v0', render_mode='rgb_array', width=64, height=48,\n"
        "                   renderer='mujoco')\n"
        "env.reset(seed=0)\n"
        "from maniple.sim import gl_context\n"
        "assert env.render().std() > 5 and 'DISPLAY' not in os.environ\n"
        "print(gl_context._screen.pid, gl_context._screen.socket)\n"
    )
    env = {**os.environ, "MANIPLE_GL": "glfw"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    pid, path = done.stdout.split()
    assert not is_running(pid) and not Path(path).exists()


def test_every_reason_is_known(clean):
    told = gl_backend.reasons()
    assert tuple(told) == gl_backend.GL_BACKENDS
    assert all(reason is None or reason for reason in told.values())


def test_the_first_that_works_is_chosen_and_remembered(clean, tmp_path):
    clean.setenv("XDG_CACHE_HOME", str(tmp_path))
    clean.delenv("MANIPLE_GL", raising=False)
    tried = []

    def why_not(name):
        tried.append(name)
        return None if name == works else "it does not"

    clean.setattr(gl_backend, "why_not", why_not)
    for works, order in (("glfw", ["egl", "osmesa", "glfw"]), (None, ["egl", "osmesa", "glfw"])):
        for _ in range(2):  # The second process reads it.
            gl_backend.backend.cache_clear()
            assert gl_backend.backend() == (works or gl_backend.RAYS)
        assert tried == order
        tried.clear()
        (tmp_path / "maniple/gl.json").unlink()
    gl_backend.backend.cache_clear()


def test_having_no_gl_is_soon_forgotten(clean, tmp_path):
    clean.setenv("XDG_CACHE_HOME", str(tmp_path))
    gl_backend._remember(gl_backend.RAYS)
    assert gl_backend._remembered() == gl_backend.RAYS
    clean.setattr(gl_backend, "_RAYS_SECONDS", 0)
    assert gl_backend._remembered() is None


@pytest.mark.parametrize(
    ("local_rank", "cuda", "egl", "device"),
    [(0, 0, 1, None), (1, 0, 0, None), (3, 4, 5, 3), (5, 4, 5, 1), (1, 1, 2, 0), (2, 0, 2, 0)],
)
def test_ranks_are_spread_over_devices(local_rank, cuda, egl, device):
    assert gl_context.device_of(local_rank, cuda, egl) == device


@pytest.mark.parametrize(
    ("local_world", "given", "expected"), [("2", None, "1"), ("1", None, None), ("2", "7", "7")]
)
def test_the_device_is_set_only_under_torchrun(clean, local_world, given, expected):
    ranks = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": local_world}
    for name, value in ranks.items():
        clean.setenv(name, value)
    if given:
        clean.setenv("MUJOCO_EGL_DEVICE_ID", given)
    clean.setattr(gl_context, "_cuda_devices", lambda: 2)
    clean.setattr(gl_context, "_egl_devices", lambda: 3)
    gl_context._take_device_of_rank()
    assert os.environ.get("MUJOCO_EGL_DEVICE_ID") == expected
    os.environ.pop("MUJOCO_EGL_DEVICE_ID", None)


def test_two_threads_draw(make_vec):
    """A context is current in one thread at a time, and nobody keeps it."""
    if gl_backend.backend() == gl_backend.RAYS:
        pytest.skip("no GL library works here")
    options = {"cameras": ("front",), "image_size": (32, 32), "renderer": "mujoco"}
    envs = [make_vec("so101/Reach-v0", 2, engine="native", **options) for _ in range(2)]
    expected = [e.reset(seed=3)[0]["front_rgb"].copy() for e in envs]

    def draw(vec):
        shots = [vec.reset(seed=3)[0]["front_rgb"].copy() for _ in range(8)]
        return [shot.tobytes() for shot in shots]

    with ThreadPoolExecutor(2) as pool:
        for found, wanted in zip(pool.map(draw, envs), expected, strict=True):
            assert set(found) == {wanted.tobytes()} and wanted.std() > 5
