"""maniple bench sweep: find the fastest engine and setting here, and compare with peers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maniple.core.atomic import write_text

Row = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What to compare; lists are typed with commas."""

    task: str = "LeRobot-v0"
    """A task of 'maniple list'."""

    num_envs: str = "2,4,8,16,32"
    """Numbers of environments."""

    workers: str = "1,2"
    """Worker processes, of our process engine and of PufferLib."""

    action_chunk: str = "1,16"
    """Actions per call of our engines; the peers can take only one."""

    peers: str = "gymnasium,pufferlib,sb3"
    """Vector environments of others to compare with, or none."""

    cameras: tuple[str, ...] = ()
    """Cameras to draw in every step; none: those that the task draws by itself."""

    image_size: tuple[int, int] | None = None
    """Height and width of pictures; given alone it means the task's first two cameras."""

    renderer: str | None = None
    """What draws them: auto, fast, mujoco, ...; None: the task's choice."""

    steps: int = 5000
    """Control steps of each environment in a turn, at most."""

    seconds: float = 1.0
    """The longest time of a turn."""

    turns: int = 3
    """Measurements of each setting, taken in turns; their median counts."""

    out: Path = Path("sweep")
    """Folder for throughput.jsonl and throughput.png."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Measure every setting, write the rows and the picture, name the best."""
    from maniple.cli.bench.contender import OURS
    from maniple.cli.bench.folder import made
    from maniple.core.optional import require
    from maniple.core.rank import Rank

    rounds, missing = _plan(options)
    # What is missing is reported before minutes are spent.
    require("matplotlib")
    out = made(options.out)
    cores = Rank.here().num_cpus()
    rows, failed = _measure(rounds, options, out / "throughput.jsonl")
    answer: dict[str, Any] = {
        "ok": not any(one["engine"] in OURS for one in failed),
        "task": options.task,
        "cores": cores,
        "rows": rows,
        "not_installed": missing,
        "failed": failed,
        "best": _best(options.task, rows),
        "by_num_envs": _by_num_envs(rows),
        "files": [str(out / "throughput.jsonl")],
    }
    if rows:
        from maniple.cli.bench.chart import draw

        title = f"{options.task}: env-steps per second on {cores} cores"
        draw(rows, title, out / "throughput.png")
        answer["files"].append(str(out / "throughput.png"))
        answer["files"] += _per_workers(rows, title, out)
    _show(answer, sys.stderr if options.json else sys.stdout)
    return answer


def _per_workers(rows: list[Row], title: str, out: Path) -> list[str]:
    """Where several numbers of workers were measured, write a picture and the rows of each."""
    from maniple.cli.bench.chart import draw

    counts = sorted({row["workers"] for row in rows if row["workers"]})
    files: list[str] = []
    for count in counts if len(counts) > 1 else ():
        # Engines without workers are in every picture, to compare with.
        mine = [row for row in rows if row["workers"] in (None, 0, count)]
        path = out / f"throughput-{count}-workers.jsonl"
        write_text(path, "".join(json.dumps(row) + "\n" for row in mine))
        draw(mine, f"{title}, {count} workers", path.with_suffix(".png"))
        files += [str(path), str(path.with_suffix(".png"))]
    return files


def _plan(options: Options) -> tuple[list[list[Any]], list[dict[str, str]]]:
    """Return the contenders at each number of environments, and the peers that are missing."""
    from maniple.cli.bench.contender import RAW, Contender, ours, peers_of
    from maniple.cli.bench.lists import names, numbers
    from maniple.cli.bench.peers import PEERS, TYPE_THIS, is_installed
    from maniple.core.errors import BadConfig
    from maniple.registry import find

    find(options.task)
    counts = numbers("--num-envs", options.num_envs)
    workers = numbers("--workers", options.workers)
    chunks = numbers("--action-chunk", options.action_chunk)
    wanted = names("--peers", options.peers, PEERS)
    for name in ("steps", "turns", "seconds"):
        if not getattr(options, name) > 0:
            raise BadConfig(f"--{name} is {getattr(options, name)}; give more than 0.")
    here = [peer for peer in wanted if is_installed(peer)]
    missing = [{"peer": p, "type_this": TYPE_THIS.get(p, "")} for p in wanted if p not in here]
    rounds = []
    drawn = _env_options(options)
    for count in counts:
        contenders = [
            Contender(options.task, RAW, RAW, count),
            *ours(options.task, count, workers, chunks, drawn),
        ]
        for peer in here:
            contenders += peers_of(options.task, count, workers, peer, drawn)
        rounds.append(contenders)
    return rounds, missing


def _env_options(options: Options) -> str:
    """Return what is drawn, as JSON: what was asked for, else what the task draws by itself."""
    from maniple.cli.bench.run import pictures
    from maniple.registry import find

    own = getattr(find(options.task), "defaults", {})
    drawn = {name: own[name] for name in ("cameras", "image_size", "renderer") if name in own}
    drawn |= pictures(options.task, options.cameras, options.image_size)
    return json.dumps(drawn | ({"renderer": options.renderer} if options.renderer else {}))


