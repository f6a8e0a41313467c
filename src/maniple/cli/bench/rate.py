"""Step environments as fast as they go, and count environment steps."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cli.bench.pose_actions import PoseActions, takes_poses
from maniple.core.random_actions import random_actions
from maniple.core.space import layout_of

# Drawing actions inside the timed loop would measure numpy's generator: reuse a few batches.
BATCHES = 16


def action_batches(envs: Any, chunk: int = 1, seed: int = 0) -> list[NDArray]:
    """Draw action batches within the space, (num_envs, ...) or (num_envs, chunk, ...)."""
    rng = np.random.default_rng(seed)
    (spec,) = layout_of(envs.single_action_space).values()
    lead = (envs.num_envs, chunk) if chunk > 1 else (envs.num_envs,)
    return [random_actions(spec, lead, rng) for _ in range(BATCHES)]


def env_steps_per_s(
    envs: Any,
    steps: int,
    chunk: int = 1,
    warm_up: int = 5,
    tick: Callable[[int], None] | None = None,
    seconds: float = float("inf"),
    watch: Callable[[Any], None] | None = None,
) -> float:
    """Step `envs` for `steps` control steps per environment; return env-steps per second.

    Args:
        envs: A vector environment, ours or any other with Gymnasium's interface.
        steps: Control steps of each environment.
        chunk: Actions per call; above 1 needs `step_chunk`.
        warm_up: Calls before the clock starts.
        tick: Called with the number of control steps done, for a progress bar.
        seconds: Stop after this time, however few steps were made.
        watch: Called with what every step returned, for a recorder.
    """
    if takes_poses(envs):
        poses = PoseActions(envs, chunk)
        draw, see = poses.actions, poses.see
    else:
        actions = action_batches(envs, chunk)
        draw, see = (lambda k: actions[k % BATCHES]), None
    act = envs.step if chunk == 1 else envs.step_chunk
    for k in range(warm_up):
        act(draw(k))
    calls = max(1, steps // chunk)
    done = 0
    start = perf_counter()
    for k in range(calls):
        result = act(draw(k))
        info = result[4]
        if see is not None:
            see(result[0])
        if watch is not None:
            watch(result)
        # A row that waits for its reset takes no step of a chunk: count what was done.
        done += envs.num_envs if chunk == 1 else int(info["num_steps"].sum())
        if tick is not None:
            tick(chunk)
        if perf_counter() - start > seconds:
            break
    return done / (perf_counter() - start)
