"""A trained policy as its run left it: environments that fit, and how it acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from maniple.data.video import Film
from maniple.learn.config import config_of
from maniple.learn.evaluate import evaluate
from maniple.learn.make import is_ours, make_agent, make_envs, stack_of
from maniple.learn.save import acting_weights
from maniple.run.checkpoint import Checkpoint
from maniple.run.folder import RunFolder


class Judge:
    """Loads a checkpoint, refusing weights that do not fit."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.config = config_of(RunFolder(checkpoint.path.parent.parent).config())
        self.stack = stack_of(self.config.agent)
        envs = self.envs(1)
        self._agent = make_agent(self.config, envs.layout, envs.action_spec, 0)
        envs.close()
        self._agent.load_weights(acting_weights(checkpoint))

    def envs(self, num_envs: int, **more: Any) -> Any:
        """Make environments as the run had them."""
        return make_envs(replace(self.config, workers=None, engine="auto"), num_envs, **more)

    def act(self, seen: Mapping[str, NDArray]) -> NDArray:
        """Return the most likely action of every row."""
        return self._agent.act(seen, explore=False)

    def film(self, path: Path, seed: int, fps: int) -> None:
        """Play one episode and film it."""
        options = {"render_mode": "rgb_array"} if is_ours(self.config.task) else {}
        envs = self.envs(1, **options)
        try:
            with Film(path, fps) as film:
                evaluate(envs, self.act, 1, seed, self.stack, lambda *_: film.add(envs.render()[0]))
        finally:
            envs.close()
