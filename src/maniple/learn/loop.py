"""Train in one process: the environments step while the learner updates."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from maniple.learn.collector import Collector
from maniple.learn.config import TrainConfig
from maniple.learn.make import device_of, make_run, make_training_envs
from maniple.learn.off_policy import OffPolicyLearner
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Result
from maniple.run.stop import Stop


def train(
    config: TrainConfig,
    run_dir: Path,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    stop: Stop | None = None,
) -> Result:
    """Train until the end that the config names; under torchrun on every rank together."""
    machine = config.machine
    with (
        closing(Ranks(device_of(machine.device))) as ranks,
        closing(make_training_envs(config, machine.num_envs)) as envs,
    ):
        learner = OffPolicyLearner(config, envs.layout, envs.action_spec, envs.num_envs, ranks)
        collector = Collector(envs, learner, config, ranks)
        with collector, make_run(config, run_dir, ranks, resume, listen, stop) as run:
            if not run.start(learner, collector=collector):
                collector.reset()
            while run.goes_on():
                action = collector.act()
                collector.begin_step(action)
                learner.update(learner.moved)
                collector.end_step(action)
                run.tick()
            return run.finish()
