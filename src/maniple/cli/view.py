"""maniple view: a task, a run or a dataset in the browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from maniple.core.errors import BadConfig


@dataclass(frozen=True)
class Options:
    """What to look at, and who may look."""

    subject: Annotated[str, tyro.conf.Positional] = "so101/LiftCube-v0"
    """A task of 'maniple list', a run folder, a folder of runs, or a dataset."""

    num_envs: int = 4
    """Arms that play at once."""

    policy: str | None = None
    """Who acts at first: expert, random, checkpoint or still; None: the best there is."""

    cameras: tuple[str, ...] = ()
    """Cameras whose pictures are part of what is recorded, as in: front wrist."""

    image_size: tuple[int, int] | None = None
    """Height and width of those pictures."""

    control: str | None = None
    """How actions move the robot of a task; None: the task's own way."""

    task: str | None = None
    """The task of a dataset that does not say which one it is."""

    record_to: Path = Path("demos")
    """Folder that is proposed for episodes that you record."""

    runs: Path = Path("runs")
    """Folder whose runs can be followed."""

    seed: int = 0
    """Seed of the first episode."""

    port: int = 8080
    """Port of the page; 0: any that is free."""

    host: str = "127.0.0.1"
    """Address of the page. Others than this machine's own are asked for a token."""

    share_token: str | None = None
    """The token; None: one is made and printed."""

    seconds: float = 0.0
    """Close after so long; 0: when Ctrl-C is pressed."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Serve the page until it is closed."""
    from maniple.core.optional import require
    from maniple.view.subject import find_subject

    require("viser")
    if options.num_envs < 1 or options.seconds < 0:
        raise BadConfig(f"num_envs is {options.num_envs} and seconds is {options.seconds}.")
    subject = find_subject(options.subject, options.task)
    if subject.kind == "dataset":
        return _show_dataset(options, subject)
    return _play(options, subject)


def _play(options: Options, subject: Any) -> dict[str, Any]:
    from maniple.cli.bench.run import pictures
    from maniple.view.live import open_live

    settings = pictures(subject.task, options.cameras, options.image_size)
    if options.control is not None:
        settings["control"] = options.control
    if settings and subject.kind == "run":
        raise BadConfig("A run's environments are as it was trained: leave --cameras, --image-size "
                        "and --control out.")  # fmt: skip
    if not 0 <= options.seed < 2**62:
        raise BadConfig(f"--seed is {options.seed}; give 0 or more, below 2**62.")
    live = open_live(
        subject, options.num_envs, settings, options.seed, _server(options), options.runs,
        options.record_to, options.policy,
    )  # fmt: skip
    try:
        _tell(options, live.page.server.url, live.note)
        frames = live.page.run(_clock(options.seconds))
        answer = {"frames": frames, "episodes": live.page.session.episodes,
                  "latency_ms": live.page.latency_ms()}  # fmt: skip
    finally:
        url = live.page.server.url
        live.close()
    return {"url": url, "kind": subject.kind, "task": subject.task, **answer}


def _show_dataset(options: Options, subject: Any) -> dict[str, Any]:
    from maniple.core.optional import require
    from maniple.view.dataset_page import DatasetPage

    require("pyarrow")
    page = DatasetPage(_server(options), subject.path, subject.task)
    try:
        _tell(options, page.server.url, page.note)
        frames = page.run(_clock(options.seconds))
    finally:
        url = page.server.url
        page.close()
    return {"url": url, "kind": "dataset", "task": subject.task, "frames": frames}


def _server(options: Options) -> Callable[[], Any]:
    """Open the server when everything else is known to work."""
    from maniple.view.server import PageServer

    return lambda: PageServer(options.host, options.port, options.share_token)


def _tell(options: Options, url: str, note: str) -> None:
    if not options.json:
        print(f"{url}  (Ctrl-C ends it)", flush=True)
        if note:
            print(note, flush=True)


def _clock(seconds: float) -> Callable[[], bool]:
    began_s = time.monotonic()
    return lambda: not seconds or time.monotonic() - began_s < seconds
