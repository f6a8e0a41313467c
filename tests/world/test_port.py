"""Policies behind a port: openpi's wire, loopback only, nothing that could run."""

import json
import time
import urllib.request

import numpy as np
import pytest

pytest.importorskip("websockets")
pytest.importorskip("msgpack")

import msgpack

from maniple.agents.remote import RemotePolicy
from maniple.agents.serve import PolicyServer
from maniple.agents.wire import packed, unpacked
from maniple.core.errors import BadConfig, ManipleError
from maniple.core.spec import ArraySpec

ACTION = ArraySpec((4,), np.dtype(np.float32), -1.0, 1.0)


@pytest.fixture
def serve():
    servers = []

    def make(infer, **options):
        servers.append(PolicyServer(infer, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.mark.alone
def test_a_policy_behind_a_port_is_judged(serve, inside):
    """It is shown pictures, chosen numbers and the sentence, and nothing that no robot knows."""
    asked = []

    def infer(obs):
        asked.append(obs)
        return np.zeros((5, 4), np.float32)

    url = serve(infer).url
    words = ["eval", "so101/LiftCube-v0", "--policy", url, "--episodes", "2", "--num-envs", "2"]
    more = ["--cameras", "front", "wrist", "--image-size", "32", "48", "--json"]
    told = json.loads(inside(*words, "--states", "tip_pos", *more).out.splitlines()[-1])
    assert told["success_rate"] == 0.0 and told["policy"] == url
    seen = asked[0]
    assert set(seen) == {"tip_pos", "front_rgb", "wrist_rgb", "observation/image", "prompt",
                         "observation/wrist_image", "observation/state"}  # fmt: skip
    assert np.array_equal(seen["observation/state"], seen["tip_pos"]) and "cube" in seen["prompt"]
    assert seen["observation/image"].shape == (32, 48, 3)
    asked.clear()
    inside(*words, "--prompt", "dance", "--json")
    assert asked[0]["prompt"] == "dance" and "cube_pose" not in asked[0]
    assert "is for a policy server" in inside(*words[:2], "--states", "tip_pos", code=2).err
    assert "luck" in inside(*words, "--states", "luck", code=2).err
    words[3] = "ws://127.0.0.1:1"
    assert "No policy server answers" in inside(*words, code=2).err


def test_arrays_survive_the_wire():
    message = {"picture": np.arange(12, dtype=np.uint8).reshape(2, 2, 3), "x": np.float32(1.5),
               "deep": [{"a": np.zeros((0, 3))}], "prompt": "reach"}  # fmt: skip
    back = unpacked(packed(message))
    assert (back["picture"] == message["picture"]).all() and back["picture"].dtype == np.uint8
    assert back["x"] == np.float32(1.5) and back["deep"][0]["a"].shape == (0, 3)


def test_it_is_openpis_form():
    """Byte keys, as its own client writes and reads them."""
    raw = msgpack.unpackb(packed({"a": np.zeros(2, np.float32)}), strict_map_key=False, raw=False)
    assert raw["a"] == {b"__ndarray__": True, b"data": bytes(8), b"dtype": "<f4", b"shape": [2]}


@pytest.mark.parametrize("dtype", ["|O", "|V8", "<c8", "<U4"])
def test_only_numbers_are_read(dtype):
    bad = {b"__ndarray__": True, b"data": bytes(8), b"dtype": dtype, b"shape": [1]}
    with pytest.raises(BadConfig, match="only numbers are"):
        unpacked(msgpack.packb({"a": bad}))
    with pytest.raises(BadConfig):
        packed({"a": np.array([object()])})


def test_lying_shapes_are_refused():
    for shape in ([3], [-1], [2**40, 2**40]):
        bad = {b"__ndarray__": True, b"data": bytes(8), b"dtype": "<f4", b"shape": shape}
        with pytest.raises(BadConfig):
            unpacked(msgpack.packb(bad))
    with pytest.raises(BadConfig, match="no message"):
        unpacked(b"\xc1garbage")


def test_chunks_are_followed_row_by_row(serve):
    asked = []

    def infer(obs):
        asked.append(float(obs["observation/state"][0]))
        return (
            np.tile(np.arange(1, 4, dtype=np.float32)[:, None] / 10, (1, 4))
            + obs["observation/state"][0]
        )

    server = serve(infer, metadata={"name": "mine"})
    policy = RemotePolicy(server.url, 2, ACTION, "reach")
    assert policy.metadata == {"name": "mine"}
    obs = {
        "tip_pos": np.array([[0.0], [0.5]], np.float32),
        "front_rgb": np.zeros((2, 8, 8, 3), np.uint8),
    }
    found = np.stack([policy.act(obs)[:, 0] for _ in range(4)])
    assert np.allclose(found, [[0.1, 0.6], [0.2, 0.7], [0.3, 0.8], [0.1, 0.6]])
    assert asked == [0.0, 0.5, 0.0, 0.5], "one request per row and chunk"
    policy.reset(np.array([True, False]))
    policy.act(obs)
    assert asked[4:] == [0.0], "a row that begins anew asks again"
    policy.close()


def test_errors_are_told(serve):
    def fail(obs):
        raise ValueError("no such camera")

    policy = RemotePolicy(serve(fail).url, 1, ACTION)
    with pytest.raises(ManipleError, match="no such camera"):
        policy.act({"tip_pos": np.zeros((1, 3), np.float32)})
    wrong = RemotePolicy(serve(lambda obs: np.zeros((2, 7), np.float32)).url, 1, ACTION)
    with pytest.raises(ManipleError, match=r"\(steps, 4\)"):
        wrong.act({"tip_pos": np.zeros((1, 3), np.float32)})


def test_health_and_loopback(serve):
    server = serve(lambda obs: np.zeros((1, 4), np.float32))
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=10) as answer:
        assert answer.read().strip() == b"OK"
    with pytest.raises(BadConfig, match="tunnel"):
        RemotePolicy("ws://192.0.2.1:8000", 1, ACTION)
    with pytest.raises(BadConfig, match="No policy server answers"):
        RemotePolicy("ws://127.0.0.1:1", 1, ACTION)


def test_a_student_behind_a_port(serve, inside, small, tmp_path, teacher_dir):
    """Phase 2 runs with somebody else's policy; its rewards and coverage are logged alike."""
    server = serve(lambda obs: np.full((5, 4), 0.5, np.float32))
    words = ["--teacher-path", teacher_dir, "--port", server.url, "--num-episodes", "1"]
    inside("train", "student", "1", "2", *small, *words, "--output-dir", tmp_path / "run")
    text = (tmp_path / "run/episode_metrics.jsonl").read_text()
    assert "reward/disagreement" in text and "coverage/gripper" in text


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "127.0.0.1:8000", "ws://127.0.0.1:99999", "ws://127.0.0.1:x"]
)
def test_what_is_no_address(url):
    with pytest.raises(BadConfig, match="is no address"):
        RemotePolicy(url, 1, ACTION)


