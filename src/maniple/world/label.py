"""Write small capitals into pictures, so that panels say what they show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FONT = {
    "A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644",
    "G": "34553", "H": "55755", "I": "72227", "L": "44447", "M": "57755", "N": "65555",
    "O": "25552", "P": "65644", "R": "65655", "S": "34216", "T": "72222", "U": "55553",
    "V": "55522", "X": "55255", "Y": "55222", "0": "25552", "1": "26227", "2": "61247",
    "3": "61216", "4": "55711", "5": "74616", "6": "34652", "7": "71122", "8": "25252",
    "9": "25316", "-": "00700", "=": "07070", "+": "02720", ".": "00002", " ": "00000",
}  # fmt: skip
"""Every letter is five rows of three pixels; a digit has the bits of one row."""
HEIGHT = 11


def label(text: str, width: int, zoom: int = 1) -> NDArray[np.uint8]:
    """Return a strip of `width` pixels, dark on light, with the text at its left."""
    strip = np.zeros((7, max(width // zoom + 1, 1)), np.bool_)
    for k, letter in enumerate(text.upper()):
        rows = [[int(d) >> (2 - c) & 1 for c in range(3)] for d in _FONT.get(letter, "77777")]
        at = 2 + 4 * k
        if at + 3 > strip.shape[1]:
            break
        strip[1:6, at : at + 3] = rows
    large = np.repeat(np.repeat(strip, zoom, 0), zoom, 1)[:, :width]
    return np.where(large[..., None], 20, 235).astype(np.uint8).repeat(3, -1)
