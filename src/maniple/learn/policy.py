"""A trained policy as its run left it: how it acts, and environments that fit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.data.video import FILM_FPS, Film, real_time
from maniple.learn.config import config_of
from maniple.learn.make import is_ours, make_agent, make_envs, stack_of, with_renderer
from maniple.run.checkpoint import Checkpoint, find
from maniple.run.evaluation import evaluate
from maniple.run.folder import folder_of
from maniple.sim.renderer import AUTO


def load_policy(path: str | Path, best: bool = True) -> Policy:
    """Load a policy from a run folder or from one of its checkpoints.

    Args:
        path: As 'maniple train' names it, for example runs/sac-so101-Reach-v0-0.
        best: Of a run, take the best checkpoint; False: the newest.
    """
    return Policy(find(path, best))


class Policy:
    """Acts for a batch of observations, always the same way."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load a checkpoint, refusing weights that do not fit."""
        self.checkpoint = checkpoint
        self.config = config_of(folder_of(checkpoint.path).config())
        self._learned_from = self.config.env.renderer
        self.stack = stack_of(self.config.agent)
        """Pictures that it sees at once, joined along the last axis."""
        with closing(self.envs(1)) as envs:
            self.layout, self.action_spec = envs.layout, envs.action_spec
        self._agent = make_agent(self.config, self.layout, self.action_spec)
        self._agent.load_weights(checkpoint.acting_weights())
        self.needs: tuple[str, ...] = self._agent.policy_inputs
        """The observations that it looks at; others may be absent."""

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the most likely action of every row, (rows, ...).

        Args:
            obs: Arrays (rows, ...) as the vector environment gives them.
        """
        for name in self.needs:
            if name not in obs:
                raise BadConfig(
                    f"The policy looks at {name!r}, which is not among the observations: "
                    f"{', '.join(obs)}."
                )
        return self._agent.act({n: np.asarray(obs[n]) for n in self.needs}, explore=False)

    def load(self, checkpoint: Checkpoint, weights: Mapping[str, NDArray]) -> None:
        """Act as a newer checkpoint of the same run does; `weights`: what acting needs of it."""
        self._agent.load_weights(weights)
        self.checkpoint = checkpoint

    def envs(self, num_envs: int, **more: Any) -> Any:
        """Make environments as the run had them."""
        return make_envs(self.config.replace(workers=None, engine="auto"), num_envs, **more)

    def draw_with(self, renderer: str) -> str | None:
        """Let its environments draw with another renderer; return what is to be said of that."""
        then = self._learned_from
        self.config = self.config.replace(env=replace(self.config.env, renderer=renderer))
        now = with_renderer(self.config).env.renderer
        if not self.config.env.cameras or now == then or then == AUTO:
            return None
        return f"the policy learned from pictures by {then!r} and is judged on those by {now!r}."

    def film(self, path: Path, seed: int) -> None:
        """Play one episode and film it in real time; its last picture stays for a second."""
        cameras = self.config.env.cameras
        camera = cameras[0] if cameras else "front"
        # CoppeliaSim draws what is observed, and nothing else.
        is_observed = self.config.machine.backend != "mujoco"
        options: dict[str, Any] = {}
        if is_observed and not cameras:
            options = {"cameras": (camera,)}
        elif not is_observed and is_ours(self.config.run.task):
            options = {"render_mode": "rgb_array"}
        steps = count()
        shown = np.zeros(0, np.uint8)

        def shoot(finished: int, obs: Any) -> None:
            nonlocal shown
            if next(steps) % every == 0:
                shown = np.array(obs[f"{camera}_rgb"][0] if is_observed else envs.render()[0])
                film.add(shown)

        with closing(self.envs(1, **options)) as envs:
            every, fps = real_time(envs.metadata.get("render_fps") or FILM_FPS)
            with Film(path, fps) as film:
                evaluate(envs, self.act, 1, seed, self.stack, watch=shoot)
                for _ in range(fps):
                    film.add(shown)
