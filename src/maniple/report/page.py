"""Write one HTML page that needs no other file."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from maniple.core import atomic

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .7rem;text-align:right}
th{border-bottom:1px solid #999}td:first-child,th:first-child{text-align:left}
.words td,.words th{text-align:left;white-space:nowrap}
.note{background:#fff4e5;border-left:4px solid #e08a00;padding:.5rem .8rem;margin:.5rem 0}
figure{display:inline-block;margin:.5rem 1rem .5rem 0}figcaption{font-size:.85rem;color:#555}
img,video{max-width:100%;image-rendering:pixelated}
"""
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2")
KINDS = {".png": "image/png", ".mp4": "video/mp4"}
Curve = Sequence[tuple[float, float]]


class Page:
    """Collects parts in their order; nothing that is shown can run."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = [f"<h1>{escape(title)}</h1>"]

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def note(self, text: str) -> None:
        """Add a paragraph that nobody overlooks."""
        self._parts.append(f'<div class="note">{escape(text)}</div>')

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[object]], is_words: bool = False
    ) -> None:
        """Add a table; numbers are shortened. Words stand at the left, and in one line."""
        cells = "".join(f"<th>{escape(name)}</th>" for name in head)
        lines = ["".join(f"<td>{escape(_short(value))}</td>" for value in row) for row in rows]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        kind = ' class="words"' if is_words else ""
        self._parts.append(f"<table{kind}><tr>{cells}</tr>{body}</table>")

    def chart(self, title: str, curves: Mapping[str, Curve]) -> None:
        """Add curves in one frame, with the range of both axes written to it."""
        drawn = {name: [(x, y) for x, y in curve if y == y] for name, curve in curves.items()}
        if any(len(curve) > 1 for curve in drawn.values()):
            self._parts.append(_figure(_svg(drawn), title))

    def dots(self, title: str, places: Sequence[tuple[float, float]], size: float) -> None:
        """Add a map: a square for each place."""
        if len(places):
            self._parts.append(_figure(_map(places, size), title))

    def file(self, path: Path, caption: str) -> None:
        """Add a picture or a video, inside the page."""
        kind = KINDS[path.suffix]
        data = f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
        shown = f'<img src="{data}" alt="{escape(caption)}">'
        if kind.startswith("video"):
            shown = f'<video src="{data}" controls loop muted></video>'
        self._parts.append(_figure(shown, caption))

    def write(self, path: Path) -> None:
        """Write the page, whole or not at all."""
        head = f'<meta charset="utf-8"><title>{escape(self._title)}</title><style>{STYLE}</style>'
        body = "\n".join(self._parts)
        atomic.write_text(path, f"<!doctype html><html lang=en>{head}<body>{body}</body></html>\n")


def _figure(shown: str, caption: str) -> str:
    return f"<figure>{shown}<figcaption>{escape(caption)}</figcaption></figure>"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


LEFT, TOP, LINE = 62, 10, 15
"""Room beside and above a chart's frame, and the height of a line of its legend (pixels)."""


def _svg(curves: Mapping[str, Curve], width: int = 440, height: int = 200) -> str:
    points = [point for curve in curves.values() for point in curve]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    across, up = (right - left) or 1.0, (high - low) or 1.0
    frame_w, frame_h = width - LEFT - 8, height - TOP - 20
    lines = []
    for (name, curve), colour in zip(curves.items(), COLOURS * 9, strict=False):
        spots = [
            (LEFT + (x - left) / across * frame_w, TOP + (high - y) / up * frame_h)
            for x, y in curve
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        # The legend stands below, where no curve runs through it.
        place = height + LINE * (len(lines) + 1) - 4
        lines.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            f'<text x="{LEFT}" y="{place}" font-size="11" fill="{colour}">{escape(name)}</text>'
        )
    text = '<text font-size="11" fill="#555" '
    axes = (
        f'{text}x="{LEFT - 4}" y="{TOP + 9}" text-anchor="end">{_mark(high)}</text>'
        f'{text}x="{LEFT - 4}" y="{TOP + frame_h}" text-anchor="end">{_mark(low)}</text>'
        f'{text}x="{LEFT}" y="{height - 6}">{_mark(left)}</text>'
        f'{text}x="{LEFT + frame_w}" y="{height - 6}" text-anchor="end">{_mark(right)}</text>'
        f'<rect x="{LEFT}" y="{TOP}" width="{frame_w}" height="{frame_h}" fill="none" '
        'stroke="#ccc"/>'
    )
    total = height + LINE * len(lines)
    return f'<svg width="{width}" height="{total}">{axes}{"".join(lines)}</svg>'


def _mark(value: float) -> str:
    """A number at an axis: whole ones in full, others short."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"


def _map(places: Sequence[tuple[float, float]], size: float, width: int = 300) -> str:
    xs, ys = [x for x, _ in places], [y for _, y in places]
    across = max(max(xs) - min(xs), max(ys) - min(ys), size) + size
    zoom = width / across
    squares = [
        f'<rect x="{(x - min(xs)) * zoom:.1f}" y="{(max(ys) - y) * zoom:.1f}" '
        f'width="{size * zoom:.1f}" height="{size * zoom:.1f}"/>'
        for x, y in places
    ]
    return f'<svg width="{width}" height="{width}" fill="#1f77b4">{"".join(squares)}</svg>'
