"""What a splat command is about: a task, or a model file, in some of its states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from maniple.core.errors import BadConfig

if TYPE_CHECKING:
    import mujoco

    from maniple.sim.renderer import RenderSource
    from maniple.splat.poses import Moment

ROWS, STEPS, HOLD = 16, 40, 8
"""Episodes that are begun, steps of random actions, and for how many one action is held."""


def load_subject(name: str, seed: int = 0) -> tuple[mujoco.MjModel, list[Moment]]:
    """Return the model of a task or an .xml file, and states that occur in it."""
    return _load_file(Path(name)) if name.endswith(".xml") else _load_task(name, seed)


def _load_file(path: Path) -> tuple[mujoco.MjModel, list[Moment]]:
    import mujoco

    from maniple.sim.scene import load_model
    from maniple.splat.poses import Moment

    model = load_model(path)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return model, [Moment.of(data)]


def _load_task(name: str, seed: int) -> tuple[mujoco.MjModel, list[Moment]]:
    from maniple.envs.group import TaskGroup
    from maniple.registry import recipe
    from maniple.splat.making import seen_in

    group = recipe(name, {}).group(ROWS, 1)
    if not isinstance(group, TaskGroup):
        raise BadConfig(f"{name} is not a task of ours: give its model file instead, NAME.xml.")
    seeds = [1000 * seed + row for row in range(ROWS)]
    group.reset(np.arange(ROWS), seeds)
    source: RenderSource = group.source
    seen = seen_in(source)
    space = group.contract.action_space
    space.seed(seed)
    actions = None
    for step in range(STEPS):
        if step % HOLD == 0:
            actions = np.stack([space.sample() for _ in range(ROWS)])
        assert actions is not None
        group.step(actions)
        if step % HOLD == HOLD - 1:
            seen += seen_in(source)
    group.close()
    return group.model, seen
