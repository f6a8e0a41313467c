"""Environments whose infos carry what their observations show, so that a shift would be seen."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Telling(gymnasium.Env):
    """Counts its steps, in the observation and in the info."""

    observation_space = spaces.Box(0, 1e9, (1,), np.float32)
    action_space = spaces.Box(-1e6, 1e6, (1,), np.float32)

    def __init__(self, ballast=0):
        self.count = 0
        self.resets = 0
        self.ballast = np.zeros(ballast, np.uint8)
        self.seeds = []

    def reset(self, *, seed=None, options=None):
        self.count, self.resets = 0, self.resets + 1
        self.seeds.append(seed)
        return np.zeros(1, np.float32), {"count": 0, "told": (options or {}).get("told", 0)}

    def step(self, action):
        self.count += 1
        info = {"count": self.count, "ballast": self.ballast}
        return np.full(1, self.count, np.float32), float(self.count), False, False, info

    def now(self, *_):
        return self.count


class Bomb:
    """Pickles, but does not unpickle."""

    def __reduce__(self):
        return explode, ()


def explode():
    raise ValueError("boom")


class Unreadable(Telling):
    """Gives an info that cannot be unpickled when its action says so."""

    def step(self, action):
        *result, info = super().step(action)
        if action[0] == 7:
            info["bomb"] = Bomb()
        return *result, info


def check(result, rows):
    """Infos and rewards belong to the observations beside them."""
    obs, reward, _, trunc, info = result
    paused = info.get("_resetting", np.zeros(rows, bool))
    for row in range(rows):
        if trunc[row]:
            continue
        if paused[row]:
            assert reward[row] == 0 and not info.get("_count", paused * False)[row]
            continue
        if info.get("_count", np.zeros(rows, bool))[row]:
            assert info["count"][row] == obs[row, 0], (row, info["count"], obs.ravel())
        if obs[row, 0] > 0:
            assert reward[row] == obs[row, 0]
