"""Refuse what other web pages ask of a server on loopback, which a browser lets them ask."""

from __future__ import annotations

import hmac
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

HERE = ("localhost", "127.0.0.1", "::1")
PASS = "X-Maniple-Pass"
"""Header with which a gate of ours says that it has let somebody in."""
REFUSAL = "This page answers only to itself. Open the address that 'maniple view' has printed.\n"


def is_own(headers: Any, secret: str | None) -> bool:
    """Tell whether a request comes from the page itself, from no page, or through the gate.

    Args:
        headers: Of the request.
        secret: What the gate says in PASS; None: there is no gate.
    """
    if secret is not None:
        return hmac.compare_digest(headers.get(PASS, "").encode(), secret.encode())
    host = headers.get("Host", "")
    # A name that somebody else's server gives this machine is not ours.
    if urlsplit(f"//{host}").hostname not in HERE:
        return False
    origin = headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == host


@contextmanager
def only_own_pages(secret: str | None) -> Iterator[None]:
    """Have servers of websockets that start in this block answer to their own pages only.

    viser starts one, and has no setting for this.
    """
    from websockets.asyncio import server

    plain = server.serve

    def serve(*args: Any, process_request: Any = None, **options: Any) -> Any:
        async def check(connection: Any, request: Any) -> Any:
            if not is_own(request.headers, secret):
                return connection.respond(HTTPStatus.FORBIDDEN, REFUSAL)
            answer = process_request(connection, request) if process_request else None
            return await answer if inspect.isawaitable(answer) else answer

        return plain(*args, process_request=check, **options)

    server.serve = serve  # type: ignore[assignment]
    try:
        yield
    finally:
        server.serve = plain
