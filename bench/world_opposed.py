"""Measure the adversarial phase against pink noise, and what there is to gain at most."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

from world_setup import of_teacher, tell
from world_travellers import EvenlyPlaced

from maniple.run.ranks import Ranks
from maniple.world import oppose
from maniple.world.config import WorldConfig
from maniple.world.make import make_player
from maniple.world.phase import run_dir
from maniple.world.quality import measure
from maniple.world.rounds import play
from maniple.world.source import LiveSource
from maniple.world.student import Student
from maniple.world.teacher_checkpoint import LoadedTeacher, load_teacher


def adversarial(options: argparse.Namespace) -> None:
    """Against the teacher continued on equally many pink-noise steps and updates."""
    teacher = load_teacher(options.teacher)
    base = of_teacher(teacher, options.seed, options.horizon)
    base = replace(base, training=replace(base.training, updates_per_episode=16, held_out=2,
                                          save_every=0, log_every=1000))  # fmt: skip
    pink = {"warm_up": options.iterations, "prioritise": False}
    ways = {
        "pink": pink,
        "constrained": {"warm_up": 2, "constraint": 0.5},
        "free": {"warm_up": 2, "constraint": 0.0},
    }
    if options.what == "limits":
        ways = {"pink": pink, "handed uniform": pink, "handed reached": pink}
    models: dict[str, Any] = {"teacher": teacher.model}
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in ways.items():
            changed = replace(
                base.adversarial, teacher_checkpoint=teacher.checkpoint.path,
                output_dir=Path(folder) / name, total_iterations=options.iterations, **settings,
            )  # fmt: skip
            config = replace(base, adversarial=changed)
            begin, last = process_time(), {}
            with _handed(name, base):
                oppose.train(config, listen=lambda step, metrics, last=last: last.update(metrics))
            models[name] = load_teacher(run_dir(config, "adversarial")).model
            names = ("probe/db", "probe/rollbacks", "coverage/gripper")
            tell(way=name, cpu_s=process_time() - begin, **{n: last.get(n) for n in names})
    # An explorer that none of them was trained with; arms that begin anywhere; arms that went to
    # places drawn evenly; random actions.
    judge_config = of_teacher(teacher, options.seed + 50, options.horizon)
    visited = _visited(judge_config, load_teacher(options.teacher), options.iterations)
    for where, held_out in (("explorer", visited),
                            ("uniform", _random(judge_config, {"start": ANYWHERE_RAD})),
                            ("reached", _reached(judge_config)),
                            ("random", _random(judge_config))):  # fmt: skip
        for name, model in models.items():
            found = measure(model, held_out, 320, (1, 5, 10))
            errors = {f"mse_1e3_h{row.h}": 1e3 * 10 ** (-row.psnr / 10) for row in found.horizons}
            moving = {f"moving_db_h{row.h}": row.moving for row in found.horizons}
            tell(states=where, model=name, seed=options.seed, **errors, **moving)


@contextmanager
def _handed(name: str, config: WorldConfig) -> Iterator[None]:
    """Let a way learn from the very kind of states that it is judged on, with other draws.

    No explorer can do better than that: what is gained is what there is to gain.
    """
    if not name.startswith("handed"):
        yield
        return
    anywhere = replace(config.environment, perturb={"start": ANYWHERE_RAD})
    source: Any = (LiveSource(replace(config, environment=anywhere)) if name == "handed uniform"
                   else EvenlyPlaced(config))  # fmt: skip

    def played(_: Any, seen: LiveSource, learner: Any) -> Any:
        number = learner.episodes
        seed = 5_000_000 + 16 * number
        if isinstance(source, EvenlyPlaced):
            return source.play(number, seed, learner.watch)
        player = make_player(config, source.envs, number, "random")
        steps, names = config.training.steps_per_episode, seen.shapes.names
        return play(source.envs, player, steps, seed, names, learner.watch).episodes()

    try:
        with patch.object(oppose, "_round", played):
            yield
    finally:
        source.close()


def _visited(config: WorldConfig, teacher: LoadedTeacher, rounds: int) -> Any:
    """A whole exploration: first near to where noise goes, at last far away."""
    source, steps = LiveSource(config), config.training.steps_per_episode
    student = Student(config, teacher, source.layout, source.action, Ranks())
    buffer = source._buffer(rounds * config.environment.num_envs * (steps + 1))
    for number in range(rounds):
        student.begin()
        played = play(source.envs, student.player, steps, 777_000_000 + 16 * number,
                      source.shapes.names, student.watch)  # fmt: skip
        for episode, solved in played.episodes():
            buffer.add(episode, 0, solved)
            student.replay.add(episode, 0, solved)
        student.update(1)
    source.close()
    return buffer


JUDGED_STEPS = 24
"""Steps that are judged at an evenly drawn place."""
ANYWHERE_RAD = 1.0
"""Joints of uniform states lie so far around where episodes begin."""


def _random(config: WorldConfig, perturb: dict[str, float] | None = None) -> Any:
    """Episodes of random actions; arms that would begin inside the desk are left out."""
    environment = replace(config.environment, perturb=perturb or {})
    source, rounds = LiveSource(replace(config, environment=environment)), 6
    rows, steps = config.environment.num_envs, config.training.steps_per_episode
    buffer = source._buffer(rounds * rows * (steps + 1))
    for number in range(rounds):
        player = make_player(config, source.envs, number, "random")
        played = play(source.envs, player, steps, 888_000_000 + 16 * number, source.shapes.names)
        for episode, solved in played.episodes():
            if episode.obs["tip_pos"][0, 2] > 0:
                buffer.add(episode, 0, solved)
    source.close()
    return buffer


def _reached(config: WorldConfig) -> Any:
    """Random actions at places drawn evenly: of the tip, or of a base that is driven."""
    training = replace(config.training, steps_per_episode=JUDGED_STEPS)
    places = EvenlyPlaced(replace(config, training=training))
    buffer = places.source._buffer(10_000)
    for number in range(8):
        for episode, solved in places.play(number, 999_000_000 + 16 * number):
            buffer.add(episode, 0, solved)
    places.close()
    return buffer


def limits(options: argparse.Namespace) -> None:
    """What the adversarial phase could gain at most: the comparison, handed the judge's states."""
    adversarial(options)
