"""Train, with a live table, until it is done or somebody presses Ctrl-C."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import tyro

from maniple.core.optional import require

require("torch")

from maniple.cli.train.screen import Screen  # noqa: E402  (torch is asked for first)
from maniple.learn.cluster import ClusterConfig, make_token  # noqa: E402
from maniple.learn.config import TrainConfig, kind_of  # noqa: E402
from maniple.learn.presets import preset  # noqa: E402
from maniple.run.when import Until  # noqa: E402


@dataclass(frozen=True)
class Options:
    """What to train, and where to keep it."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)

    cluster: Annotated[ClusterConfig, tyro.conf.arg(name="")] = field(default_factory=ClusterConfig)

    run_dir: Path | None = None
    """Folder of the run; None: runs/ALGORITHM-TASK-SEED."""

    checkpoint_path: Path | None = None
    """The same as --run-dir, under the name that older scripts use."""

    resume: bool = False
    """Go on with the run in that folder, exactly where its newest whole checkpoint is."""

    json: bool = False
    """Print one JSON object as the last line."""


def options_for(algorithm: str, words: Sequence[str]) -> Options:
    """Read the task ahead of all else: its known settings are the defaults."""
    return Options(config=preset(algorithm, _task_in(words)))


def run(options: Options) -> dict[str, Any]:
    """Train and sum up."""
    config = options.config
    run_dir = options.run_dir or options.checkpoint_path or _run_dir(config)
    until = Until(config.max_steps, config.max_minutes)
    if options.cluster.role == "actor":
        return act_for_learner(config, options.cluster, until, options.json)
    if options.resume:
        _tell_from_where(run_dir)
    with Screen(config, run_dir, is_quiet=options.json) as screen, _gentle_stop(until):
        result = _train(options, run_dir, screen, until)
    last = result.evaluation
    answer = {
        "algorithm": kind_of(config.agent),
        "task": config.task,
        "seed": config.seed,
        "run_dir": str(result.run_dir),
        "steps": result.steps,
        "updates": result.updates,
        "success_rate": _number(last.success_rate) if last else None,
        "success_ci95": [_number(bound) for bound in last.success_ci95] if last else None,
        "return_mean": last.return_mean if last else None,
        "best": _number(result.best),
        "train_s": round(result.train_s, 2),
        "wall_s": round(result.wall_s, 2),
        "is_stopped": until.is_stopped,
    }
    screen.sum_up(answer)
    return answer


def _train(options: Options, run_dir: Path, screen: Screen, until: Until) -> Any:
    config, role = options.config, options.cluster.role
    if kind_of(config.agent) == "bc":
        from maniple.learn.imitate import imitate

        return imitate(config, run_dir, screen.listen, until)
    if role == "local":
        from maniple.learn.loop import train

        return train(config, run_dir, options.resume, screen.listen, until)
    from maniple.learn.learner import learn_from_actors

    with _one_actor(options) if role == "both" else nullcontext():
        return learn_from_actors(
            config, options.cluster, run_dir, options.resume, screen.listen, until
        )


@contextmanager
def _one_actor(options: Options) -> Iterator[None]:
    """Run an actor beside the learner; it ends with us."""
    import subprocess

    from maniple.core.child import start_child

    config, cluster = options.config, options.cluster
    words = [sys.executable, "-m", "maniple", "train", kind_of(config.agent), "--role", "actor"]
    words += ["--ip", cluster.ip, "--port", str(cluster.port), "--task", config.task]
    words += ["--token-file", str(cluster.token_file), "--num-envs", str(config.num_envs)]
    words += ["--push-steps", str(cluster.push_steps), "--patience-s", str(cluster.patience_s)]
    make_token(cluster.token_file.expanduser())
    actor = start_child(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        try:
            actor.wait(10)
        except subprocess.TimeoutExpired:
            actor.kill()
            actor.wait()


def act_for_learner(
    config: TrainConfig, cluster: ClusterConfig, until: Until, is_quiet: bool
) -> dict[str, Any]:
    """Play for a learner elsewhere until it is done."""
    from maniple.learn.actor import Actor

    # An actor plays as long as it is wanted.
    until.max_steps = sys.maxsize
    with _gentle_stop(until):
        actor = Actor(config, cluster)
        if not is_quiet:
            print(f"actor {actor.name}: {config.num_envs} environments for {cluster.ip}")
        try:
            steps = actor.run(until, lambda step, told: None)
        finally:
            actor.close()
    return {"role": "actor", "actor": actor.name, "task": actor.config.task, "steps": steps}


def _tell_from_where(run_dir: Path) -> None:
    """Say which checkpoint a run goes on from, and which ones are left out."""
    from maniple.run.checkpoint import Checkpoints
    from maniple.run.folder import RunFolder

    shelf = Checkpoints(RunFolder(run_dir).checkpoints)
    found = shelf.latest()
    if found is not None:
        for complaint in shelf.complaints():
            print(f"{complaint}; it is left out.", file=sys.stderr)
        print(f"Going on from {found.path}.", file=sys.stderr)
    elif not shelf.complaints():
        print(f"{run_dir} holds no checkpoint yet: a new run begins.", file=sys.stderr)


def _number(value: float) -> float | None:
    """JSON has neither NaN nor infinity."""
    return value if isfinite(value) else None


def _task_in(words: Sequence[str]) -> str | None:
    for k, word in enumerate(words):
        if word == "--task" and k + 1 < len(words):
            return words[k + 1]
        if word.startswith("--task="):
            return word.partition("=")[2]
    return None


def _run_dir(config: TrainConfig) -> Path:
    task = config.task.replace("/", "-")
    return Path("runs") / f"{kind_of(config.agent)}-{task}-{config.seed}"


@contextmanager
def _gentle_stop(until: Until) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM end the run in good order; the second is immediate."""

    def stop(number: int, frame: Any) -> None:
        if until.is_stopped:
            raise KeyboardInterrupt
        until.stop()

    old = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
