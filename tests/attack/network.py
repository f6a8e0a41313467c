"""Attack ports: rubbish, halves and floods; whoever is honest is still served."""

import base64
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener

import numpy as np

from maniple.agents.remote import RemotePolicy
from maniple.agents.serve import PolicyServer
from maniple.agents.wire import packed
from maniple.core.spec import ArraySpec

ACTION = ArraySpec((4,), np.dtype(np.float32), -1.0, 1.0)


def policy_port(draw: random.Random, until: float) -> dict:
    """Send a policy server what no client sends."""
    tries = honest = 0
    server = PolicyServer(lambda obs: np.zeros((1, 4), np.float32))
    try:
        while time.monotonic() < until:
            tries += 1
            kind = draw.randrange(5)
            try:
                with socket.create_connection(("127.0.0.1", server.port), 5) as line:
                    if kind == 0:
                        line.sendall(os.urandom(draw.randrange(1, 5000)))
                    elif kind == 1:
                        line.sendall(
                            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * draw.randrange(200)
                        )
                    else:
                        _hand_shake(line, server.port)
                        body = os.urandom(draw.randrange(1, 3000))
                        if kind == 3:
                            body = bytearray(packed({"state": np.zeros(5, np.float32)}))
                            body[draw.randrange(len(body))] ^= 1 << draw.randrange(8)
                        line.sendall(_frame(bytes(body), draw.choice((1, 2, 2, 2, 9))))
                    line.settimeout(0.05)
                    line.recv(4096)
            except (TimeoutError, ConnectionError):
                pass
            if tries % 50 == 0:
                policy = RemotePolicy(server.url, 1, ACTION)
                assert policy.act({"joint_pos": np.zeros((1, 3), np.float32)}).shape == (1, 4)
                policy.close()
                honest += 1
    finally:
        server.close()
    assert honest or tries < 50
    return {"tries": tries, "faults": tries - honest}


def page_port(draw: random.Random, until: float) -> dict:
    """Send the live page what no browser sends, with and without the token of other machines."""
    tries = honest = 0
    while time.monotonic() < until:
        is_shared = draw.random() < 0.5
        with _view(is_shared) as (view, port, token):
            end = min(until, time.monotonic() + 60)
            while time.monotonic() < end:
                tries += 1
                with suppress(TimeoutError, ConnectionError, OSError):
                    _rubbish_for_page(draw, port, token if draw.random() < 0.5 else "")
                if tries % 50 == 0:
                    honest += 1
                    assert view.poll() is None, "the page has ended"
                    _visit(port, token)
                    if is_shared:
                        assert _status(f"http://127.0.0.1:{port}/?token=wrong") == 403
    return {"tries": tries, "faults": tries - honest}


class _view:
    """A live page of its own process."""

    def __init__(self, is_shared: bool) -> None:
        words = ["view", "so101/Reach-v0", "--num-envs", "2", "--port", "0"]
        words += ["--host", "0.0.0.0"] if is_shared else []
        # A file: a pipe that nobody reads would stop a page that writes much.
        self.said = tempfile.NamedTemporaryFile("w+")  # noqa: SIM115
        self.child = subprocess.Popen(
            [sys.executable, "-u", "-m", "maniple", *words], stdout=self.said, stderr=self.said
        )

    def __enter__(self):
        while (
            found := re.search(r"http://[^ ]*?:(\d+)(?:/\?token=(\w+))?\s", self.read())
        ) is None:
            assert self.child.poll() is None, f"no page: {self.read()}"
            time.sleep(0.05)
        return self.child, int(found[1]), found[2] or ""

    def read(self) -> str:
        return Path(self.said.name).read_text()

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait(30)
        assert "Traceback" not in self.read(), self.read()[-3000:]


MESSAGES = ("GuiUpdateMessage", "GuiButtonHoldMessage", "ViewerCameraMessage",
            "ScenePointerMessage", "SceneNodeClickMessage", "TransformControlsUpdateMessage",
            "FileTransferStartUpload", "FileTransferPart", "ShareUrlRequest",
            "Message", "__class__")  # fmt: skip


def _rubbish_for_page(draw: random.Random, port: int, token: str) -> None:
    import viser

    query = f"/?token={token}" if token else "/"
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        kind = draw.randrange(4)
        if kind == 0:
            line.sendall(os.urandom(draw.randrange(1, 5000)))
        elif kind == 1:
            path = draw.choice(("/", "/../../etc/passwd", "/%00", "/" + "a" * 9000, query))
            lines = b"A: b\r\n" * draw.randrange(200)
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode() + lines)
        else:
            more = f"Sec-WebSocket-Protocol: viser-v{viser.__version__}\r\n"
            more += f"Cookie: maniple_token={token}\r\n" if token else ""
            _hand_shake(line, port, more)
            for _ in range(draw.randrange(1, 5)):
                body = os.urandom(draw.randrange(1, 3000)) if kind == 2 else _message(draw)
                line.sendall(_frame(body, draw.choice((1, 2, 2, 2))))
        line.settimeout(0.05)
        line.recv(4096)


def _message(draw: random.Random) -> bytes:
    """A message of the page's own kind, with values that no page sends."""
    import msgspec

    values = (None, -1, 2**63, float("nan"), "x" * 200, [], {}, [[1, 2], "a"], b"\0", True)
    names = ("uuid", "updates", "value", "name", "wxyz", "position", "ray_origin", "part_uuid",
             "transfer_uuid", "content", "size_bytes", "filename", "part_count")  # fmt: skip
    body = {name: draw.choice(values) for name in draw.sample(names, 6)}
    if draw.random() < 0.5:
        body["updates"] = {"value": draw.choice(values)}
    return msgspec.msgpack.encode({"type": draw.choice(MESSAGES), **body})


def _visit(port: int, token: str) -> None:
    """Open the page as a browser does, and wait for the first of the scene."""
    import viser
    from websockets.sync.client import connect

    assert _status(f"http://127.0.0.1:{port}/" + (f"?token={token}" if token else "")) == 200
    headers = {"Cookie": f"maniple_token={token}"} if token else {}
    with connect(
        f"ws://127.0.0.1:{port}", additional_headers=headers, max_size=None,
        subprotocols=[f"viser-v{viser.__version__}"],  # pyright: ignore[reportArgumentType]
    ) as channel:  # fmt: skip
        assert len(channel.recv(timeout=20)) > 16


def _status(url: str) -> int:
    try:
        return build_opener(HTTPCookieProcessor()).open(url, timeout=20).status
    except HTTPError as error:
        return error.code


def _hand_shake(line: socket.socket, port: int, more: str = "") -> None:
    key = base64.b64encode(os.urandom(16)).decode()
    line.sendall(
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{more}\r\n".encode()
    )
    line.settimeout(2)
    line.recv(4096)


def _frame(body: bytes, opcode: int) -> bytes:
    """A client's frame, masked with zeros."""
    head = bytes([0x80 | opcode])
    if len(body) < 126:
        head += bytes([0x80 | len(body)])
    else:
        head += bytes([0x80 | 126]) + len(body).to_bytes(2, "big")
    return head + bytes(4) + body
