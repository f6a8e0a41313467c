"""Run one phase of the world-model pipeline as its users type it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from maniple.cli.train.console import Console
from maniple.cli.train.phase_options import OPTIONS, PhaseOptions
from maniple.cli.train.words import value_of
from maniple.core.child import python_module, start_child
from maniple.core.errors import BadConfig
from maniple.core.lookup import load
from maniple.core.rank import Rank
from maniple.run.checkpoint import MANIFEST, Checkpoints
from maniple.run.folder import RunFolder
from maniple.run.stop import Stop
from maniple.world.config import (
    PHASES,
    EnvironmentConfig,
    WorldConfig,
    config_of,
    read_config,
    read_sections,
)
from maniple.world.origin import split_phase
from maniple.world.phase import NAMES, check_settings, rounds_of, run_dir

TRAINERS = {
    "teacher": "maniple.world.teach:train",
    "student": "maniple.world.explore:train",
    "adversarial": "maniple.world.oppose:train",
}
SPELLINGS = {
    "run-dir": "output-dir",
    "gradient-accumulation-steps": "gradient-accumulation",
    "lr": "learning-rate",
}
"""Other words for settings."""
TEACHERS = {
    ("student", "teacher-checkpoint"): "teacher-path",
    ("adversarial", "teacher-path"): "teacher-checkpoint",
}
"""Both phases take the teacher by either name."""
TRUTHS = {"true": True, "false": False}
"""Values that a switch may have, which is a flag without one."""


def options_of(verb: str) -> type[PhaseOptions]:
    """Return the options of a phase."""
    return OPTIONS[verb.split()[1]]


def prepare(verb: str, words: list[str]) -> list[str]:
    """Bring what people type to the flags that exist.

    Two numbers in front are GPUs and environments; dashes and underscores are alike; a setting
    may be named with its section or without, with dashes in front or as section.name=value.
    """
    numbers = []
    while words and words[0].isdigit() and len(numbers) < 2:
        numbers.append(words[0])
        words = words[1:]
    flags = ("--num-gpus", "--num-envs")
    placed = [word for pair in zip(flags, numbers, strict=False) for word in pair]
    options = options_of(verb)
    sections = _sections(options)
    switches = _switches(options)
    prepared = [_flag(word, options.phase, sections, switches) for word in words]
    return placed + _with_resume_folder(prepared)


def _sections(options: type[PhaseOptions]) -> dict[str, list[str]]:
    """Return the names in every section of settings."""
    kinds = {f.name: f.default_factory for f in fields(options)}
    return {
        name: [f.name for f in fields(kind)] for name, kind in kinds.items() if is_dataclass(kind)
    }


def _switches(options: type[PhaseOptions]) -> set[str]:
    """Return the names of all settings that are true or false."""
    tables: list[Any] = [f.default_factory for f in fields(options)]
    tables = [options, *(table for table in tables if is_dataclass(table))]
    return {f.name.replace("_", "-") for table in tables for f in fields(table) if f.type == "bool"}


def _flag(word: str, phase: str, sections: dict[str, list[str]], switches: set[str]) -> str:
    """Return the flag that a word means; a word that is no flag stays as it is."""
    head, equals, tail = word.partition("=")
    is_dotted = bool(equals) and head.partition(".")[0] in sections
    if not head.startswith("--") and not is_dotted:
        return word
    name = head.removeprefix("--").replace("_", "-")
    is_off, name = name.startswith("no-"), name.removeprefix("no-")
    name = _placed(SPELLINGS.get(name, name), phase, sections)
    if tail.lower() in TRUTHS and name.rpartition(".")[2] in switches:
        is_off, equals, tail = is_off == TRUTHS[tail.lower()], "", ""
    if is_off:
        section, dot, last = name.rpartition(".")
        name = f"{section}{dot}no-{last}"
    return f"--{name}{equals}{tail}"


def _placed(name: str, phase: str, sections: dict[str, list[str]]) -> str:
    """Put a setting's section in front of it, or take it away, as the flags have it."""
    name = TEACHERS.get((phase, name), name)
    section, dot, rest = name.partition(".")
    if dot:
        return rest if section in sections and section not in PHASES else name
    own = [field.replace("_", "-") for field in sections.get(phase, ())]
    return f"{phase}.{name}" if name in own else name


