"""Run phase 1: play, learn to predict, show what was learned."""

from __future__ import annotations

from maniple.run.device import device_of
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Result
from maniple.run.stop import Stop
from maniple.world.config import WorldConfig
from maniple.world.gallery import Gallery
from maniple.world.phase import check_ranks, make_run
from maniple.world.source import make_source
from maniple.world.teacher import Teacher


def train(
    config: WorldConfig,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    stop: Stop | None = None,
    num_ranks: int | None = None,
) -> Result:
    """Train a teacher until the end that the config names; under torchrun on all ranks together."""
    ranks, source = Ranks(device_of(config.training.device)), None
    try:
        check_ranks(num_ranks, ranks)
        with make_run(config, "teacher", ranks, resume, listen, stop) as run:
            source = make_source(config, ranks)
            teacher = Teacher(config, source.shapes, source.layout, source.action, ranks)
            every = config.training.save_every
            gallery = Gallery(run.store.folder.path, source.held_out(), every, ranks)
            run.start(teacher, gallery=gallery)
            while run.goes_on():
                teacher.add(source.round(teacher.episodes))
                teacher.update(1)
                gallery.look(teacher.model, teacher.episodes)
                run.tick()
            gallery.look(teacher.model, teacher.episodes, is_last=True)
            return run.finish()
    finally:
        if source is not None:
            source.close()
        ranks.close()
