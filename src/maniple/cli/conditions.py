"""Read which perturbations are meant: 'light=0.4,camera', or 'all'."""

from __future__ import annotations

NONE, ALL = "none", "all"
CLEAN = "clean"

Perturb = dict[str, float]


def conditions(text: str) -> dict[str, Perturb]:
    """Return every condition by name: 'clean', and one for each perturbation.

    A comma separates conditions; a plus sign joins perturbations to one.
    """
    found: dict[str, Perturb] = {CLEAN: {}}
    for word in _words(text):
        perturb: Perturb = {}
        for part in word.split("+"):
            perturb |= _read(part)
        found[" + ".join(f"{kind} {far:g}" for kind, far in perturb.items())] = perturb
    return found


def together(text: str) -> Perturb:
    """Return all perturbations of a text as one."""
    joined: Perturb = {}
    for perturb in conditions(text).values():
        joined |= perturb
    return joined


def _words(text: str) -> list[str]:
    from maniple.sim.perturbation import USUAL

    if text == NONE:
        return []
    return list(USUAL) if text == ALL else [word for word in text.split(",") if word]


def _read(part: str) -> Perturb:
    from maniple.core.errors import BadConfig
    from maniple.sim.perturbation import USUAL, axis_of, check_kinds, checked

    word, equals, number = part.strip().partition("=")
    kind = axis_of(word)
    check_kinds([kind])
    try:
        far = float(number) if equals else USUAL[kind]
    except ValueError:
        raise BadConfig(f"--perturb says {part!r}; give a number, as in {kind}=0.1.") from None
    return dict(checked({kind: far}))
