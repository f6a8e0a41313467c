"""Lay pictures out as cards with a name above each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.data.video import tile

STRIP, GAP, LINE = 18, 6, 2
"""Height of the strip that a name stands in; white room after a card, and after a picture in it."""
INK = (34, 34, 34)


def contact_sheet(
    cards: Mapping[str, Sequence[NDArray[np.uint8]]], columns: int = 3
) -> NDArray[np.uint8]:
    """Return one picture of all cards; all of their pictures have one size.

    Names are written where Pillow is installed; without it their strips stay white.
    """
    most = max(len(shots) for shots in cards.values())
    made = [
        _card(name, [*shots, *[shots[-1]] * (most - len(shots))]) for name, shots in cards.items()
    ]
    return tile(made, min(columns, len(made)))


def stacked(sheets: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Put sheets below each other, narrow ones filled up with white."""
    width = max(sheet.shape[1] for sheet in sheets)
    wide = [
        np.pad(sheet, ((0, 0), (0, width - sheet.shape[1]), (0, 0)), constant_values=255)
        for sheet in sheets
    ]
    return np.concatenate(wide, axis=0)


def _card(name: str, shots: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    apart = [np.pad(shot, ((0, 0), (0, LINE), (0, 0)), constant_values=255) for shot in shots]
    picture = np.concatenate(apart, axis=1)
    strip = _lettered(name, picture.shape[1])
    card = np.concatenate([strip, picture], axis=0)
    return np.pad(card, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)


def _lettered(text: str, width: int) -> NDArray[np.uint8]:
    """Return a white strip with a line of text, shrunk where it is too long."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        return np.full((STRIP, width, 3), 255, np.uint8)
    strip = Image.new("RGB", (width, STRIP), "white")
    draw = ImageDraw.Draw(strip)
    for size in range(13, 6, -1):
        font = ImageFont.load_default(size)
        if draw.textlength(text, font=font) <= width - 4:
            break
    draw.text((2, 1), text, fill=INK, font=font)
    return np.asarray(strip)
