"""Who may look at the page: this machine, or whoever has the token."""

import http.client
import socket
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from maniple.core.errors import BadConfig

viser = pytest.importorskip("viser")
from maniple.view.server import PageServer  # noqa: E402  (viser is asked for first)

pytestmark = pytest.mark.alone


def listening():
    import psutil

    mine = [c for c in psutil.Process().net_connections() if c.status == "LISTEN"]
    return {(c.laddr.ip, c.laddr.port) for c in mine}


def test_only_this_machine_is_served():

    before = listening()
    server = PageServer(port=0)
    try:
        assert listening() - before == {("127.0.0.1", server.port)}
        assert urlopen(server.url).status == 200
    finally:
        server.close()
    assert not listening() - before


def test_others_need_the_token():

    before = listening()
    server = PageServer("0.0.0.0", 0, "a" * 20)
    try:
        outside = [(ip, port) for ip, port in listening() - before if ip != "127.0.0.1"]
        assert outside == [("0.0.0.0", server.port)]
        url = f"http://127.0.0.1:{server.port}"
        for path in ("/", "/?token=", "/?token=wrong", "/index.html?token=%FF"):
            with pytest.raises(HTTPError, match="403"):
                urlopen(url + path)
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Cookie": "maniple_token=no",
                   "Sec-WebSocket-Key": "x" * 22 + "==", "Sec-WebSocket-Version": "13"}  # fmt: skip
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(url, headers=upgrade))
        page = build_opener(HTTPCookieProcessor()).open(f"{url}/?token={'a' * 20}")
        assert page.status == 200 and b"<html" in page.read()
        from websockets.sync.client import connect

        headers, version = {"Cookie": f"maniple_token={'a' * 20}"}, f"viser-v{viser.__version__}"
        with connect(
            url.replace("http", "ws"), additional_headers=headers, subprotocols=[version]
        ) as talk:
            assert len(talk.recv(timeout=20)) > 16
        # Rubbish, and somebody who says nothing, are dropped.
        for rubbish in (b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 40 + b"\r\n\r\n", b"x" * 40_000):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as talk:
                talk.sendall(rubbish)
                talk.shutdown(socket.SHUT_WR)
                answer = talk.recv(100)
                assert answer == b"" or b"403" in answer
    finally:
        server.close()
    assert not listening() - before


def test_a_visitor_who_sends_rubbish_is_one_line(caplog):
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    server = PageServer(port=0)
    try:
        version = f"viser-v{viser.__version__}"
        with connect(server.url.replace("http", "ws"), subprotocols=[version]) as visitor:
            visitor.send(b"\xc1rubbish")
            with pytest.raises(ConnectionClosed):
                while True:
                    visitor.recv(timeout=20)
        assert urlopen(server.url).status == 200
    finally:
        server.close()
    (line,) = [r for r in caplog.records if "dropped" in r.getMessage()]
    assert line.exc_info is None and "DecodeError" in line.getMessage()


def test_bad_addresses_are_refused():

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadConfig, match="ssh -L"):
            PageServer(port=taken.getsockname()[1])
    for host, port, token in (("203.0.113.7", 0, None), ("no such host", 0, None),
                              ("127.0.0.1", 70000, None), ("0.0.0.0", 0, "short")):  # fmt: skip
        with pytest.raises(BadConfig):
            PageServer(host, port, token)


def status(port, **headers):
    """What the page answers to a request with these headers."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.putrequest("GET", "/", skip_host="Host" in headers)
    for name, value in headers.items():
        link.putheader(name, value)
    link.endheaders()
    try:
        return link.getresponse().status
    finally:
        link.close()


def test_other_web_pages_cannot_use_the_one_on_loopback():
    server = PageServer(port=0)
    try:
        port = server.port
        assert status(port) == 200
        assert status(port, Origin=f"http://127.0.0.1:{port}") == 200
        assert status(port, Origin="http://evil.example") == 403
        assert status(port, Host="evil.example", Origin="http://evil.example") == 403
        assert status(port, Host="localhost:9999", Origin="http://localhost:9999") == 200, "ssh -L"
    finally:
        server.close()


def test_behind_the_gate_nobody_is_answered_who_did_not_come_through_it():
    server = PageServer("0.0.0.0", 0, "0123456789abcdef")
    try:
        assert status(server.viser.get_port()) == 403
        assert status(server.port, Cookie="maniple_token=0123456789abcdef") == 200
        assert status(server.port) == 403
    finally:
        server.close()


def test_silent_connections_do_not_keep_others_out():
    server = PageServer("0.0.0.0", 0, "0123456789abcdef")
    silent = []
    try:
        for _ in range(70):
            silent.append(socket.create_connection(("127.0.0.1", server.port), timeout=10))
        for _ in range(3):
            assert status(server.port, Cookie="maniple_token=0123456789abcdef") == 200
        # They are hung up on, too: the last of them by its deadline.
        assert silent[-1].recv(1) == b""
    finally:
        for talk in silent:
            talk.close()
        server.close()


def test_tokens_are_plain_letters():
    with pytest.raises(BadConfig, match="letters and digits"):
        PageServer("0.0.0.0", 0, "é" * 20)
