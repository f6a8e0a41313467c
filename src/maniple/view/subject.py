"""What the page is about: a task, a run, or a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig, ManipleError, UnknownName
from maniple.data.lerobot.paths import INFO_PATH
from maniple.run.folder import CONFIG, RunFolder
from maniple.view.keys import LONG_EPISODE
from maniple.view.runs import runs_in


@dataclass(frozen=True)
class Subject:
    """Something that can be looked at."""

    kind: str
    """task, run or dataset."""
    task: str
    """Its task; empty where a dataset does not say."""
    path: Path | None = None


def find_subject(name: str, task: str | None = None) -> Subject:
    """Tell what a name means: a folder that is there, else a task.

    Args:
        task: The task of a dataset that does not say it.
    """
    path = Path(name)
    if path.is_dir():
        return _folder(path, task)
    from maniple.registry import canonical, find

    if path.exists():
        raise BadConfig(f"{path} is a file; give a task, a run folder or a dataset's folder.")
    try:
        find(name)
    except UnknownName as error:
        raise BadConfig(f"{error} Nor is there a folder {name!r}.") from None
    return Subject("task", canonical(name))


def _folder(path: Path, task: str | None) -> Subject:
    if (path / INFO_PATH).is_file():
        from maniple.data.lerobot.meta import read_origin
        from maniple.registry import task_in_file

        named = read_origin(path).get("task", "")
        return Subject("dataset", task or task_in_file(named, "The dataset"), path)
    if (path / CONFIG).is_file():
        return _run(path)
    if inner := runs_in(path):
        return _run(inner[0])
    raise BadConfig(
        f"{path} is neither a run folder (it has no {CONFIG}) nor a dataset (it has no "
        f"{INFO_PATH}). Give one of those, or a task of 'maniple list'."
    )


def _run(path: Path) -> Subject:
    config = RunFolder(path).config()
    task = str(config.get("task", ""))
    if config.get("backend", "mujoco") != "mujoco":
        raise BadConfig(f"{path} runs on {config['backend']}; the page shows tasks on MuJoCo.")
    return Subject("run", task, path)


def make_envs(subject: Subject, num_envs: int, settings: dict[str, Any]) -> tuple[Any, int | None]:
    """Make the environments of a task or run, and say when its own episodes end.

    A person needs longer than a policy: the environments allow LONG_EPISODE steps.
    """
    from maniple.registry import TASKS, canonical, find

    if canonical(subject.task) not in TASKS:
        raise BadConfig(f"{subject.task} is not of 'maniple list'; the page shows our own tasks.")
    own = getattr(find(subject.task), "episode_steps", None)
    if subject.kind == "run" and (config := train_config(subject)) is not None:
        from maniple.learn.make import make_envs as make_run_envs

        own = config.env.max_episode_steps or own
        config = config.replace(workers=None, engine="auto")
        make = partial(make_run_envs, config, num_envs, max_episode_steps=LONG_EPISODE, **settings)
    else:
        from maniple.registry import make_vec

        options = {"observations": ("all",), "max_episode_steps": LONG_EPISODE, **settings}
        make = partial(make_vec, subject.task, num_envs, **options)
    return _apart(make), own


def _apart(make: Callable[..., Any]) -> Any:
    """Have OpenGL draw observations in a worker: the one context here is for our pictures."""
    envs = make()
    if envs.metadata.get("renderer") != "mujoco" or envs.engine_name == "process":
        return envs
    envs.close()
    return make(engine="process", workers=1)


def train_config(subject: Subject) -> Any:
    """Return the settings of a run whose policy can act; None: it is of another kind."""
    assert subject.path is not None
    described = RunFolder(subject.path).config()
    if "algorithm" not in described:
        return None  # A world model acts through a planner, which the page does not run.
    from maniple.learn.config import config_of

    return config_of(described)


def load_policy(subject: Subject) -> tuple[Any, str]:
    """Return the newest policy of a run, or None and why there is none yet."""
    assert subject.path is not None
    from maniple.learn.policy import Policy
    from maniple.run.checkpoint import find

    try:
        policy = Policy(find(subject.path, best=False))
    except ManipleError as error:
        return None, str(error)
    # As in training: on busy cores more threads act sixty times as slowly.
    import torch

    torch.set_num_threads(policy.config.machine.torch_threads)
    return policy, ""
