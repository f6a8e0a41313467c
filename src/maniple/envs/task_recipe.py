"""The picklable description of a task's environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mujoco

from maniple.core.group import Contract, Recipe
from maniple.envs.config import EnvConfig
from maniple.envs.group import TaskGroup
from maniple.envs.task import Task
from maniple.envs.task_model import build_model, configure
from maniple.sim.renderer import resolve_renderer, wants_one_process

DRAWN_ON_THREADS = ("fast", "splat", "hybrid")
"""Renderers that draw the rows of one process on several threads."""


@dataclass(frozen=True)
class TaskRecipe(Recipe):
    """A task and its settings, from which any process makes a group."""

    task: type[Task]
    config: EnvConfig = field(default_factory=EnvConfig)

    preload = ("mujoco", __name__)

    @classmethod
    def of(cls, task: type[Task], options: dict[str, Any]) -> TaskRecipe:
        """Make a recipe from keyword arguments, with the task's own defaults."""
        return cls(task, EnvConfig.of({**task.defaults, **options}))

    def preferred_engine(self, num_envs: int, workers: int | None) -> str:
        """Processes where only they draw side by side; else one batch, on threads."""
        is_native = workers is None and (num_envs == 1 or not self._wants_workers())
        return "native" if is_native else "process"

    def _wants_workers(self) -> bool:
        config = self.config
        if not config.cameras or wants_one_process(config.renderer):
            return False
        if config.renderer in DRAWN_ON_THREADS:
            return False
        return resolve_renderer(config.renderer, self._model()) not in DRAWN_ON_THREADS

    def _model(self) -> mujoco.MjModel:
        task = self.task()
        configure(task, self.config)
        return build_model(task, dict(self.config.perturb))

    def contract(self) -> Contract:
        """Describe the environment by building one row and letting it go."""
        group = self.group(1, 1)
        group.close()
        return group.contract

    def group(self, num_envs: int, threads: int, rank: int = 0, first_row: int = 0) -> TaskGroup:
        """Build rows `first_row` and following."""
        return TaskGroup(self.task(), self.config, num_envs, threads, rank, first_row)
