"""Read lists that are typed with commas, as in 2,4,8."""

from __future__ import annotations

from collections.abc import Iterable

from maniple.core.errors import BadConfig, unknown


def numbers(option: str, text: str) -> list[int]:
    """Return whole numbers from 1 up, sorted, each once."""
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError:
        found = [0]
    if found[0] < 1:
        raise BadConfig(
            f"{option} is {text!r}; give whole numbers from 1 up with commas between, "
            f"as in {option} 2,4,8."
        )
    return found


def names(option: str, text: str, known: Iterable[str]) -> list[str]:
    """Return names out of `known`, each once; 'none' and nothing at all mean no name."""
    known = list(known)
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if words == ["none"]:
        return []
    for word in words:
        if word not in known:
            listing = f"'{option} {','.join(known)}'"
            raise unknown(option.strip("-").rstrip("s"), word, known, listing)
    return words
