"""An environment that breaks on command: the first number of its action says how."""

import ctypes
import os
import signal
import time

import gymnasium
import numpy as np
from gymnasium import spaces

LIMIT = 1000.0


class Faulty(gymnasium.Env):
    """Counts its steps; breaks when told to."""

    observation_space = spaces.Dict(
        {
            "count": spaces.Box(-np.inf, np.inf, (4,), np.float32),
            "image": spaces.Box(0, 255, (6, 8), np.uint8),
        }
    )
    action_space = spaces.Box(-LIMIT, LIMIT, (2,), np.float32)

    def __init__(self, broken_maker=False, size=None):
        if broken_maker:
            raise OSError("no such camera")
        self.steps = 0
        self.image = np.zeros((6, 8), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        if options and options.get("break"):
            raise ValueError("reset is broken")
        return self.seen(), {}

    def seen(self):
        return {"count": np.full(4, self.steps, np.float32), "image": self.image}

    def step(self, action):
        self.steps += 1
        result = [self.seen(), float(action[1]), False, False, {}]
        fault = FAULTS.get(int(action[0]))
        if fault is not None:
            fault(self, result)
        return tuple(result)


def _obs(name, value):
    def spoil(env, result):
        result[0] = {**result[0], name: value}

    return spoil


def _reward(value):
    def spoil(env, result):
        result[1] = value

    return spoil


def _raise(env, result):
    raise ValueError("step is broken")


def _exit(env, result):
    raise SystemExit(7)


FAULTS = {
    1: lambda e, r: os.kill(os.getpid(), signal.SIGKILL),
    2: lambda e, r: ctypes.string_at(0),
    3: lambda e, r: os.abort(),
    4: lambda e, r: os.kill(os.getpid(), signal.SIGSTOP),
    5: lambda e, r: os._exit(9),
    6: _raise,
    7: lambda e, r: time.sleep(100),
    8: lambda e, r: ctypes.PyDLL(None).sleep(100),
    9: _obs("count", np.full(4, np.nan, np.float32)),
    10: _obs("count", np.full(4, np.inf, np.float32)),
    11: _reward(float("nan")),
    12: _reward(None),
    13: _obs("count", np.zeros(5, np.float32)),
    14: _obs("count", np.zeros(1, np.float32)),
    15: _obs("image", np.zeros((8, 6), np.uint8)),
    16: _obs("image", np.full((6, 8), 0.5, np.float32)),
    17: _obs("image", np.full((6, 8), 300)),
    18: _obs("count", None),
    19: _exit,
    20: lambda e, r: time.sleep(0.01),
    21: lambda e, r: time.sleep(0.4),
}


class Wide(gymnasium.Env):
    """Three megabytes that are all the same number: a torn one would show two."""

    observation_space = spaces.Box(0, 255, (1024, 1024, 3), np.uint8)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self):
        self.number = 0

    def reset(self, *, seed=None, options=None):
        self.number = 1
        return np.full((1024, 1024, 3), self.number, np.uint8), {}

    def step(self, action):
        self.number = self.number % 250 + 1
        return np.full((1024, 1024, 3), self.number, np.uint8), 0.0, False, False, {}
