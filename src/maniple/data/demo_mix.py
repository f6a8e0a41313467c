"""Draw half a batch from demonstrations and half from the agent's own steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.core.transitions import Transitions, join
from maniple.data.episode import Episode
from maniple.data.replay_buffer import ReplayBuffer


class DemoMix:
    """Two replays from which batches are drawn together, as RLPD does."""

    def __init__(
        self, online: ReplayBuffer, demos: ReplayBuffer | None = None, share: float = 0.5
    ) -> None:
        if not 0.0 <= share <= 1.0:
            raise BadConfig(f"demo_share is {share}; it must be from 0 to 1.")
        self.online, self.demos, self.share = online, demos, share

    def sample(self, count: int, discount: float, n_step: int = 1) -> Transitions:
        """Draw `count` transitions."""
        if self.demos is None or not len(self.demos):
            return self.online.sample(count, discount, n_step)
        of_demos = round(count * self.share)
        batch = self.demos.sample(of_demos, discount, n_step)
        if of_demos < count:
            batch = join(batch, self.online.sample(count - of_demos, discount, n_step))
        return batch._replace(shown=of_demos)


def buffer_of(
    episodes: Sequence[Episode], layout: Layout, action: ArraySpec, seed: int = 0, stack: int = 1
) -> ReplayBuffer:
    """Put whole episodes one behind the other into a ring of one row."""
    if not episodes:
        raise BadConfig("There are no demonstrations. Record some with 'maniple demos record'.")
    check_fits(episodes[0], layout, action)
    frames = sum(len(e.action) + 1 for e in episodes)
    ring = ReplayBuffer(layout, action, 1, frames + 1, seed, stack)
    no, yes = np.zeros(1, np.bool_), np.ones(1, np.bool_)
    ring.begin(_frame(episodes[0], 0))
    for number, episode in enumerate(episodes):
        last = len(episode.action) - 1
        for t in range(last + 1):
            ends = t == last
            terminated = yes if ends and episode.terminated else no
            truncated = yes if ends and not episode.terminated else no
            reward = episode.reward[t : t + 1]
            following = _frame(episode, t + 1)
            ring.add(episode.action[t : t + 1], reward, terminated, truncated, following)
        if number + 1 < len(episodes):
            nothing = np.zeros_like(episode.action[:1])
            ring.add(nothing, np.zeros(1), no, no, _frame(episodes[number + 1], 0))
    return ring


def check_fits(episode: Episode, layout: Layout, action: ArraySpec) -> None:
    """Refuse an episode that lacks what an observation is made of, or acts by other numbers."""
    if episode.action.shape[1:] != action.shape:
        raise BadConfig(
            f"The demonstrations do not fit the task: their actions have shape "
            f"{episode.action.shape[1:]}, and it takes {action.shape}. Record them with the same "
            "--control, or train with the --env.control that they have."
        )
    for name, spec in layout.items():
        found = episode.obs.get(name)
        if found is None or found.shape[1:] != spec.shape:
            have = {n: a.shape[1:] for n, a in episode.obs.items()}
            raise BadConfig(
                f"The demonstrations do not fit the task: {name!r} should have shape "
                f"{spec.shape}, they have {have}. Record them with the same task and cameras."
            )


def append(ring: ReplayBuffer, episode: Episode) -> None:
    """Add a whole episode to a ring of one row; of a marked one only a person's steps are drawn."""
    steps = len(episode)
    is_last = np.arange(steps) == steps - 1
    ring.extend(
        episode.obs, episode.action, episode.reward, is_last & episode.terminated, is_last,
        np.ones(steps, np.bool_),
    )  # fmt: skip
    if episode.intervention is not None:
        # Not before: a picture that is not drawn is still part of the stack of the next one.
        slots = (ring.total - steps + np.arange(steps)) % ring.steps
        ring.arrays["usable"][slots, 0] = episode.intervention


def _frame(episode: Episode, t: int) -> dict:
    return {name: array[t : t + 1] for name, array in episode.obs.items()}
