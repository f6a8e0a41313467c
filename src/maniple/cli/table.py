"""Lines of text in columns that are never shortened: names are there to be copied."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, as wide as it has to be; the last column is not padded."""
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    return [_line(row, widths) for row in (head, *rows)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
