"""Learner and actors over a real Ray head on this machine: killed, restarted, and gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from maniple.learn.step_queue import StepQueue

PORT = 46391


def test_the_queue_is_bounded_and_keeps_order():
    """The oldest steps are dropped and counted; what comes twice is kept once."""
    queue = StepQueue(most_steps=100)
    for number in range(1, 6):
        assert queue.push("a", number, 30, bytes([number]) * 30, "{}")
    assert not queue.pull(0)
    assert queue.push("a", 5, 30, b"again" * 6, "{}")
    assert [parcel[1] for parcel in queue.pull(9)] == [3, 4, 5]
    stats = queue.stats()
    assert stats["dropped_steps"] == 60 and stats["doubles"] == 1 and stats["waiting_steps"] == 0
    assert queue.weights(have=0) is None
    queue.publish(7, b"w")
    assert queue.weights(have=3) == (7, b"w") and queue.weights(have=7) is None
    queue.finish()
    assert not queue.push("b", 1, 30, b"", "{}")


def start(role: str, folder: Path, *more: str) -> subprocess.Popen:
    """Start one side as a user would."""
    words = [sys.executable, "-m", "maniple", "train", "sac", "--role", role, "--json"]
    words += ["--port", str(PORT), "--token-file", str(folder / "token"), "--patience-s", "300"]
    with (folder / f"{role}-{time.time()}.txt").open("w") as log:
        return subprocess.Popen([*words, *more], stdout=log, stderr=subprocess.STDOUT)


def learner(folder: Path, *more: str) -> subprocess.Popen:
    """Start the learner."""
    return start(
        "learner", folder, "--run-dir", str(folder / "run"), "--stop-at-success", "0.9",
        "--eval-n-trajs", "100", "--checkpoint-period", "2000", *more,
    )  # fmt: skip


def steps_of(folder: Path) -> int:
    """Steps that the learner has told of."""
    path = folder / "run" / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return json.loads(lines[-1])["step"] if lines else 0


def wait_for(folder: Path, steps: int, process: subprocess.Popen) -> None:
    """Wait until the learner has come that far."""
    deadline = time.monotonic() + 300
    while steps_of(folder) < steps:
        assert process.poll() is None, "the learner ended early"
        assert time.monotonic() < deadline
        time.sleep(0.2)


def ray_processes() -> set[int]:
    """Processes of Ray on our port."""
    found = set()
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(PORT) in words and ("ray" in words or "maniple.learn.ray_head" in words):
            found.add(process.pid)
    return found


@pytest.mark.slow
def test_killed_actors_and_learners_do_not_end_the_training(tmp_path):
    """One learner, two actors; each is killed once; it learns to reach, and nothing is left."""
    pytest.importorskip("ray")
    running = [learner(tmp_path)]
    try:
        wait_file = tmp_path / "token"
        while not wait_file.exists():
            time.sleep(0.1)
        actors = [start("actor", tmp_path, "--num-envs", "8") for _ in range(2)]
        running += actors
        wait_for(tmp_path, 3_000, running[0])
        os.kill(actors[0].pid, signal.SIGKILL)
        wait_for(tmp_path, steps_of(tmp_path) + 1_000, running[0])
        os.kill(running[0].pid, signal.SIGKILL)
        running[0].wait()
        time.sleep(2)
        assert actors[1].poll() is None, "the actor waits for another learner"
        running += [learner(tmp_path, "--resume"), start("actor", tmp_path, "--num-envs", "4")]
        assert running[-2].wait(400) == 0
        answer = (sorted(tmp_path.glob("learner-*.txt"))[-1]).read_text().splitlines()[-1]
        assert json.loads(answer)["success_rate"] >= 0.9
        assert actors[1].wait(60) == 0 and running[-1].wait(60) == 0
        assert not ray_processes()
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
        note = tmp_path / "run" / "cluster.json"
        if note.exists():
            psutil.Process(json.loads(note.read_text())["pid"]).terminate()


def test_an_actor_without_the_token_is_refused(tmp_path):
    """It says where the token should be."""
    pytest.importorskip("ray")
    lonely = start("actor", tmp_path, "--num-envs", "1", "--patience-s", "20")
    assert lonely.wait(60) == 2
    text = next(tmp_path.glob("actor-*.txt")).read_text()
    assert "There is no token at" in text and "Traceback" not in text


def test_a_port_in_use_is_named_at_once(tmp_path):
    """By another program: no head is looked for there, and no other is disturbed."""
    import socket

    pytest.importorskip("ray")
    from maniple.learn.cluster import Cluster, ClusterConfig, ClusterError

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = ClusterConfig(role="learner", port=port, token_file=tmp_path / "token")
        with pytest.raises(ClusterError, match=f"Port {port} .* in use .* --port {port + 1}"):
            Cluster(config, tmp_path / "run")


def test_an_actor_waits_for_the_token(tmp_path):
    """Then it says which flag names another one."""
    from maniple.core.errors import BadConfig
    from maniple.learn.cluster import Cluster, ClusterConfig

    config = ClusterConfig(role="actor", token_file=tmp_path / "token", patience_s=5.0)
    began = time.monotonic()
    with pytest.raises(BadConfig, match="--token-file"):
        Cluster(config)
    assert time.monotonic() - began > 0.4


@pytest.mark.slow
def test_nothing_listens_for_other_machines(tmp_path):
    """With the default address neither the head nor what it starts is reached from outside."""
    pytest.importorskip("ray")
    from maniple.learn.cluster import exposed

    running = learner(tmp_path)
    note = tmp_path / "run" / "cluster.json"
    try:
        wait_for_queue(running)
        head = json.loads(note.read_text())["pid"]
        listening = [
            one.laddr
            for process in (psutil.Process(head), *psutil.Process(head).children(recursive=True))
            for one in process.net_connections(kind="inet")
            if one.status == psutil.CONN_LISTEN
        ]
        assert PORT in {port for _, port in listening} and 10001 not in {p for _, p in listening}
        assert exposed(head) == [] and exposed(running.pid) == []
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(60)
        if note.exists():
            psutil.Process(json.loads(note.read_text())["pid"]).terminate()


def wait_for_queue(process: subprocess.Popen) -> None:
    """Wait until the learner is connected to its head."""
    deadline = time.monotonic() + 120
    while not any("StepQueue" in (p.info["name"] or "") for p in psutil.process_iter(["name"])):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.5)


def test_an_open_socket_is_seen():
    """What the check before a start would refuse."""
    import socket

    from maniple.learn.cluster import exposed

    with socket.create_server(("127.0.0.1", 0)):
        assert exposed(os.getpid()) == []
        with socket.create_server(("0.0.0.0", 0)) as other:
            (found,) = exposed(os.getpid())
            assert str(other.getsockname()[1]) in found