def _with_resume_folder(words: list[str]) -> list[str]:
    """'--resume FOLDER' names where to go on; alone it is a switch."""
    made: list[str] = []
    for k, word in enumerate(words):
        follows = k + 1 < len(words) and not words[k + 1].startswith("-")
        if word == "--resume" and follows:
            made += ["--resume", "--resume-from"]
        elif word.startswith("--resume="):
            made += ["--resume", "--resume-from", word.partition("=")[2]]
        else:
            made.append(word)
    return made


def defaults(verb: str, words: Sequence[str]) -> PhaseOptions:
    """Read --config, or the settings of the run that is resumed, ahead of all else."""
    options = options_of(verb)
    config = _settings(options.phase, words)
    names = {f.name for f in fields(options)}
    own = {f.name: getattr(config, f.name) for f in fields(config) if f.name in names}
    return options(**own, typed=tuple(words))


def _settings(phase: str, words: Sequence[str]) -> WorldConfig:
    """Return all settings before flags come on top, also those of the other phases."""
    config = WorldConfig()
    if named := value_of(words, "--config"):
        config = read_config(Path(named))
    if "--resume" in words or "--auto-resume" in words:
        folder = _resumed(phase, config, words)
        if folder.is_used:
            other, settings = split_phase(folder.config())
            if other not in ("", phase):
                raise BadConfig(
                    f"{folder.path} is a run of phase {other!r}: go on with 'maniple train {other} "
                    f"--resume --output-dir {folder.path}'."
                )
            config = config_of(settings, str(folder.path / "config.yaml"))
            own = replace(getattr(config, phase), output_dir=folder.path)
            config = replace(config, **{phase: own})
        elif value_of(words, "--resume-from"):
            raise BadConfig(
                f"{folder.path} holds no run: there is no whole checkpoint to go on from."
            )
    return config


def _given(words: Sequence[str], goes_on: bool) -> set[str]:
    """Name the settings of the environment that somebody chose, be it the default."""
    names = {f.name for f in fields(EnvironmentConfig)}
    if goes_on:
        return names
    given = {word.partition("=")[0][2:].removeprefix("no-").replace("-", "_")
             for word in words if word.startswith("--")}  # fmt: skip
    if named := value_of(words, "--config"):
        given |= (read_sections(Path(named)).get("environment") or {}).keys()
    return given & names


def _resumed(phase: str, config: WorldConfig, words: Sequence[str]) -> RunFolder:
    named = value_of(words, "--resume-from") or value_of(words, f"--{phase}.output-dir")
    path = Path(named) if named else run_dir(config, phase)
    if (path / MANIFEST).exists():
        newest = Checkpoints(path.parent, names=NAMES).latest()
        if newest is not None and newest.path.resolve() != path.resolve():
            raise BadConfig(
                f"{path} is not the newest checkpoint of its run, {newest.path.name} is: going on "
                "from the older one would overwrite it. Copy the run, and remove the newer ones."
            )
        path = path.parent
    return RunFolder(path, NAMES)


