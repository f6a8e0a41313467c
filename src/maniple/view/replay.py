"""Play a recorded episode again, so that all of it can be seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from maniple.core.errors import ManipleError
from maniple.data.episode import NO_SEED, Episode
from maniple.view.keys import LONG_EPISODE

CLOSE = 1e-4
"""How far replayed observations may be from recorded ones."""


class Replay:
    """A single environment in which recorded actions are taken again from the recorded seed."""

    def __init__(self, task: str, control: str | None = None) -> None:
        from maniple.registry import make_vec

        options: dict[str, Any] = {"observations": ("all",), "max_episode_steps": LONG_EPISODE}
        if control:
            options["control"] = control
        self._envs = make_vec(task, 1, engine="native", **options)
        self.model = self._envs.get_attr("model")[0]

    def play(self, episode: Episode) -> tuple[list[dict[str, Any]], Any, str]:
        """Return the state after every action, the row's model, and what is to be said of it."""
        if episode.seed == NO_SEED:
            return [], self.model, "it has no seed, so that it cannot be played again"
        try:
            obs, _ = self._envs.reset(seed=[episode.seed])
            model = self._envs.get_attr("model")[0]
            states = [self._envs.get_attr("sim_state")[0]]
            seen = [self._envs.named(obs)]
            for action in episode.action:
                obs = self._envs.step(action[None])[0]
                states.append(self._envs.get_attr("sim_state")[0])
                seen.append(self._envs.named(obs))
        except (ManipleError, ValueError) as error:
            return [], self.model, f"it cannot be played again: {error}"
        return states, model, _difference(episode, seen)

    def close(self) -> None:
        """Let go of the environment."""
        self._envs.close()


def _difference(episode: Episode, seen: list[Any]) -> str:
    """Say whether what was seen is what was recorded."""
    worst, where = 0.0, ""
    for name, recorded in episode.obs.items():
        if name not in seen[0] or recorded.dtype == np.uint8:
            continue
        now = np.stack([moment[name][0] for moment in seen])
        if now.shape != recorded.shape:
            return f"it was recorded otherwise: {name!r} had another shape"
        far = float(np.abs(now.astype(float) - recorded.astype(float)).max())
        if far > worst:
            worst, where = far, name
    if worst > CLOSE:
        return f"played again it differs: {where!r} by up to {worst:.3g}"
    return "played again, it is the same"
