"""The place where actors leave steps and find weights; it lives on the cluster's head.

Only bytes pass through it: safetensors and JSON, which nobody can hide code in.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

NAME, NAMESPACE = "post", "maniple"
PROTOCOL = 1
"""Changes whenever what is sent changes its meaning."""


class Parcel(NamedTuple):
    """Some vector steps of one actor."""

    actor: str
    number: int
    steps: int
    arrays: bytes
    about: str


class StepQueue:
    """A bounded queue of steps, the newest weights, and who is there."""

    def __init__(self, most_steps: int) -> None:
        self._most_steps = most_steps
        self._queue: deque[Parcel] = deque()
        self._waiting_steps = 0
        self._dropped_steps = 0
        self._last: dict[str, int] = {}
        self._doubles = 0
        self._refused = 0
        self._weights: tuple[int, bytes] = (0, b"")
        self._hello = ""
        self._is_done = False

    def open(self, hello: str) -> None:
        """Say what is learned here; the learner calls this first."""
        self._hello = hello
        self._is_done = False

    def hello(self) -> str:
        """Return what is learned here, as JSON; empty before the learner is there."""
        return self._hello

    def push(self, actor: str, number: int, steps: int, arrays: bytes, about: str) -> bool:
        """Leave steps; tell whether more are wanted.

        The queue is bounded: the oldest steps are dropped, and counted. A parcel that comes
        twice, because its sender could not know that it had arrived, is kept once.
        """
        if not (_is_count(number) and _is_count(steps) and isinstance(arrays, bytes)):
            self._refused += 1
            return not self._is_done
        # What a parcel says of its own length is not trusted: a step has bytes.
        steps = min(steps, len(arrays))
        if number <= self._last.get(actor, -1):
            self._doubles += 1
            return not self._is_done
        self._last[actor] = number
        self._queue.append(Parcel(actor, number, steps, arrays, about))
        self._waiting_steps += steps
        while self._waiting_steps > self._most_steps and len(self._queue) > 1:
            old = self._queue.popleft()
            self._waiting_steps -= old.steps
            self._dropped_steps += old.steps
        return not self._is_done

    def pull(self, most: int) -> list[tuple]:
        """Take up to `most` parcels, the oldest first."""
        taken = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
        self._waiting_steps -= sum(parcel.steps for parcel in taken)
        return [tuple(parcel) for parcel in taken]

    def publish(self, version: int, weights: bytes) -> None:
        """Leave new weights."""
        self._weights = (version, weights)

    def weights(self, have: int) -> tuple[int, bytes] | None:
        """Return the weights if they are others than version `have`."""
        return None if self._weights[0] in (0, have) else self._weights

    def finish(self) -> None:
        """Tell the actors that the learner is done."""
        self._is_done = True

    def stats(self) -> dict[str, Any]:
        """Count what came, waited and was dropped."""
        return {
            "actors": len(self._last),
            "waiting_steps": self._waiting_steps,
            "dropped_steps": self._dropped_steps,
            "doubles": self._doubles,
            "refused": self._refused,
        }


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40
