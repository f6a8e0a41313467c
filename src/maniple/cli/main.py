"""Find the verb, read its options, run it, and tell mistakes in one line."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from maniple.cli.verb_options import options_of
from maniple.learn.algorithms import ALGORITHMS

VERBS: dict[str, tuple[str, str]] = {
    "list": ("maniple.cli.list", "Show every task, or every robot."),
    "new task": ("maniple.cli.new", "Write a task of your own to begin with: task, expert, test."),
    "robots export": ("maniple.cli.robots", "Write a robot as an MJCF file, to include in scenes."),
    "doctor": ("maniple.cli.doctor", "Check this machine, and say what to type where it lacks."),
    "demo": ("maniple.cli.demo", "See many arms at work: pictures, a film, and the speed."),
    **{f"train {name}": ("maniple.cli.train.run", row.about) for name, row in ALGORITHMS.items()},
    "train teacher": ("maniple.cli.train.phase", "Phase 1: learn a world model."),
    "train student": ("maniple.cli.train.phase", "Phase 2: explore what the model lacks."),
    "train adversarial": ("maniple.cli.train.phase", "Phase 3: explorer against model."),
    "world report": ("maniple.cli.world_report", "Make one page of a world-model run."),
    "eval": ("maniple.cli.eval", "Measure a trained policy, and film its best and worst."),
    "report": ("maniple.cli.report", "One page about runs, with a fair comparison of policies."),
    "view": ("maniple.cli.view", "Look at a task, a run or a dataset in the browser, and drive."),
    "export": ("maniple.cli.export", "Write a trained policy as a folder that LeRobot loads."),
    "plot": ("maniple.cli.plot", "Draw the learning curves of runs."),
    "bench": ("maniple.cli.bench.run", "Measure how fast a task is stepped."),
    "bench limit": ("maniple.cli.bench.limit", "Measure what the physics alone would allow."),
    "bench sweep": ("maniple.cli.bench.sweep", "Find the fastest setting here, beside peers."),
    "bench trace": ("maniple.cli.bench.trace", "Show where the time of every step goes."),
    "record": ("maniple.cli.record", "Record a policy: a dataset, and states to draw again."),
    "replay": ("maniple.cli.replay", "Draw recorded episodes again, with any camera or renderer."),
    "demos record": ("maniple.cli.demos.record", "Record an expert, or yourself, as a dataset."),
    "demos info": ("maniple.cli.demos.info", "Show what a dataset holds."),
    "splat bake": ("maniple.cli.splat.bake", "Cover a task's scene with Gaussian splats."),
    "splat fit": ("maniple.cli.splat.fit", "Refine splats until they look like the scene."),
    "splat align": ("maniple.cli.splat.align", "Put a captured room into a simulated scene."),
    "splat render": ("maniple.cli.splat.render", "Draw pictures of splats."),
    "splat info": ("maniple.cli.splat.info", "Show what a file of splats holds."),
    "splat view": ("maniple.cli.splat.view", "Look at splats in the browser."),
    "data check": ("maniple.cli.data.check", "Say what is wrong with a dataset."),
    "data repair": ("maniple.cli.data.repair", "Make a dataset whole again after a crash."),
    "data export": ("maniple.cli.data.export", "Copy episodes to a new dataset or plain arrays."),
}


ALIASES = {
    "train phase1": "train teacher", "train wm": "train teacher",
    "train phase2": "train student", "train explorer": "train student",
    "train phase3": "train adversarial", "train adv": "train adversarial",
}  # fmt: skip
"""Other words for verbs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if words[0] in ("-V", "--version"):
        from maniple.version import __version__

        print(f"maniple {__version__}")
        return 0
    if words[0] == "--print-completion":
        return _print_completion(words[1:])
    _leave_printing_to_rank_0()
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    from maniple.core.errors import ManipleError

    words = _with_phase(words)
    if _is_family(words[0]) and set(words[1:]) <= {"-h", "--help"}:
        print(_overview(words[0]))
        return 0
    try:
        return _run(words)
    except ManipleError as error:
        if debug:
            raise
        print(f"maniple: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("maniple: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except MemoryError as error:
        if debug:
            raise
        what = str(error).rstrip(".") or "it does not fit"
        print(
            f"maniple: not enough memory ({what}). Take smaller pictures or fewer environments.",
            file=sys.stderr,
        )
        return 2
    except OSError as error:
        # A file or folder that somebody named; programs' own mistakes are other errors.
        if debug or error.filename is None:
            raise
        print(f"maniple: {error.filename}: {error.strerror}.", file=sys.stderr)
        return 2


def _print_completion(shells: list[str]) -> int:
    from maniple.cli.completion import completion
    from maniple.core.errors import ManipleError

    try:
        print(completion(shells[0] if shells else "", VERBS), end="")
    except ManipleError as error:
        print(f"maniple: {error}", file=sys.stderr)
        return 2
    return 0


def _run(words: list[str]) -> int:
    verb, rest = _split(words)
    module = importlib.import_module(VERBS[verb][0])
    # A verb may take words that people have always written.
    rest = module.prepare(verb, rest) if hasattr(module, "prepare") else rest
    import tyro

    # A verb may know better defaults once it has seen which task is meant.
    defaults = {"default": module.defaults(verb, rest)} if hasattr(module, "defaults") else {}
    options = tyro.cli(
        options_of(module, verb),
        args=rest,
        **defaults,
        prog=f"maniple {verb}",
        description=VERBS[verb][1],
    )
    answer = module.run(options)
    # Where ranks of our own were started, the first of them has said it.
    if options.json and not answer.get("is_told"):
        print(json.dumps(answer))
    if answer.get("is_stopped"):
        return 130  # As a shell reports a program that Ctrl-C ended.
    return 0 if answer.get("ok", True) else 1


def _leave_printing_to_rank_0() -> None:
    """Under torchrun only the first rank speaks."""
    if os.environ.get("RANK", "0") != "0":
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  (for the rest of the process)


def _split(words: list[str]) -> tuple[str, list[str]]:
    """Take the longest verb off the front."""
    for count in (2, 1):
        verb = " ".join(words[:count])
        verb = ALIASES.get(verb, verb)
        if len(words) >= count and verb in VERBS:
            return verb, words[count:]
    from maniple.core.errors import unknown

    if _is_family(words[0]):
        family = {verb for verb in VERBS if verb.startswith(f"{words[0]} ")}
        raise unknown("command", " ".join(words[:2]), family, f"'maniple {words[0]} --help'")
    raise unknown("command", words[0], VERBS, "'maniple --help'")


def _with_phase(words: list[str]) -> list[str]:
    """'maniple train 4 2' without a verb is the first phase; 'maniple train' alone shows all."""
    if words[0] != "train" or words[1:2] in ([], ["-h"], ["--help"]):
        return words
    is_named = len(words) > 1 and not words[1].isdigit() and not words[1].startswith("-")
    return words if is_named else ["train", "teacher", *words[1:]]


def _is_family(word: str) -> bool:
    """Whether a word is only the first of several verbs, as in 'maniple train'."""
    return word not in VERBS and any(verb.startswith(f"{word} ") for verb in VERBS)


def _overview(family: str = "") -> str:
    verbs = {verb: about for verb, (_, about) in VERBS.items() if verb.startswith(family)}
    width = max(map(len, verbs))
    lines = [f"  maniple {verb:<{width}}  {text}" for verb, text in verbs.items()]
    return "\n".join(
        [
            "maniple: many robot arms, stepping as one.",
            "",
            *lines,
            "",
            "Every command takes --help, --json (one JSON object as the last line) and --debug.",
            "Completion: maniple --print-completion bash | zsh | fish.",
        ]
    )