def test_a_server_that_has_gone(serve):
    server = serve(lambda obs: np.zeros((1, 4), np.float32))
    policy = RemotePolicy(server.url, 1, ACTION)
    policy.act({"x": np.zeros((1, 2), np.float32)})
    server.close()
    with pytest.raises(ManipleError, match="is gone"):
        # What is on its way when a server closes may still be answered.
        for _ in range(50):
            policy.act({"x": np.zeros((1, 2), np.float32)})
            time.sleep(0.1)
    policy.close()


def test_no_websocket_and_silence(monkeypatch):
    import socket

    from maniple.agents import remote

    monkeypatch.setattr(remote, "PATIENCE_S", 0.3)
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, pytest.raises(BadConfig, match="No policy server answers"):
        RemotePolicy(f"ws://127.0.0.1:{silent.getsockname()[1]}", 1, ACTION)


@pytest.mark.parametrize(
    ("infer", "told"),
    [
        (lambda obs: np.zeros((0, 4), np.float32), "without any action"),
        (lambda obs: object(), "BadConfig: object is not sent"),
        (lambda obs: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_bad_answers_are_told(serve, infer, told):
    policy = RemotePolicy(serve(infer).url, 1, ACTION)
    with pytest.raises(ManipleError, match=told):
        policy.act({"x": np.zeros((1, 2), np.float32)})
    policy.close()
