"""What the environments of a task show and take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, UnknownName, closest
from maniple.core.group import Contract
from maniple.core.space import box, dict_space
from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import scalar
from maniple.envs.cameras import Cameras
from maniple.envs.config import ALL
from maniple.envs.task import Task
from maniple.sim.state import State
from maniple.sim.viewer import has_display

if TYPE_CHECKING:
    from maniple.envs.group import TaskGroup

Observe = Callable[[State], dict[str, NDArray]]


def describe(group: TaskGroup, observe: Observe, cameras: Cameras | None) -> Contract:
    """Describe the environments of a group."""
    task, config = group.task, group.config
    is_sparse = config.reward == "sparse"
    extras: dict[str, ArraySpec] = {"success": scalar(np.bool_)} if task.has_success else {}
    extras |= group.motion.extras
    if cameras and config.render_every > 1:
        # Says which pictures are of this step, and which are repeated.
        extras["rendered"] = scalar(np.bool_)
    if is_sparse and not task.has_success:
        raise BadConfig(f"{type(task).__name__} has no success, so no sparse reward.")
    if not is_sparse:
        terms = task.terms(group.state)
        for name in terms:
            if name not in task.scales:
                raise BadConfig(
                    f"{type(task).__name__}.scales lacks the reward term {name!r}."
                    f"{closest(name, task.scales)}"
                )
            # A single term is the reward itself and need not be reported twice.
            if len(terms) > 1:
                extras[f"terms.{name}"] = scalar()
    observation = Layout(
        {
            name: ArraySpec(
                value.shape[1:],
                np.dtype(task.observation_dtype),
                *task.bounds.get(name, (-np.inf, np.inf)),
                meaning=task.meanings.get(name, ""),
                points=task.points(name, value[0].size),
            )
            for name, value in observe(group.state).items()
        }
    ) | (cameras.layout if cameras else {})
    return Contract(
        observation=observation,
        action=Layout({"action": group.motion.accepted}),
        extras=Layout(extras),
        observation_space=dict_space(observation),
        action_space=box(group.motion.control.action),
        metadata={
            "render_modes": ["rgb_array", "human"] if has_display() else ["rgb_array"],
            "render_fps": round(1 / (group.model.opt.timestep * group.sim.substeps)),
            "arm_mode": config.control or task.control,
            **({"renderer": group.renderer} if cameras else {}),
        },
        render_mode=config.render_mode,
        clip_actions=config.clip_actions,
        reset_options=("variation",),
        variations=task.variations,
    )


def check_proprioception(task: Task, s: State) -> None:
    """Refuse cameras where a policy on pictures would see the objects' true poses besides."""
    name, seen = type(task).__name__, task.observe(s)
    if not task.proprioception:
        raise BadConfig(
            f"{name} has cameras but no `proprioception`: name the observations that a real robot "
            f"has of itself, as in proprioception = ({next(iter(seen))!r},). It has: "
            f"{', '.join(seen)}."
        )
    for wanted in task.proprioception:
        if wanted not in seen:
            raise UnknownName(
                f"{name}.proprioception names {wanted!r}, which it does not observe."
                f"{closest(wanted, seen)} It has: {', '.join(seen)}."
            )


def chosen_observations(task: Task, names: tuple[str, ...] | None) -> Observe:
    """Return the task's `observe`, cut down to some names; None: the task's choice."""
    names = task.observations if names is None else names
    if names in (None, ALL):
        return task.observe

    def observe(s: State) -> dict[str, NDArray]:
        seen = task.observe(s)
        for name in names:
            if name not in seen:
                raise UnknownName(
                    f"{type(task).__name__} has no observation named {name!r}."
                    f"{closest(name, seen)} It has: {', '.join(seen)}."
                )
        return {name: value for name, value in seen.items() if name in names}

    return observe