def run(options: PhaseOptions) -> dict[str, Any]:
    """Start ranks where several are wanted, or train in this process; then sum up."""
    phase = options.phase
    own = {f.name: getattr(options, f.name) for f in fields(WorldConfig)
           if hasattr(options, f.name)}  # fmt: skip
    config = replace(_settings(phase, options.typed), **own)
    folder = run_dir(config, phase)
    is_resumed = options.resume or options.auto_resume
    _check_gpus(options.num_gpus, config.training.device)
    check_settings(config, phase)
    if (options.num_gpus or 1) > 1 and "WORLD_SIZE" not in os.environ:
        if not is_resumed:
            RunFolder(folder).check_free()
        return _start_ranks(options.num_gpus or 1, phase, options.typed, folder)
    newest = Checkpoints(folder, names=NAMES).latest() if is_resumed else None
    if options.resume and newest is None:
        raise BadConfig(
            f"{folder} holds no whole checkpoint to go on from. Begin without --resume, or take "
            "--auto-resume, which begins where nothing is."
        )
    train = load(TRAINERS[phase])
    if newest is not None and newest.step >= rounds_of(config, phase) and Rank.here().is_main:
        print(f"already at episode {newest.step}; nothing to do. Ask for more with --num-episodes.",
              file=sys.stderr)  # fmt: skip
    # A teacher sets how the environments look; the others take that over unless told otherwise.
    goes_on = is_resumed and RunFolder(folder).is_used
    more = {} if phase == "teacher" else {"given": _given(options.typed, goes_on)}
    stop = Stop(rounds_of(config, phase), None, config.training.max_minutes)
    with Console(phase, config, folder, options.json) as console, stop.on_signals():
        result = train(config, is_resumed, console.listen, stop, options.num_gpus, **more)
    answer = {
        "phase": phase,
        "task": console.environment().task,
        "seed": config.training.seed,
        "run_dir": str(result.run_dir),
        "episodes": result.steps,
        "updates": result.updates,
        "world_size": Rank.here().world_size,
        "train_s": round(result.train_s, 2),
        "stopped_by": result.stopped_by,
        "is_stopped": result.stopped_by == "asked" and "TORCHELASTIC_RUN_ID" not in os.environ,
        **{k: v for k, v in console.last.items() if isfinite(v) and "/" in k and "clock" not in k},
    }
    console.sum_up(answer)
    return answer


def _check_gpus(wanted: int | None, device: str) -> None:
    """Refuse more GPUs than can be seen; on a machine without any, they are processes."""
    if wanted is None:
        return
    if wanted < 1:
        raise BadConfig(f"num_gpus is {wanted}; it must be 1 or larger.")
    visible = torch.cuda.device_count() if torch.cuda.is_available() and device != "cpu" else 0
    if visible and wanted > visible:
        raise BadConfig(
            f"{wanted} GPUs were asked for, and {visible} can be seen. Ask for {visible}, or "
            "change CUDA_VISIBLE_DEVICES."
        )


def _start_ranks(count: int, phase: str, typed: Sequence[str], folder: Path) -> dict[str, Any]:
    """Start this very command once per rank under torchrun, and wait for it."""
    typed = ["train", phase, *typed]
    words = ["--standalone", "--nproc-per-node", str(count), "-m", "maniple", *typed]
    command = python_module("torch.distributed.run", *words)
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    agent = start_child(command, signal.SIGTERM, env=environment)
    asked: list[int] = []

    def forward(number: int, _: Any) -> None:
        asked.append(number)
        agent.send_signal(number)

    handlers = {s: signal.signal(s, forward) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = agent.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    is_stopped = bool(asked)
    newest = Checkpoints(folder, names=NAMES).latest()
    if is_stopped and newest is not None:
        again = f"maniple train {phase} --resume --output-dir {folder} --num-gpus {count}"
        print(f"stopped; go on with: {again}", file=sys.stderr)
    elif is_stopped:
        print(f"stopped; {folder} holds no checkpoint yet.", file=sys.stderr)
    elif code:
        tail = (f"Its newest checkpoint, {newest.path.name}, is whole: go on with the same command "
                "and --resume." if newest else "It has no checkpoint yet.")  # fmt: skip
        print(f"maniple: a rank ended with code {code}, and the run stopped. {tail}",
              file=sys.stderr)  # fmt: skip
    return {"ok": code == 0, "ranks": count, "is_told": True, "is_stopped": is_stopped}
