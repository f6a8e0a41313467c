"""Films of every episode, written while the environments run."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import av
import numpy as np
import pytest

from maniple.core.errors import BadConfig, ClosedError, ManipleError
from maniple.data import record
from maniple.data.record import Recorder


def decode(path):
    with av.open(str(path), format="mp4") as film:
        stream = film.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(stream)]
        assert stream.codec_context.name == "h264"
    return frames


def grey(level, rows=2, size=(32, 48)):
    return np.full((rows, *size, 3), level, np.uint8)


def ends(*flags):
    return np.array(flags, bool)


@pytest.fixture
def slow(monkeypatch):
    """A gate that holds the encoder at its first frame until it is opened."""
    gate = threading.Event()
    add = record.Film.add
    monkeypatch.setattr(record.Film, "add", lambda self, frame: (gate.wait(10), add(self, frame)))
    return gate


def test_one_film_per_env_camera_and_episode(tmp_path):
    lengths = {0: [4, 3, 5], 1: [7, 5]}  # Frames of each episode; the last ones are not ended.
    with Recorder(tmp_path, ("front", "wrist"), fps=25, num_envs=2) as recorder:
        for step in range(12):
            ended = ends(step in (3, 6), step == 6)
            recorder.add({"front_rgb": grey(20 * step), "wrist_rgb": grey(255)}, ended)
    assert recorder.frames == 12 * 2 * 2 and recorder.dropped == 0 and recorder.seconds > 0
    expected = {}
    for row, episodes in lengths.items():
        for camera in ("front", "wrist"):
            for episode, length in enumerate(episodes):
                expected[f"env_{row:03d}_{camera}_episode_{episode:04d}.mp4"] = length
    assert {path.name: len(decode(path)) for path in tmp_path.iterdir()} == expected
    second = decode(tmp_path / "env_000_front_episode_0001.mp4")
    assert [round(frame.mean() / 20) for frame in second] == [4, 5, 6]


def test_frames_are_copied(tmp_path):
    """Views of a slab are written over by the next step."""
    picture = grey(0, rows=1)
    with Recorder(tmp_path, ("front",), 25, num_envs=1) as recorder:
        for level in (50, 150, 250):
            picture[:] = level
            recorder.add({"front_rgb": picture}, ends(False))
        picture[:] = 0
    levels = [frame.mean() for frame in decode(tmp_path / "env_000_front_episode_0000.mp4")]
    assert np.allclose(levels, (50, 150, 250), atol=4)


def test_an_environment_is_filmed(tmp_path, make_vec):
    envs = make_vec(
        "so101/Reach-v0", 3, cameras=("front",), image_size=(48, 64), max_episode_steps=5,
        terminate_on_success=False, copy_obs=False,
    )  # fmt: skip
    obs, _ = envs.reset(seed=0)
    with Recorder(tmp_path, ("front",), 25, num_envs=3) as recorder:
        recorder.add(obs, np.zeros(3, bool))
        for _ in range(12):
            obs, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
            recorder.add(obs, terminated | truncated)
    # A reset and five steps, twice; under NEXT_STEP the next call is the reset again.
    found = {path.name[4:7] + path.name[-8:-4]: len(decode(path)) for path in tmp_path.iterdir()}
    assert found == {f"{row:03d}{k:04d}": n for row in range(3) for k, n in enumerate((6, 6, 1))}


@pytest.mark.alone
def test_the_queue_is_bounded(tmp_path, slow):
    recorder = Recorder(tmp_path, ("front",), 25, num_envs=4, queue_frames=6)
    done = threading.Event()
    picture = grey(9, rows=4, size=(256, 256))

    def fill():
        for _ in range(20):
            recorder.add({"front_rgb": picture}, ends(*[False] * 4))
        done.set()

    tracemalloc.start()
    filler = threading.Thread(target=fill)
    filler.start()
    assert not done.wait(0.3), "add() did not wait for the encoder"
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Six queued, one in the encoder's hand, one in add()'s.
    assert held < 9 * picture[0].nbytes
    slow.set()
    assert done.wait(10)
    filler.join()
    recorder.close()
    assert recorder.frames == 80


def test_closing_twice_is_fine_and_adding_then_is_not(tmp_path):
    recorder = Recorder(tmp_path, ("front",), 25, num_envs=2)
    recorder.add({"front_rgb": grey(0)}, ends(False, False))
    recorder.close()
    recorder.close()
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ClosedError):
        recorder.add({"front_rgb": grey(0)}, ends(False, False))


def test_an_unused_recorder_writes_nothing(tmp_path):
    Recorder(tmp_path / "films", ("front",), 25, num_envs=2).close()
    assert not (tmp_path / "films").exists()


def test_a_forgotten_recorder_ends_its_thread_and_finishes_its_films(tmp_path):
    recorder = Recorder(tmp_path, ("front",), 25, num_envs=2)
    recorder.add({"front_rgb": grey(0)}, ends(False, False))
    del recorder
    assert not [t for t in threading.enumerate() if t.name == "maniple-recorder"]
    assert len(list(tmp_path.glob("*.mp4"))) == 2


def test_a_second_run_writes_over_nothing(tmp_path):
    for _ in range(2):
        with Recorder(tmp_path, ("front",), 25, num_envs=1) as recorder:
            recorder.add({"front_rgb": grey(0, rows=1)}, ends(True))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["env_000_front_episode_0000.mp4", "env_000_front_episode_0001.mp4"]


def test_an_encoder_error_is_told_once_and_blocks_nobody(tmp_path):
    (tmp_path / "films").write_text("a file where the folder should be")
    recorder = Recorder(tmp_path / "films", ("front",), 25, num_envs=2, queue_frames=2)
    with pytest.raises(ManipleError, match=r"(?s)Cannot write .*env_000_front.*another folder"):
        for _ in range(50):
            recorder.add({"front_rgb": grey(0)}, ends(False, False))
            time.sleep(0.002)
    with pytest.raises(ManipleError):
        recorder.add({"front_rgb": grey(0)}, ends(False, False))
    recorder.close()

    recorder = Recorder(tmp_path / "films", ("front",), 25, num_envs=1)
    recorder.add({"front_rgb": grey(0, rows=1)}, ends(False))
    with pytest.raises(ManipleError, match="Cannot write"):
        recorder.close()
    recorder.close()


@pytest.mark.alone
def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def full(self, frame):
        raise OSError(28, "No space left on device")

    with Recorder(tmp_path, ("front",), 25, num_envs=1) as recorder:
        recorder.add({"front_rgb": grey(0, rows=1)}, ends(True))
        assert _wait_until(lambda: recorder.frames == 1)
        time.sleep(0.05)
        monkeypatch.setattr(record.Film, "add", full)
        with pytest.raises(ManipleError, match="No space left"):
            for _ in range(100):
                recorder.add({"front_rgb": grey(0, rows=1)}, ends(False))
                time.sleep(0.002)
    assert len(decode(tmp_path / "env_000_front_episode_0000.mp4")) == 1


@pytest.mark.parametrize(
    ("obs", "ended", "match"),
    [
        ({"wrist_rgb": grey(0)}, ends(False, False), "no 'front_rgb', only wrist_rgb"),
        ({"front_rgb": grey(0, rows=3)}, ends(False, False), r"not \(3, 32, 48, 3\)"),
        ({"front_rgb": grey(0) / 255}, ends(False, False), "float64"),
        ({"front_rgb": grey(0)}, ends(False), "ended is of shape"),
    ],
)
def test_wrong_observations_are_told(tmp_path, obs, ended, match):
    with Recorder(tmp_path, ("front",), 25, num_envs=2) as recorder:
        with pytest.raises(BadConfig, match=match):
            recorder.add(obs, ended)
        assert recorder.frames == 0


def test_wrong_settings_are_told(tmp_path):
    for options in ({"fps": 0}, {"num_envs": 0}, {"queue_frames": 0}, {"cameras": ("../x",)}):
        settings = {"cameras": ("front",), "fps": 25, "num_envs": 1, **options}
        with pytest.raises(BadConfig):
            Recorder(tmp_path, **settings)


def test_a_kill_loses_no_finished_episode(tmp_path):
    """Episodes of 40 frames, killed in the middle of one: only its last fragment is missing."""
    code = (
        "import sys, time, numpy as np\n"
        "from maniple.data.record import Recorder\n"
        "rng = np.random.default_rng(0)\n"
        "r = Recorder(sys.argv[1], ('front',), 25, num_envs=2)\n"
        "for step in range(400):\n"
        "    film = rng.integers(0, 255, (2, 48, 64, 3), np.uint8)\n"
        "    r.add({'front_rgb': film}, np.array([step % 40 == 39, False]))\n"
        "while r.frames < 800: time.sleep(0.01)\n"
        "r.add({'front_rgb': film}, np.array([False, False]))\n"
        "print('written', flush=True)\n"
        "time.sleep(60)\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "written\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    for episode in range(10):
        assert len(decode(tmp_path / f"env_000_front_episode_{episode:04d}.mp4")) == 40
    # A fragment is 25 frames, and the encoder looks about 20 frames ahead.
    assert 350 <= len(decode(tmp_path / "env_001_front_episode_0000.mp4.part")) <= 401
    assert not (tmp_path / "env_001_front_episode_0000.mp4").exists()


@pytest.mark.alone
def test_a_kill_at_any_moment_leaves_readable_films(tmp_path):
    code = (
        "import sys, time, numpy as np\n"
        "from maniple.data.record import Recorder\n"
        "r = Recorder(sys.argv[1], ('front',), 25, num_envs=2)\n"
        "film = np.zeros((2, 48, 64, 3), np.uint8)\n"
        "print('begun', flush=True)\n"
        "step = 0\n"
        "while True:\n"
        "    film[:] = step % 200; step += 1; time.sleep(0.002)\n"
        "    r.add({'front_rgb': film}, np.array([step % 10 == 0, step % 7 == 0]))\n"
    )
    rng = np.random.default_rng(1)
    for trial in range(4):
        folder = tmp_path / str(trial)
        words = [sys.executable, "-c", code, str(folder)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(0.2 + rng.uniform(0, 0.2))
        process.kill()
        process.communicate()
        finished = sorted(folder.glob("*.mp4"))
        assert len(finished) >= 2
        for path in finished:
            assert len(decode(path)) == (10 if "env_000" in path.name else 7)
        # The lost ones are those that were open, one of each environment.
        assert len(list(folder.glob("*.part"))) <= 2


def test_a_forked_child_leaves_the_films_alone(tmp_path):
    with Recorder(tmp_path, ("front",), 25, num_envs=2) as recorder:
        recorder.add({"front_rgb": grey(0)}, ends(False, False))
        pid = os.fork()
        if pid == 0:
            recorder.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        recorder.add({"front_rgb": grey(0)}, ends(False, False))
    assert len(decode(tmp_path / "env_000_front_episode_0000.mp4")) == 2


def _wait_until(is_true, seconds=5):
    until = time.monotonic() + seconds
    while not is_true() and time.monotonic() < until:
        time.sleep(0.005)
    return is_true()
