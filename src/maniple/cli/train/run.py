"""Train, with a live table, until it is done or somebody presses Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import tyro

from maniple.cli.train.screen import Screen
from maniple.cli.train.words import value_of
from maniple.core.child import python_module, start_child
from maniple.core.errors import BadConfig
from maniple.core.lookup import load
from maniple.core.rank import Rank
from maniple.learn.algorithms import ALGORITHMS
from maniple.learn.cluster import ClusterConfig, make_token
from maniple.learn.config import TrainConfig, algorithm_of, config_of, preset
from maniple.registry import BACKENDS, canonical
from maniple.run.checkpoint import Checkpoints
from maniple.run.folder import RunFolder
from maniple.run.run import Result
from maniple.run.stop import Stop


@dataclass(frozen=True)
class Options:
    """What to train, and where to keep it."""

    # The agent's settings are flags of the verb itself: the verb has chosen the agent.
    config: Annotated[TrainConfig, tyro.conf.arg(name=""), tyro.conf.AvoidSubcommands] = field(
        default_factory=TrainConfig
    )

    cluster: Annotated[ClusterConfig, tyro.conf.OmitArgPrefixes] = field(
        default_factory=ClusterConfig
    )

    run_dir: Path | None = None
    """Folder of the run; None: runs/ALGORITHM-TASK-SEED."""

    checkpoint_path: Path | None = None
    """The same as --run-dir, under the name that older scripts use."""

    resume: bool = False
    """Go on with the run in that folder, exactly where its newest whole checkpoint is."""

    json: bool = False
    """Print one JSON object as the last line."""


SERL_ROLES = {"--actor": ("--role", "actor"), "--learner": ("--role", "learner")}


def prepare(verb: str, words: list[str]) -> list[str]:
    """Take spellings that people have in their scripts: SERL's, and those of versions before."""
    words = [word for word in words if not word.startswith("agent:")]
    words = [part for word in words for part in SERL_ROLES.get(word, (word,))]
    spellings = {"--env": "--task"}
    if verb == "train bc":
        spellings |= {"--max-steps": "--max-updates", "--max_steps": "--max-updates"}
    parts = [word.partition("=") for word in words]
    return [spellings.get(head, head) + equals + tail for head, equals, tail in parts]


def defaults(verb: str, words: Sequence[str]) -> Options:
    """Read the task ahead of all else: its known settings are the defaults.

    With --resume the settings of the run that is there are.
    """
    algorithm = verb.split()[1]
    backend = value_of(words, "--backend")
    backend = backend if backend in BACKENDS else "mujoco"
    demo_path = value_of(words, "--demo-path")
    demo_path = None if demo_path in ("", "None") else demo_path
    config = preset(algorithm, value_of(words, "--task"), backend, demo_path)
    if "--resume" in words:
        config = config.replace(seed=_seed_in(words))
        named = value_of(words, "--run-dir") or value_of(words, "--checkpoint-path")
        folder = RunFolder(named or _run_dir(config))
        if folder.is_used:
            config = config_of(folder.config())
            if algorithm_of(config) != algorithm:
                raise BadConfig(
                    f"{folder.path} is a run of {algorithm_of(config)}: go on with 'maniple train "
                    f"{algorithm_of(config)} --resume --run-dir {folder.path}'."
                )
    return Options(config=config)


