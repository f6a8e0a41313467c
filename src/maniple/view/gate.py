"""Let in who knows a token: a proxy in front of a server on loopback."""

from __future__ import annotations

import asyncio
import hmac
import threading
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from maniple.core.errors import BadConfig
from maniple.view.same_origin import PASS

COOKIE = "maniple_token"
FIRST_SECONDS = 3.0
"""How long somebody who connects may say nothing at all."""
HEAD_BYTES, HEAD_SECONDS = 16_384, 10.0
"""How large a request's head may be, and how long it may take to come."""
MOST_CONNECTIONS = 64
"""Of those who know the token."""
MOST_WAITING, MOST_WAITING_EACH = 64, 16
"""Of those whose request has not come yet: in all, and from one address."""
PIECE_BYTES = 65_536
REFUSAL = b"The token is missing or wrong. Open the address that 'maniple view' has printed.\n"


class TokenGate:
    """Listens at an address, asks for the token, and passes on what comes after it.

    The token comes once in the address (?token=...) and is a cookie from then on, which the
    browser sends with the page's WebSocket too. It travels in the clear, as the page does.
    """

    def __init__(self, host: str, port: int, token: str, target_port: int, secret: str) -> None:
        """Begin to listen; `secret` tells the server behind that somebody was let in."""
        self._token, self._target, self._secret = token, target_port, secret
        self._loop = asyncio.new_event_loop()
        self._open = 0
        self._waiting: dict[asyncio.StreamWriter, str] = {}
        try:
            self._server = self._loop.run_until_complete(
                asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES)
            )
        except OSError as error:
            self._loop.close()
            raise BadConfig(f"Nothing can listen at {host} port {port}: {error}.") from None
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="maniple-gate", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up on everybody."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._hang_up())
        self._loop.close()

    async def _hang_up(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            with suppress(OSError, RuntimeError):
                writer.close()

    async def _head(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Wait for a request; those who have been silent for longest make room for others."""
        address = str((writer.get_extra_info("peername") or ("",))[0])
        theirs = [other for other, at in self._waiting.items() if at == address]
        for others, most in ((theirs, MOST_WAITING_EACH), ([*self._waiting], MOST_WAITING)):
            if len(others) >= most:
                self._waiting.pop(others[0], None)
                others[0].transport.abort()
        self._waiting[writer] = address
        try:
            first = await asyncio.wait_for(reader.readexactly(1), FIRST_SECONDS)
            rest = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
            return first + rest
        finally:
            self._waiting.pop(writer, None)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await self._head(reader, writer)
        target, headers = _parse(head)
        if self._is_right(_in_address(target)):
            # From here on the cookie says it, and the address can be shown to others.
            cookie = f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            lines = f"HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: {cookie}\r\n"
            writer.write(f"{lines}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        elif self._is_right(_in_cookie(headers.get("cookie", ""))):
            await self._pass_on(head, reader, writer)
        else:
            size = f"Content-Length: {len(REFUSAL)}\r\nConnection: close\r\n\r\n"
            writer.write(f"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n{size}".encode())
            writer.write(REFUSAL)
        await writer.drain()

    async def _pass_on(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._open >= MOST_CONNECTIONS:
            return
        self._open += 1
        try:
            await self._connect(head, reader, writer)
        finally:
            self._open -= 1

    async def _connect(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        first, _, rest = head.partition(b"\r\n")
        back.write(b"%s\r\n%s: %s\r\n%s" % (first, PASS.encode(), self._secret.encode(), rest))
        ways = [asyncio.create_task(_pipe(reader, back)), asyncio.create_task(_pipe(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            back.close()

    def _is_right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()


def _parse(head: bytes) -> tuple[str, dict[str, str]]:
    """Return the target of a request and its headers; empty where it is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    parts = [line.partition(":") for line in lines if ":" in line]
    headers = {name.strip().lower(): value.strip() for name, _, value in parts}
    return (words[1] if len(words) == 3 else ""), headers


def _in_address(target: str) -> str:
    with suppress(ValueError):
        return parse_qs(urlsplit(target).query).get("token", [""])[0]
    return ""


def _in_cookie(text: str) -> str:
    with suppress(CookieError):
        found = SimpleCookie(text).get(COOKIE)
        return found.value if found else ""
    return ""
