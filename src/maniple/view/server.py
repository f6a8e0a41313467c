"""Open the page's server: on this machine only, or for others who have the token."""

from __future__ import annotations

import io
import logging
import secrets
import socket
from contextlib import redirect_stdout
from typing import Any

from maniple.core.errors import BadConfig
from maniple.core.loopback import is_loopback
from maniple.core.optional import require
from maniple.view.gate import TokenGate
from maniple.view.same_origin import only_own_pages

HERE = "127.0.0.1"
NOISE = "opening handshake failed"
"""What websockets logs, with a traceback, when a browser opens a connection and thinks again."""
DROPPED = "connection handler failed"
"""What it logs when somebody sends what viser cannot read; the connection is closed then."""
SHORTEST_TOKEN = 16


class PageServer:
    """A viser server, which listens on loopback whatever the host, and answers to its own page.

    Other machines are let in through a gate of ours that asks for a token: viser has none.

    Args:
        host: Address to be seen at; anything but loopback puts the gate in front.
        port: Port of the page; 0: any that is free.
        token: What others have to know; None: one is made.
    """

    def __init__(self, host: str = HERE, port: int = 8080, token: str | None = None) -> None:
        viser = require("viser")
        if not 0 <= port < 65536:
            raise BadConfig(f"port is {port}; it is from 0 (any) to 65535.")
        is_word = token is None or (token.isascii() and token.isalnum())
        if not is_word or (token is not None and len(token) < SHORTEST_TOKEN):
            raise BadConfig(
                f"A token has {SHORTEST_TOKEN} or more letters and digits; leave --share-token out "
                "to have one made."
            )
        logging.getLogger("websockets.server").addFilter(_is_news)
        is_here = is_loopback(host)
        _check_free(host, port)
        self._gate: TokenGate | None = None
        secret = None if is_here else secrets.token_hex(16)
        # viser says where it is, and later that it stops, on the standard output.
        with redirect_stdout(io.StringIO()), only_own_pages(secret):
            self.viser: Any = viser.ViserServer(
                host=host if is_here else HERE, port=port if is_here else 0, verbose=False
            )
        self.port: int = self.viser.get_port()
        # Others cannot open "every address": they need one of them.
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
        shown = f"[{shown}]" if ":" in shown else shown
        self.url = f"http://{shown}:{self.port}"
        if secret is not None:
            token = token or secrets.token_hex(16)
            self._gate = TokenGate(host, port, token, self.port, secret)
            self.port = self._gate.port
            self.url = f"http://{shown}:{self.port}/?token={token}"

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        if self._gate is not None:
            self._gate.close()
            self._gate = None
        if self.viser is not None:
            with redirect_stdout(io.StringIO()):
                self.viser.stop()
            self.viser = None


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether a log record is worth a line, which it is made into."""
    if record.getMessage() == DROPPED and record.exc_info:
        why = record.exc_info[1]
        # It may as well be a mistake of ours: whoever looks for it finds it here.
        logging.getLogger(__name__).debug(DROPPED, exc_info=record.exc_info)
        text = f"A visitor was dropped, who sent what the page does not: {type(why).__name__}"
        record.msg, record.args, record.exc_info, record.exc_text = text, (), None, None
    return record.getMessage() != NOISE


def _check_free(host: str, port: int) -> None:
    """Refuse an address that is not ours, or a port that is taken: viser takes the next one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(found[0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[4])
    except OSError as error:
        why = error.strerror or str(error)
        raise BadConfig(
            f"The page cannot be served at {host} port {port}: {why}. Choose another --port "
            f"(0: any), or leave --host out and reach this machine with: ssh -L {port}:{HERE}:"
            f"{port} USER@MACHINE"
        ) from None