def run(options: Options) -> dict[str, Any]:
    """Train and sum up."""
    config = options.config
    run_dir = options.run_dir or options.checkpoint_path or _run_dir(config)
    stop = Stop(config.run.max_steps, config.run.max_updates, config.run.max_minutes)
    if options.cluster.role == "actor":
        return act_for_learner(config, options.cluster, options.json)
    if options.resume and Rank.here().is_main:
        _tell_from_where(run_dir)
    with Screen(config, run_dir, is_quiet=options.json) as screen, stop.on_signals():
        result = _train(options, run_dir, screen, stop)
    last = result.evaluation
    answer = {
        "algorithm": algorithm_of(config),
        "task": config.run.task,
        "seed": config.run.seed,
        "run_dir": str(result.run_dir),
        "steps": result.steps,
        "updates": result.updates,
        "success_rate": _number(last.success_rate) if last else None,
        "success_ci95": [_number(bound) for bound in last.success_ci95] if last else None,
        "return_mean": last.return_mean if last else None,
        "best": _number(result.best),
        "train_s": round(result.train_s, 2),
        "wall_s": round(result.wall_s, 2),
        # torchrun takes any other code than 0 for a failure of its own.
        "is_stopped": result.stopped_by == "asked" and "TORCHELASTIC_RUN_ID" not in os.environ,
        "stopped_by": result.stopped_by,
    }
    screen.sum_up(answer)
    if answer["is_stopped"]:
        words = f"maniple train {answer['algorithm']} --resume --run-dir {answer['run_dir']}"
        print(f"stopped; go on with: {words}", file=sys.stderr)
    return answer


def _train(options: Options, run_dir: Path, screen: Screen, stop: Stop) -> Result:
    config, role = options.config, options.cluster.role
    if role == "local":
        train = load(ALGORITHMS[algorithm_of(config)].loop)
        return train(config, run_dir, options.resume, screen.listen, stop)
    if algorithm_of(config) == "bc":
        raise BadConfig("Imitation needs no actors: leave --role out.")
    if Rank.here().world_size > 1:
        raise BadConfig("A learner with actors is one process: start it without torchrun.")
    from maniple.learn.ray_learner import train

    if role == "learner":
        words = f"maniple train {algorithm_of(config)} --role actor --ip {options.cluster.ip}"
        port = f" --port {options.cluster.port}"
        print(f"Steps come from actors; start them with: {words}{port}", file=sys.stderr)
    with _one_actor(options) if role == "both" else nullcontext():
        return train(config, options.cluster, run_dir, options.resume, screen.listen, stop)


@contextmanager
def _one_actor(options: Options) -> Iterator[None]:
    """Run an actor beside the learner; it ends with us."""
    import subprocess

    config, cluster = options.config, options.cluster
    words = python_module("maniple", "train", algorithm_of(config), "--role", "actor")
    words += ["--ip", cluster.ip, "--port", str(cluster.port), "--task", config.run.task]
    words += ["--token-file", str(cluster.token_file)]
    words += ["--num-envs", str(config.machine.num_envs)]
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


def act_for_learner(config: TrainConfig, cluster: ClusterConfig, is_quiet: bool) -> dict[str, Any]:
    """Play for a learner elsewhere until it is done."""
    from maniple.learn.actor import Actor

    where = f"{cluster.ip}:{cluster.port}"
    print(f"Looking for a learner at {where} (it is started with --role learner).", file=sys.stderr)
    # An actor plays as long as it is wanted.
    stop = Stop(max_minutes=config.run.max_minutes)
    stop.begin()
    with stop.on_signals(), closing(Actor(config, cluster)) as actor:
        if not is_quiet:
            print(f"actor {actor.name}: {config.machine.num_envs} environments for {cluster.ip}")
        steps = actor.run(stop)
    return {"role": "actor", "actor": actor.name, "task": actor.config.run.task, "steps": steps}


def _tell_from_where(run_dir: Path) -> None:
    """Say which checkpoint a run goes on from, and which ones are left out."""
    found, torn = Checkpoints(RunFolder(run_dir).checkpoints).latest_and_torn()
    if found is not None:
        for complaint in torn:
            print(f"{complaint}; it is left out.", file=sys.stderr)
        print(f"Going on from {found.path}.", file=sys.stderr)
    elif not torn:
        print(f"{run_dir} holds no checkpoint yet: a new run begins.", file=sys.stderr)


def _number(value: float) -> float | None:
    """JSON has neither NaN nor infinity."""
    return value if isfinite(value) else None


def _seed_in(words: Sequence[str]) -> int:
    seed = value_of(words, "--seed") or ""
    return int(seed) if seed.isdigit() else 0


def _run_dir(config: TrainConfig) -> Path:
    task = canonical(config.run.task).replace("/", "-").replace(":", "-")
    return Path("runs") / f"{algorithm_of(config)}-{task}-{config.run.seed}"
