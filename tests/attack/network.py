"""Attack ports: rubbish, halves and floods; whoever is honest is still served."""

import base64
import os
import random
import socket
import time

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


def _hand_shake(line: socket.socket, port: int) -> None:
    key = base64.b64encode(os.urandom(16)).decode()
    line.sendall(
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
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
