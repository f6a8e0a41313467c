"""Run phase 2: the student explores."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from maniple.core.errors import BadConfig
from maniple.run.device import device_of
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Result
from maniple.run.stop import Stop
from maniple.world.config import EnvironmentConfig, WorldConfig
from maniple.world.gallery import Gallery
from maniple.world.make import round_seed
from maniple.world.phase import begun, check_ranks, check_weights, make_run
from maniple.world.rounds import play
from maniple.world.source import LiveSource
from maniple.world.student import Student
from maniple.world.teacher_checkpoint import LoadedTeacher, load_teacher


def train(
    config: WorldConfig,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    stop: Stop | None = None,
    num_ranks: int | None = None,
    given: Collection[str] = (),
) -> Result:
    """Explore until the end that the config names; under torchrun on all ranks together.

    Args:
        given: Settings of the environment that were chosen, even where they are the defaults.
    """
    ranks, source = Ranks(device_of(config.training.device)), None
    remote = None
    try:
        check_ranks(num_ranks, ranks)
        check_weights(config.student)
        then = begun(config, "student", resume)
        teacher = load_teacher(config.student.teacher_path, then=then.get("teacher"))
        config = seen_alike(config, teacher, given)
        origin = {"teacher": teacher.checkpoint}
        with make_run(config, "student", ranks, resume, listen, stop, origin) as run:
            source = LiveSource(config)
            check_alike(source, teacher)
            remote = remote_player(config, source)
            student = Student(config, teacher, source.layout, source.action, ranks, remote)
            every = config.training.save_every
            gallery = Gallery(run.store.folder.path, source.held_out(), every, ranks)
            run.start(student, gallery=gallery)
            while run.goes_on():
                student.begin()
                student.add(explored(config, source, student))
                student.update(1)
                gallery.look(student.model, student.episodes)
                run.tick()
            gallery.look(student.model, student.episodes, is_last=True)
            return run.finish()
    finally:
        if remote is not None:
            remote.close()
        if source is not None:
            source.close()
        ranks.close()


def explored(config: WorldConfig, source: LiveSource, student: Student):
    """Let the student play one round."""
    seed = round_seed(config, student.episodes)
    steps, names = config.training.steps_per_episode, source.shapes.names
    return play(source.envs, student.player, steps, seed, names, student.watch).episodes()


def remote_player(config: WorldConfig, source: LiveSource) -> Any:
    """Connect to the policy server that is named; None: an explorer of ours plays."""
    if config.student.port is None:
        return None
    from maniple.agents.remote import RemotePolicy

    return RemotePolicy(config.student.port, source.envs.num_envs, source.action)


def seen_alike(
    config: WorldConfig, teacher: LoadedTeacher, given: Collection[str] = ()
) -> WorldConfig:
    """Show the environments as the teacher saw them, but for what was given or is no default."""
    default, then = EnvironmentConfig(), teacher.config.environment
    names = ("task", "cameras", "image_size", "renderer", "control", "arms", "base", "state")
    now = config.environment
    kept = {n for n in names if n in given or getattr(now, n) != getattr(default, n)}
    taken = {n: getattr(then, n) for n in names if n not in kept}
    return replace(config, environment=replace(now, **taken))


def check_alike(source: LiveSource, teacher: LoadedTeacher) -> None:
    """Refuse environments that show something else than the teacher has learned."""
    if source.shapes != teacher.shapes:
        raise BadConfig(
            f"The teacher sees {teacher.shapes}, and this environment shows {source.shapes}. Leave "
            "--task, --cameras, --image-size, --state, --control, --arms and --base as they were "
            "for the teacher."
        )
