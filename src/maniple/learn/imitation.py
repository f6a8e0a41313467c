"""Clone behaviour from demonstrations; environments are only needed for evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.demo_mix import buffer_of
from maniple.learn.config import TrainConfig
from maniple.learn.demos import demonstrations
from maniple.learn.make import device_of, make_agent, make_envs, make_run, stack_of
from maniple.learn.off_policy import CALIBRATED_ON
from maniple.run.learner import Counters, State
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
    """Imitate until the end that the config names; under torchrun on every rank together."""
    with closing(Ranks(device_of(config.machine.device))) as ranks:
        with closing(make_envs(config, 1)) as envs:
            layout, action = envs.layout, envs.action_spec
        learner = Imitator(config, layout, action, ranks)
        with make_run(config, run_dir, ranks, resume, listen, stop) as run:
            if not run.start(learner):
                learner.calibrate()
            while run.goes_on():
                learner.update(1)
                run.tick()
            return run.finish()


class Imitator:
    """An agent that imitates, and what it imitates; its steps are its updates."""

    replay = None
    """The demonstrations do not change: they are recorded or read again."""

    def __init__(
        self, config: TrainConfig, layout: Layout, action: ArraySpec, ranks: Ranks
    ) -> None:
        seed = config.run.seed + 1_000_003 * ranks.rank
        self.agent = make_agent(config, layout, action, seed)
        self.agent.sync = ranks.average if ranks.world_size > 1 else None
        if config.demos.demos_from is not None:
            raise BadConfig("BC learns from a dataset that is whole: name it with --demo-path.")
        shown = demonstrations(config)
        if not shown:
            raise BadConfig("BC needs demonstrations: name --demo-path, or record with --demos 50.")
        self._demos = buffer_of(shown, layout, action, seed, stack_of(config.agent))
        self._batch_size = config.replay.batch_size
        self._metrics: dict[str, float] = {}

    def calibrate(self) -> None:
        """Take the scale of the networks' inputs from the demonstrations."""
        self.agent.calibrate(self._demos.sample(CALIBRATED_ON).obs)

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Return an action for every row."""
        return self.agent.act(obs, explore)

    def update(self, new_steps: int) -> int:
        """Learn from one batch for each step."""
        for _ in range(new_steps):
            self._metrics = self.agent.update(self._demos.sample(self._batch_size))
        return new_steps

    def weights(self) -> dict[str, NDArray]:
        """Return what acting needs."""
        return self.agent.weights()

    def counters(self) -> Counters:
        """How far it has come."""
        return Counters(self.agent.updates, self.agent.updates, len(self._demos))

    def metrics(self) -> dict[str, float]:
        """What the last update found."""
        return self._metrics

    def state(self) -> State:
        """Return everything that going on exactly needs."""
        return {
            "agent": self.agent.state(),
            "metrics": self._metrics,
            "demo_rng": self._demos.rng_state(),
        }

    def load_state(self, state: State) -> None:
        """Go on from there."""
        self.agent.load_state(state["agent"])
        self._metrics = state["metrics"]
        self._demos.set_rng_state(state["demo_rng"])
