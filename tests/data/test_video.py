"""One encoder writes films for people and films of datasets, each with its own settings."""

import subprocess
import sys

import av
import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.data.h264 import Encoder, Encoding
from maniple.data.lerobot.film import read_film, write_film
from maniple.data.video import Film


def frames(count=12, size=(33, 47)):
    ramp = np.indices(size).sum(0)[..., None] * np.array([1, 2, 3])
    return np.stack([ramp // 2 + k for k in range(count)]).astype(np.uint8)


def facts(path, key_every):
    """Return pixel format, (height, width), and the number of frames; x264 may add key frames."""
    with av.open(str(path), format="mp4") as film:
        stream = film.streams.video[0]
        decoded = list(film.decode(stream))
        keys = [k for k, frame in enumerate(decoded) if frame.key_frame]
        assert keys[0] == 0 and max(np.diff([*keys, len(decoded)])) <= key_every
        return stream.pix_fmt, (stream.height, stream.width), len(decoded)


def test_a_film_for_people_plays_everywhere(tmp_path):
    with Film(tmp_path / "deep/film.mp4", fps=25, key_every=5) as film:
        for frame in frames():
            film.add(frame)
        assert [p.name for p in (tmp_path / "deep").iterdir()] == ["film.mp4.part"]
    assert facts(film.path, 5) == ("yuv420p", (32, 46), 12)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["film.mp4"]
    assert b"moof" in film.path.read_bytes(), "fragments survive a kill"
    film.close()


def test_a_film_of_a_dataset_keeps_size_and_colour(tmp_path):
    path = tmp_path / "film.mp4"
    write_film(path, frames(), fps=25)
    assert facts(path, 2) == ("yuv444p", (33, 47), 12)
    assert b"moof" not in path.read_bytes(), "an index, as LeRobot's readers expect"
    smooth = np.full((3, 16, 16, 3), (200, 30, 60), np.uint8)
    write_film(path, smooth, fps=25)
    assert np.abs(read_film(path, 0, 3, 25).astype(int) - smooth).max() < 8


def test_a_film_is_read_from_anywhere_in_any_size(tmp_path):
    path = tmp_path / "film.mp4"
    write_film(path, frames(size=(32, 48)), fps=25)
    whole = read_film(path, 0, 12, 25)
    assert np.array_equal(read_film(path, 5, 4, 25), whole[5:9])
    assert len(read_film(path, 10, 5, 25)) == 2, "no more than there are"
    small = read_film(path, 0, 12, 25, (16, 24)).astype(int)
    mean = whole.reshape(12, 16, 2, 24, 2, 3).mean((2, 4))
    assert small.shape == (12, 16, 24, 3) and np.abs(small - mean).mean() < 3


def test_an_empty_film_leaves_no_file(tmp_path):
    Film(tmp_path / "film.mp4", fps=25).close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("frame", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3))])
def test_other_arrays_are_refused(tmp_path, frame):
    with Encoder(tmp_path / "x.mp4", 25, Encoding()) as encoder, pytest.raises(BadConfig):
        encoder.add(frame)


def test_a_full_disk_is_told_and_leaves_no_whole_name(tmp_path):
    """FFmpeg says nothing: the film is counted before it gets its name."""
    code = (
        "import resource, signal, sys\nimport numpy as np\n"
        "from maniple.core.errors import ManipleError\nfrom maniple.data.video import Film\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "film, rng = Film(sys.argv[1], 10), np.random.default_rng(0)\n"
        "try:\n"
        "    for _ in range(60):\n"
        "        film.add(rng.integers(0, 255, (128, 128, 3), np.uint8))\n"
        "    film.close()\n"
        "except (ManipleError, OSError) as error:\n"
        "    print('told:', error)\n"
    )
    path = tmp_path / "film.mp4"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60
    )
    assert "told:" in done.stdout, done.stderr
    assert not path.exists()
