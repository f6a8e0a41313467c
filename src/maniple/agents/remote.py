"""A policy behind a port that speaks openpi's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlparse

import numpy as np
from numpy.typing import NDArray

from maniple.agents.wire import MOST_BYTES, packed, unpacked
from maniple.core.errors import BadConfig, ManipleError, one_line, unknown
from maniple.core.optional import require
from maniple.core.spec import ArraySpec

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATIENCE_S = 60.0


class RemotePolicy:
    """Asks a server for the actions of every row, and follows the chunks that it answers with.

    Each row is one request: such servers take no batches. They know no reset; what is left of a
    chunk is dropped here instead.
    """

    def __init__(
        self,
        url: str,
        rows: int,
        action: ArraySpec,
        prompt: str = "",
        states: Sequence[str] | None = None,
    ) -> None:
        """Connect.

        Args:
            url: As in ws://127.0.0.1:8000; other machines are reached through a tunnel.
            action: What the environment takes; the server must answer with as many numbers.
            prompt: What the robot is asked to do.
            states: Observations that make up 'observation/state', in this order; None: all numbers.
        """
        host = _host(url)
        if host not in LOOPBACK:
            raise BadConfig(
                f"{url} is on another machine. The protocol has no protection of its own: make a "
                "tunnel (ssh -L 8000:127.0.0.1:8000 HOST) and name ws://127.0.0.1:8000."
            )
        client = require("websockets.sync.client")
        broken = require("websockets.exceptions").WebSocketException
        self._failures = (OSError, TimeoutError, ValueError, broken)
        self._open, self._url = ExitStack(), url
        try:
            self._socket: Any = self._open.enter_context(
                client.connect(url, compression=None, max_size=MOST_BYTES, open_timeout=PATIENCE_S)
            )
        except self._failures as error:
            raise BadConfig(f"No policy server answers at {url} ({one_line(error)}).") from None
        self._action, self._states = action, states
        self.prompts = [prompt] * rows
        """What the robot of each row is asked to do."""
        try:
            self.metadata = self._receive()
        except ManipleError:
            self.close()
            raise
        self._chunks: list[list[NDArray]] = [[] for _ in range(rows)]

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Forget what is left of the chunks of these rows."""
        for row in np.flatnonzero(rows).tolist():
            self._chunks[row] = []

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the next action of every row."""
        for row, chunk in enumerate(self._chunks):
            if not chunk:
                seen = {name: array[row] for name, array in obs.items()}
                self._chunks[row] = self._ask(seen, self.prompts[row])
        found = np.stack([chunk.pop(0) for chunk in self._chunks])
        return np.clip(found, *self._action.bounds()).astype(self._action.dtype)

    def _ask(self, obs: Mapping[str, NDArray], prompt: str) -> list[NDArray]:
        question = packed({**obs, **_openpi(obs, self._states), "prompt": prompt})
        try:
            self._socket.send(question)
        except self._failures as error:
            raise ManipleError(
                f"The policy server at {self._url} is gone ({one_line(error)})."
            ) from None
        answer = self._receive()
        actions = np.asarray(answer.get("actions") if isinstance(answer, dict) else None)
        if actions.dtype.kind != "f" or actions.ndim != 2 or actions.shape[1] != self._action.size:
            raise ManipleError(
                f"The policy server answered actions of shape {actions.shape} and {actions.dtype}; "
                f"this task takes (steps, {self._action.size}) real numbers."
            )
        if len(actions) < 1:
            raise ManipleError("The policy server answered a chunk without any action.")
        if not np.isfinite(actions).all():
            raise ManipleError("The policy server answered actions that are not finite.")
        return list(actions.reshape(-1, *self._action.shape))

    def _receive(self) -> Any:
        try:
            message = self._socket.recv(timeout=PATIENCE_S)
        except TimeoutError:
            raise ManipleError(
                f"The policy server at {self._url} has been silent for {PATIENCE_S:g} seconds."
            ) from None
        except self._failures as error:
            raise ManipleError(
                f"The policy server at {self._url} is gone ({one_line(error)})."
            ) from None
        if isinstance(message, str):
            # A text is how such servers tell an error.
            raise ManipleError(
                f"The policy server failed: {message.strip().splitlines()[-1][:200]}"
            )
        return unpacked(message)

    def close(self) -> None:
        """Hang up."""
        self._open.close()


def _host(url: str) -> str | None:
    """Return the machine that an address names, refusing what is no address of a server."""
    try:
        parts = urlparse(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadConfig(f"{url} is no address: {one_line(error)}.") from None
    if parts.scheme not in ("ws", "wss") or host is None or port == 0:
        raise BadConfig(f"{url} is no address of a policy server, such as ws://127.0.0.1:8000.")
    return host


def _openpi(obs: Mapping[str, NDArray], states: Sequence[str] | None) -> dict[str, NDArray]:
    """Name cameras and numbers as servers for LIBERO know them."""
    cameras = [a for n, a in obs.items() if n.endswith("_rgb")]
    if states is None:
        states = [n for n, a in obs.items() if a.dtype.kind == "f" and a.ndim < 2]
    for name in states:
        if name not in obs:
            raise unknown("observation", name, obs, "the task's observation space")
    numbers = [np.ravel(obs[name]) for name in states]
    names = ("observation/image", "observation/wrist_image")
    found: dict[str, NDArray] = dict(zip(names, cameras, strict=False))
    if numbers:
        found["observation/state"] = np.concatenate(numbers).astype(np.float32)
    return found
