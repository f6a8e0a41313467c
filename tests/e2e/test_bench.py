"""Sweeps and traces, run as a user runs them; what they measure is never asserted."""

import json
import os
import subprocess
import sys
import uuid
from importlib.util import find_spec

import psutil
import pytest

from maniple.cli.bench import isolated
from maniple.cli.bench.contender import Contender
from maniple.cli.bench.interleave import interleave

MARK = "MANIPLE_BENCH_TEST"


def maniple(*words, code=0, env=None):
    done = subprocess.run(
        [sys.executable, "-m", "maniple", "bench", *words],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done


def last_json(done):
    return json.loads(done.stdout.strip().splitlines()[-1])


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def png_size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def left_behind(mark):
    """Processes that still carry the mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.pid != os.getpid():
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_sweep(tmp_path):
    mark = str(uuid.uuid4())
    words = "sweep --num-envs 2,3 --workers 1,2 --action-chunk 1,4 --peers gymnasium --turns 1"
    words += f" --steps 20 --seconds 0.1 --json --out {tmp_path}/deep/er"
    done = maniple(*words.split(), env={MARK: mark})
    answer = last_json(done)
    rows = rows_of(tmp_path / "deep/er/throughput.jsonl")
    assert answer["rows"] == rows and not answer["failed"]
    assert {"engine", "setting", "num_envs", "workers", "action_chunk", "env_steps_per_s",
            "us_per_env_step", "turns"} <= set(rows[0])  # fmt: skip
    assert {(r["engine"], r["num_envs"]) for r in rows} == {
        (engine, count)
        for engine in ("raw physics", "native", "process", "gymnasium")
        for count in (2, 3)
    }
    settings = {(r["workers"], r["action_chunk"]) for r in rows if r["engine"] == "process"}
    assert settings == {(1, 1), (2, 1), (1, 4), (2, 4)}
    width, height = png_size(tmp_path / "deep/er/throughput.png")
    assert width > 800 and height > 500
    for count in (1, 2):
        part = tmp_path / f"deep/er/throughput-{count}-workers.jsonl"
        assert {r["workers"] for r in rows_of(part) if r["engine"] == "process"} == {count}
        assert {r["engine"] for r in rows_of(part)} == {r["engine"] for r in rows}
        assert png_size(part.with_suffix(".png")) and str(part) in answer["files"]
    assert "maniple.make_vec(" in answer["best"][0]["type_this"]
    assert "Fastest here" in done.stderr
    assert not left_behind(mark)


def test_missing_peers_are_listed(tmp_path):
    modules = {"pufferlib": "pufferlib", "sb3": "stable_baselines3"}
    missing = [peer for peer, module in modules.items() if find_spec(module) is None]
    if not missing:
        pytest.skip("all peers are installed")
    words = f"sweep --num-envs 2 --workers 1 --action-chunk 1 --turns 1 --peers {','.join(missing)}"
    done = maniple(*words.split(), "--steps", "5", "--out", str(tmp_path))
    for peer in missing:
        line = next(x for x in done.stdout.splitlines() if f"{peer} is not installed" in x)
        assert "Type: pip install" in line


@pytest.mark.parametrize("more", [[], ["--image-size", "32", "48", "--record"]])
def test_trace(tmp_path, more):
    words = "trace --task so101/Reach-v0 --num-envs 4 --workers 2 --action-chunk 3 --steps 30"
    done = maniple(*words.split(), *more, "--json", "--out", str(tmp_path))
    answer = last_json(done)
    parts = {"exec", "transport"} | ({"render", "video"} if more else set())
    assert set(answer["ms"]) == parts and len(answer["per_worker"]) == 2
    rows = rows_of(tmp_path / "trace.jsonl")
    assert len(rows) == 10 and set(rows[0]) == {"call"} | {f"{part}_s" for part in parts}
    assert all(value >= 0 for row in rows for value in row.values())
    width, height = png_size(tmp_path / "trace.png")
    assert width > 800 and height > 400
    assert (tmp_path / "trace.mp4").exists() == bool(more)
    films = sorted(path.name for path in (tmp_path / "films").glob("*.mp4"))
    assert len(films) >= 8 * bool(more) and all("front" in f or "wrist" in f for f in films)


def test_trace_of_the_native_engine(tmp_path, inside):
    words = ["bench", "trace", "--num-envs", "2", "--steps", "5", "--engine", "native", "--out"]
    assert "transport" in inside(*words, tmp_path).out
    assert png_size(tmp_path / "trace.png")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("sweep --num-envs 2,x", "--num-envs is '2,x'"),
        ("sweep --num-envs 2,,4", "as in --num-envs 2,4,8"),
        ("sweep --workers 0,1", "--workers is '0,1'"),
        ("sweep --action-chunk -1", "--action-chunk"),
        ("sweep --peers gymnasum", "Did you mean gymnasium"),
        ("sweep --turns 0", "--turns is 0"),
        ("sweep --task lerobt", "Did you mean LeRobot-v0"),
        ("sweep --out /proc/nowhere", "Give another --out"),
        ("trace --steps 0", "--steps is 0"),
        ("trace --record", "--cameras"),
    ],
)
def test_mistakes_are_one_readable_line(words, says, inside):
    done = inside("bench", *words.split(), code=2)
    assert says in done.err
    assert "Traceback" not in done.err
    assert "--action-chunk" in says or len(done.err.strip().splitlines()) == 1


BROKEN = """
import os, time
import gymnasium, numpy as np

class Calm(gymnasium.Env):
    action_space = observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    def reset(self, **_):
        return np.zeros(2, np.float32), {}
    def step(self, action):
        self.misbehave()
        return np.zeros(2, np.float32), 0.0, False, False, {}
    def misbehave(self):
        pass

class Hangs(Calm):
    def misbehave(self):
        while True: pass

class Dies(Calm):
    def misbehave(self):
        os._exit(3)

class Raises(Calm):
    def __init__(self):
        raise RuntimeError("no such arm")
"""


@pytest.mark.alone
def test_who_hangs_or_dies_drops_out_alone(tmp_path, monkeypatch):
    """A peer that fails costs its own figure only, and leaves no process."""
    mark = str(uuid.uuid4())
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setattr(isolated, "SLACK_S", 1.0)
    kinds = {"Calm": "async, no copy", "Hangs": "async, no copy", "Dies": "sync", "Raises": "sync"}
    who = [Contender(f"broken:{name}", "gymnasium", kind, 2) for name, kind in kinds.items()]
    calm, hangs, dies, raises = interleave(who, turns=2, steps=10, seconds=0.1)
    assert len(calm.rates) == 2 and not calm.failure
    assert "too long" in hangs.failure
    assert "died" in dies.failure
    assert "RuntimeError: no such arm" in raises.failure
    assert not left_behind(mark)


@pytest.mark.alone
def test_a_killed_sweep_leaves_no_process(tmp_path):
    mark = str(uuid.uuid4())
    words = f"sweep --num-envs 2 --workers 1 --peers gymnasium --out {tmp_path} --seconds 30"
    sweep = subprocess.Popen(
        [sys.executable, "-m", "maniple", "bench", *words.split()],
        env={**os.environ, MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_until(lambda: len(left_behind(mark)) > 6)
    finally:
        sweep.kill()
        sweep.wait()
    assert wait_until(lambda: not left_behind(mark))


def wait_until(happens, seconds=30.0):
    import time

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happens():
            return True
        time.sleep(0.1)
    return False
