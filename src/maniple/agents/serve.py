"""Offer a policy at a port of this machine, as openpi's servers do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from maniple.agents.wire import MOST_BYTES, packed, unpacked
from maniple.core.optional import require

Infer = Callable[[Mapping[str, Any]], NDArray]
"""Answers one observation with a chunk of actions, (steps, action_size)."""
log = logging.getLogger("maniple.port")
_QUIET = logging.getLogger("maniple.port.websockets")
"""Where websockets tells of every hang-up, with its traceback: only to who asks for it."""
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class PolicyServer:
    """Serves on 127.0.0.1 in a thread until it is closed."""

    def __init__(self, infer: Infer, port: int = 0, metadata: dict[str, Any] | None = None) -> None:
        """Listen at a port; 0: one that is free."""
        server = require("websockets.sync.server")
        self._infer, self._metadata = infer, metadata or {}
        self._lock = threading.Lock()
        self._connected: set[Any] = set()
        self._server: Any = server.serve(
            self._talk, "127.0.0.1", port, compression=None, max_size=MOST_BYTES,
            process_request=_health, logger=_QUIET,
        )  # fmt: skip
        self.port: int = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="policy-server", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"ws://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop listening, and hang up."""
        self._server.shutdown()
        # Until version 17, websockets leaves those who are connected to themselves.
        for socket in list(self._connected):
            socket.close(1001, "the server was closed")
        self._thread.join(5)

    def _talk(self, socket: Any) -> None:
        self._connected.add(socket)
        try:
            self._answer(socket)
        finally:
            self._connected.discard(socket)

    def _answer(self, socket: Any) -> None:
        socket.send(packed(self._metadata))
        before = 0.0
        for message in socket:
            begin = perf_counter()
            try:
                # One at a time: policies have memories.
                with self._lock:
                    actions = self._infer(unpacked(message))
                spent = 1e3 * (perf_counter() - begin)
                timing = {"infer_ms": spent, "prev_total_ms": before}
                answer = packed({"actions": actions, "server_timing": timing})
            except Exception as error:
                # Whatever the policy raises: whoever asked is told, and the others are served.
                log.warning("a request failed: %s", error)
                socket.send(f"{type(error).__name__}: {error}")
                socket.close(1011, "the request failed")
                return
            socket.send(answer)
            before = 1e3 * (perf_counter() - begin)


def _health(connection: Any, request: Any) -> Any:
    """Answer GET /healthz without a WebSocket."""
    return connection.respond(200, "OK\n") if request.path == "/healthz" else None
