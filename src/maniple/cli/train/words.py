"""Read single options ahead of all others: the defaults of the rest depend on them."""

from __future__ import annotations

from collections.abc import Sequence


def value_of(words: Sequence[str], flag: str) -> str | None:
    """Return what follows the last of a flag, with dashes or underscores; None: it is not there."""
    found = None
    for k, word in enumerate(words):
        head, equals, tail = word.partition("=")
        if head.replace("_", "-") == flag:
            found = tail if equals else (words[k + 1] if k + 1 < len(words) else None)
    return found
