"""Fan metrics out: to a file of JSON lines, to TensorBoard, and to whoever else listens."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Any

from maniple.core import atomic
from maniple.core.checked_file import check_file
from maniple.core.optional import require
from maniple.run.folder import RunFolder


class JsonLines:
    """One line per report; a kill loses at most the line that was being written."""

    def __init__(self, path: Path, resume_step: int | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume_step is not None and path.exists():
            atomic.write_text(path, "".join(_until(path, resume_step)))
        self._file = path.open("a")

    def __call__(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append a report."""
        line = {"step": step} | {k: _number(v) for k, v in metrics.items()}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TensorBoard:
    """The same numbers as curves in a browser: tensorboard --logdir RUN."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer: Any = EventFileWriter(str(folder))

    def __call__(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add a point to every curve."""
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

        values = [Summary.Value(tag=k, simple_value=float(v)) for k, v in metrics.items()]
        self._writer.add_event(Event(wall_time=time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        """Flush and stop."""
        self._writer.close()


class Wandb:
    """The same numbers at Weights & Biases; WANDB_MODE=offline keeps them in the run folder."""

    def __init__(self, folder: RunFolder, project: str, settings: Mapping[str, Any]) -> None:
        # The same folder is the same run, also after a resume.
        id = hashlib.sha256(str(folder.path.resolve()).encode()).hexdigest()[:12]
        self._run: Any = require("wandb").init(
            project=project, name=folder.path.name, id=id, resume="allow",
            dir=str(folder.path), config=dict(settings),
        )  # fmt: skip

    def __call__(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send a report."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Send what is left."""
        self._run.finish()


class Log:
    """All sinks of a run."""

    def __init__(
        self,
        folder: RunFolder,
        resume_step: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Open them; `settings` may name a project of Weights & Biases, and are shown there."""
        self._sinks: list[Any] = [JsonLines(folder.metrics, resume_step)]
        if settings and settings.get("wandb"):
            self._sinks.append(Wandb(folder, str(settings["wandb"]), settings))
        # The extra 'train' brings it; a run does not fail for want of curves.
        with suppress(ImportError):
            self._sinks.append(TensorBoard(folder.tensorboard))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tell every sink."""
        for sink in self._sinks:
            sink(step, metrics)

    def close(self) -> None:
        """Close every sink."""
        for sink in self._sinks:
            sink.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read metrics back, leaving out lines that are torn or no reports."""
    check_file(path)
    # Line by line: a crash may leave anything at the end.
    with path.open("rb") as file:
        return [found for line in file if (found := read_line(line)) is not None]


def read_line(line: bytes) -> dict[str, Any] | None:
    """Read one report, whatever the bytes; None: it is torn, or none."""
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    is_report = isinstance(found, dict) and isinstance(found.get("step"), int | float)
    return found if is_report else None


def _until(path: Path, step: int) -> list[str]:
    """Lines up to a step: what came after the checkpoint will come again."""
    return [json.dumps(line) + "\n" for line in read_lines(path) if line["step"] <= step]


def _number(value: Any) -> float | None:
    value = float(value)
    return value if math.isfinite(value) else None
