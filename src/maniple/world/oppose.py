"""Run phase 3: explorer against world model, with a guard against forgetting."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from maniple.core.errors import BadConfig
from maniple.core.rank import Rank
from maniple.data.sequence_buffer import SequenceBuffer
from maniple.run.checkpoint import Checkpoint, read_arrays
from maniple.run.device import device_of
from maniple.run.folder import folder_of
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Result
from maniple.run.stop import Stop
from maniple.run.tree import unsplit
from maniple.run.when import Every
from maniple.world.adapter import Relay
from maniple.world.adversary import Adversary
from maniple.world.config import WorldConfig, config_of
from maniple.world.explore import check_alike, seen_alike
from maniple.world.gallery import Gallery
from maniple.world.make import make_player, round_seed
from maniple.world.origin import split_phase
from maniple.world.phase import begun, check_ranks, make_run
from maniple.world.probe import Probe
from maniple.world.rounds import play
from maniple.world.source import LiveSource
from maniple.world.teacher_checkpoint import find_checkpoint, load_teacher

PROBED_EVERY = 5
"""Iterations between two looks at the probe set."""


def train(
    config: WorldConfig,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    stop: Stop | None = None,
    num_ranks: int | None = None,
    given: Collection[str] = (),
) -> Result:
    """Oppose them until the end that the config names; under torchrun on all ranks together.

    Args:
        given: Settings of the environment that were chosen, even where they are the defaults.
    """
    ranks, source = Ranks(device_of(config.training.device)), None
    try:
        check_ranks(num_ranks, ranks)
        then, named = begun(config, "adversarial", resume), config.adversarial
        teacher = load_teacher(
            named.teacher_checkpoint, "--teacher-checkpoint", then.get("teacher")
        )
        student = None
        if named.student_checkpoint is not None:
            student = find_checkpoint(
                named.student_checkpoint, "--student-checkpoint", then.get("student")
            )
            config = _as_student(config, student)
        config = seen_alike(config, teacher, given)
        origin = {"teacher": teacher.checkpoint} | ({"student": student} if student else {})
        with make_run(config, "adversarial", ranks, resume, listen, stop, origin) as run:
            source = LiveSource(config)
            check_alike(source, teacher)
            learner = Adversary(config, teacher, source.layout, source.action, ranks)
            held_out = source.held_out()
            probe = Probe(held_out, config.adversarial.guard_db, ranks)
            gallery = Gallery(run.store.folder.path, held_out, config.training.save_every, ranks)
            if not run.start(learner, probe=probe, gallery=gallery):
                load_episodes(learner.replay, teacher.checkpoint, ranks.rank)
                if student is not None:
                    learner.take_student(
                        unsplit(student.about()["state"], student.arrays())["learner"]
                    )
                probe.look(learner.updater)
            due = Every(PROBED_EVERY, learner.episodes - learner.episodes % PROBED_EVERY)
            while run.goes_on():
                learner.begin()
                learner.add(_round(config, source, learner))
                learner.update(1)
                if due(learner.episodes):
                    probe.look(learner.updater)
                gallery.look(learner.model, learner.episodes)
                run.tick()
            probe.look(learner.updater)
            gallery.look(learner.model, learner.episodes, is_last=True)
            return run.finish()
    finally:
        if source is not None:
            source.close()
        ranks.close()


def _round(config: WorldConfig, source: LiveSource, learner: Adversary):
    """Let noise, later the explorer, play one round."""
    player, number = learner.explorer, learner.episodes
    steps, names = config.training.steps_per_episode, source.shapes.names
    if learner.is_warming_up:
        player = make_player(config, source.envs, number, "pink")
    elif config.adversarial.wander and config.student.algorithm == "mpc":
        rng = np.random.default_rng([config.training.seed, Rank.here().rank, number])
        since = steps * (1 - config.adversarial.wander * rng.random(source.envs.num_envs))
        player = Relay(player, make_player(config, source.envs, number, "random"), since)
    seed = round_seed(config, number + 50_000)
    return play(source.envs, player, steps, seed, names, learner.watch).episodes()


def load_episodes(replay: SequenceBuffer, checkpoint: Checkpoint, rank: int) -> None:
    """Take over the episodes that a teacher learned from, so that they are not forgotten."""
    own = "replay" if rank == 0 else f"rank{rank}"
    files = sorted(f for f in checkpoint.files() if f.parent.name == own)
    for file in files or sorted(f for f in checkpoint.files() if f.parent.name == "replay"):
        since, total = (int(part) for part in file.name.partition(".")[0].split("-"))
        replay.restore(read_arrays(file), since, total)


def _as_student(config: WorldConfig, checkpoint: Checkpoint) -> WorldConfig:
    """Take the explorer's settings over from the student that is named."""
    phase, settings = split_phase(folder_of(checkpoint.path).config())
    if phase != "student":
        raise BadConfig(f"{checkpoint.path} is no checkpoint of a student.")
    there = config_of(settings, str(Path(checkpoint.path.parent) / "config.yaml"))
    own = {name: getattr(config.student, name) for name in ("output_dir", "teacher_path", "port")}
    return replace(config, student=replace(there.student, **own))