def _measure(
    rounds: list[list[Any]], options: Options, path: Path
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return the rows, which are also written one by one, and the contenders that failed."""
    from maniple.cli.bench.interleave import interleave
    from maniple.cli.progress import bar

    rows: list[Row] = []
    failed: list[dict[str, Any]] = []
    total = sum(map(len, rounds)) * options.turns
    with path.open("w") as file, bar("sweep", total, not options.json) as tick:
        for contenders in rounds:
            for result in interleave(
                contenders, options.turns, options.steps, options.seconds, tick
            ):
                if result.failure:
                    one = result.contender
                    about = {"engine": one.engine, "setting": one.setting}
                    failed.append({**about, "num_envs": one.num_envs, "why": result.failure})
                    continue
                rows.append(result.row())
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    return rows, failed


def _best(task: str, rows: list[Row]) -> list[Row]:
    """Return our fastest setting for single actions, and for chunks where those were measured."""
    from maniple.cli.bench.contender import OURS

    best = []
    for is_chunk in (False, True):
        mine = [r for r in rows if r["engine"] in OURS and (r["action_chunk"] > 1) == is_chunk]
        if mine:
            row = max(mine, key=lambda r: r["env_steps_per_s"])
            best.append({**row, "type_this": _call(task, row)})
    return best


def _by_num_envs(rows: list[Row]) -> list[Row]:
    """Return our fastest setting at each number of environments, without chunks."""
    from maniple.cli.bench.contender import OURS

    mine = [row for row in rows if row["engine"] in OURS and row["action_chunk"] == 1]
    counts = sorted({row["num_envs"] for row in mine})
    best = [
        max((r for r in mine if r["num_envs"] == count), key=lambda r: r["env_steps_per_s"])
        for count in counts
    ]
    first = best[0]["env_steps_per_s"] if best else 1.0
    return [{**row, "speed_up": round(row["env_steps_per_s"] / first, 2)} for row in best]


def _call(task: str, row: Row) -> str:
    words = [repr(task), str(row["num_envs"]), f"engine={row['engine']!r}"]
    if row["workers"]:
        words.append(f"workers={row['workers']}")
    if row["action_chunk"] > 64:
        words.append(f"max_chunk={row['action_chunk']}")
    return f"envs = maniple.make_vec({', '.join(words)})".replace("'", '"')


def _show(answer: dict[str, Any], file: Any) -> None:
    from rich.console import Console
    from rich.markup import escape

    # A pipe has no width: without one the table would be cut at 80 columns.
    console = Console(file=file, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 160
    console.print(_table(answer))
    console.print()
    console.print(_counts_table(answer))
    for one in answer["not_installed"]:
        note = f"{one['peer']} is not installed. Type: {one['type_this']}"
        console.print(escape(note), style="yellow")
    for one in answer["failed"]:
        where = " ".join(filter(None, (one["engine"], one["setting"])))
        console.print(escape(f"{where}, {one['num_envs']} envs: {one['why']}"), style="red")
    for row in answer["best"]:
        chunk, rate = row["action_chunk"], row["env_steps_per_s"]
        how = f"in chunks of {chunk} actions" if chunk > 1 else "step by step"
        act = "step_chunk" if chunk > 1 else "step"
        console.print(f"\nFastest here {how}: {rate:,.0f} env-steps/s")
        console.print(escape(f"  {row['type_this']}; envs.{act}(actions)"), style="bold")
    console.print()
    for name in answer["files"]:
        console.print(f"look at  {name}")


def _table(answer: dict[str, Any]) -> Any:
    from rich.table import Table

    counts = sorted({row["num_envs"] for row in answer["rows"]})
    title = f"{answer['task']}, env-steps/s on {answer['cores']} cores"
    table = Table(title=title, box=None, title_justify="left")
    table.add_column("engine")
    table.add_column("setting")
    for count in counts:
        table.add_column(f"{count} envs", justify="right")
    for (engine, setting), rates in _lines(answer["rows"]):
        cells = [f"{rates[c]:,.0f}" if c in rates else "" for c in counts]
        table.add_row(engine, setting, *cells)
    return table


def _counts_table(answer: dict[str, Any]) -> Any:
    """How much each number of environments brings, and what it costs."""
    from rich.table import Table

    from maniple.learn.cluster import ClusterConfig

    rows = answer["by_num_envs"]
    table = Table(title="Our fastest engine, step by step", box=None, title_justify="left")
    for name in ("envs", "engine", "env-steps/s", "speed-up", "images/s", "memory MB", "queue"):
        table.add_column(name, justify="left" if name == "engine" else "right")
    fastest = max((row["env_steps_per_s"] for row in rows), default=0.0)
    for row in rows:
        memory = "" if row["memory_mb"] is None else f"{row['memory_mb']:,.0f}"
        images = f"{row['images_per_s']:,.0f}" if row["images_per_s"] else ""
        engine = " ".join(filter(None, (row["engine"], row["setting"])))
        best = "  best here" if row["env_steps_per_s"] == fastest else ""
        table.add_row(
            str(row["num_envs"]), engine + best, f"{row['env_steps_per_s']:,.0f}",
            f"{row['speed_up']:.2f}", images, memory, f"{ClusterConfig.queue_steps:,}",
        )  # fmt: skip
    table.caption = "queue: steps of actors that a learner keeps waiting (--queue-steps)"
    return table


def _lines(rows: list[Row]) -> Iterator[tuple[tuple[str, str], dict[int, float]]]:
    """Group by engine and setting, in the order of the rows."""
    lines: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        line = lines.setdefault((row["engine"], row["setting"]), {})
        line[row["num_envs"]] = row["env_steps_per_s"]
    # Some settings need many environments and come late: keep the lines of an engine together.
    order = list(dict.fromkeys(engine for engine, _ in lines))
    yield from sorted(lines.items(), key=lambda item: order.index(item[0][0]))
