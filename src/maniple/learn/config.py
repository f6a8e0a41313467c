"""The settings of a training run, in groups; flags and config.yaml know them by flat names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from maniple.agents.sac import SACConfig
from maniple.core.errors import BadConfig, closest, one_line, unknown
from maniple.core.lookup import load
from maniple.data.demos import datasets_in
from maniple.data.lerobot.meta import read_origin
from maniple.envs.config import ALL, EnvConfig
from maniple.envs.task_model import proprioception
from maniple.learn.algorithms import ALGORITHMS
from maniple.registry import BACKENDS, EXPERTS, TASKS, canonical, expert, find
from maniple.run.config import RunConfig, Schedule, at_least
from maniple.run.folder import plain
from maniple.sim.control.control import CONTROLS

if TYPE_CHECKING:
    from maniple.agents.bc import BCConfig

    AgentConfig = SACConfig | BCConfig
else:
    # The table of algorithms is the only list of them.
    AgentConfig = reduce(or_, (load(row.config) for row in ALGORITHMS.values()))


@dataclass(frozen=True)
class MachineConfig:
    """Where it runs."""

    backend: str = "mujoco"
    """mujoco, or rlbench: the real one, on CoppeliaSim, a process for each environment."""

    num_envs: int = 16
    """Environments at once; under torchrun, per rank."""

    engine: str = "auto"
    """native, process, serial, or auto."""

    workers: int | None = None
    """Worker processes of the process engine."""

    overlap: bool = True
    """Step the environments while the learner updates; the numbers are the same every time."""

    torch_threads: int = 1
    """Threads of the learner. Numbers round differently with another number; more than one helps
    only large networks on idle cores, and costs dearly on busy ones."""

    device: str = "auto"
    """cpu, cuda, or auto: a GPU where there is one."""

    def __post_init__(self) -> None:
        at_least("num_envs", self.num_envs, 1)
        at_least("torch_threads", self.torch_threads, 1)
        if self.backend not in BACKENDS:
            raise BadConfig(
                f"backend is {self.backend!r}; it may be one of: {', '.join(BACKENDS)}."
            )


@dataclass(frozen=True)
class ReplayConfig:
    """How much is remembered, and how much is learned from it."""

    batch_size: int = 256
    """Transitions in an update."""

    utd_ratio: float = 1.0
    """Updates for every `steps_per_update` environment steps."""

    steps_per_update: int = 8
    """Environment steps, over all rows, that bring `utd_ratio` updates."""

    replay_buffer_capacity: int = 200_000
    """Transitions that are remembered."""

    replay_folder: Path | None = None
    """Keep the replay's frames in files in this folder instead of in memory."""

    random_steps: int = 1_000
    """Environment steps with random actions at the beginning."""

    training_starts: int = 1_000
    """Environment steps before the first update."""

    n_step: int = 1
    """Steps over which rewards are summed before the critics are asked."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "steps_per_update", "n_step"):
            at_least(name, getattr(self, name), 1)
        for name in ("utd_ratio", "random_steps", "training_starts"):
            at_least(name, getattr(self, name), 0)


@dataclass(frozen=True)
class DemoConfig:
    """Which demonstrations are learned from."""

    demo_path: Path | None = None
    """Folder of demonstrations, as 'maniple demos record' writes it."""

    demos: int = 0
    """Episodes to record from the task's scripted expert before training."""

    demos_from: Path | None = None
    """Dataset that is being written, as 'maniple view' does: whole episodes are learned from as
    they arrive, of marked ones the steps that a person chose."""

    demo_share: float = 0.5
    """Part of every batch that is demonstrations."""

    def __post_init__(self) -> None:
        at_least("demos", self.demos, 0)


Flat = tyro.conf.OmitArgPrefixes
"""A group has a heading of its own in the help, and its flags have no prefix."""


@dataclass(frozen=True)
class TrainConfig:
    """What is trained on which task, for how long, and everything that experts change."""

    run: Annotated[RunConfig, Flat] = field(default_factory=RunConfig)
    schedule: Annotated[Schedule, Flat] = field(default_factory=Schedule)
    machine: Annotated[MachineConfig, Flat] = field(default_factory=MachineConfig)
    replay: Annotated[ReplayConfig, Flat] = field(default_factory=ReplayConfig)
    demos: Annotated[DemoConfig, Flat] = field(default_factory=DemoConfig)

    env: EnvConfig = field(default_factory=EnvConfig)
    """How the task is run."""

    agent: AgentConfig = field(default_factory=SACConfig)
    """How the agent learns."""

    def __post_init__(self) -> None:
        self._check_demonstrations()
        self._check_observations()
        if self.schedule.eval_n_trajs == 0 and self.run.stop_at_success is not None:
            raise BadConfig("stop_at_success needs evaluations: set eval_n_trajs above 0.")
        if self.replay.training_starts < self.machine.num_envs:
            starts = replace(self.replay, training_starts=self.machine.num_envs)
            object.__setattr__(self, "replay", starts)

    @classmethod
    def of(cls, **settings: Any) -> TrainConfig:
        """Make a config from settings by their flat names, as in of(task="LeRobot-v0", demos=5)."""
        return cls().replace(**settings)

    def replace(self, **settings: Any) -> TrainConfig:
        """Return a copy with settings changed by their flat names; 'env' and 'agent' are whole."""
        parts = _by_group(settings, "There is no setting")
        for name in GROUPS:
            if name in parts:
                parts[name] = replace(getattr(self, name), **parts[name])
        return replace(self, **parts)

    def flat(self) -> dict[str, Any]:
        """Return every setting under its flat name, as config.yaml has it."""
        found: dict[str, Any] = {}
        for f in fields(self):
            value = plain(getattr(self, f.name))
            found |= value if f.name in GROUPS else {f.name: value}
        return {"algorithm": algorithm_of(self), **found, "task": canonical(self.run.task)}

    def _check_demonstrations(self) -> None:
        task, episodes = canonical(self.run.task), self.demos.demos
        if not episodes:
            return
        if self.machine.backend == "rlbench":
            raise BadConfig(
                "The experts play on MuJoCo. Record demonstrations with 'maniple demos record "
                "--backend rlbench', then train with --demos 0 --demo-path FOLDER."
            )
        if task not in TASKS:
            return
        if task not in EXPERTS:
            raise BadConfig(
                f"{task} has no scripted expert to record {episodes} demonstrations from. "
                "Record some with 'maniple demos record', then train with --demos 0 --demo-path "
                "FOLDER."
            )
        try:
            expert(task, 1, self.env.control)
        except BadConfig as error:
            raise BadConfig(
                f"{error} Its demonstrations do not fit: leave --env.control out, or train with "
                "--demos 0."
            ) from None

    def _check_observations(self) -> None:
        chosen, task = self.env.observations, canonical(self.run.task)
        if not self.env.cameras or chosen in (None, ALL) or task not in TASKS:
            return
        own = proprioception(find(task), self.env)
        if own and not set(own) & set(chosen):
            raise BadConfig(
                f"With cameras the policy sees only what the robot knows of itself "
                f"({', '.join(own)}), and env.observations names none of it. Add one."
            )


WHOLE = ("env", "agent")
"""Tables with a prefix of their own; all other settings have flat names."""
GROUPS: dict[str, Any] = {
    f.name: f.default_factory for f in fields(TrainConfig) if f.name not in WHOLE
}
PLACES = {f.name: group for group, kind in GROUPS.items() for f in fields(kind)}
"""Which group each flat name is in."""


def _by_group(settings: Mapping[str, Any], complaint: str) -> dict[str, Any]:
    """Gather settings with flat names in tables of their groups."""
    parts: dict[str, Any] = {}
    for name, value in settings.items():
        if name in WHOLE:
            parts[name] = value
        elif name in PLACES:
            parts.setdefault(PLACES[name], {})[name] = value
        else:
            raise BadConfig(f"{complaint} {name!r}.{closest(name, PLACES)}")
    return parts


def preset(
    algorithm: str,
    task: str | None = None,
    backend: str = "mujoco",
    demo_path: str | Path | None = None,
) -> TrainConfig:
    """Return the settings that a run of this algorithm on this task begins with.

    Args:
        demo_path: Demonstrations that are there already: no others are recorded.
    """
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", algorithm, ALGORITHMS, "'maniple train --help'")
    row = ALGORITHMS[algorithm]
    task = task or RunConfig.task
    id = canonical(task)
    layers = [row.settings, *(more for at, more in row.by_task.items() if fnmatchcase(id, at))]
    settings = {name: value for layer in layers for name, value in layer.items()}
    merged: dict[str, dict[str, Any]] = {
        name: {k: v for layer in layers for k, v in layer.get(name, {}).items()}
        for name in ("env", "agent")
    }
    settings["agent"] = load(row.config)(**merged["agent"])
    if task_env(task) != EnvConfig():
        # A task that shows pictures by itself is learned from its state unless told otherwise.
        merged["env"] = {"cameras": (), "observations": ALL, **merged["env"]}
    if backend == "rlbench":
        # The experts play on MuJoCo.
        settings |= {"backend": backend, "demos": 0}
        merged["env"] = row.on_rlbench | merged["env"]
    if demo_path is not None:
        settings |= {"demo_path": Path(demo_path), "demos": 0}
    if row.acts_as_shown and not settings["demos"]:
        merged["env"]["control"] = None if demo_path is None else _control_in(Path(demo_path))
    settings["env"] = replace(task_env(task), **merged["env"])
    return TrainConfig.of(task=task, **settings)


def _control_in(demo_path: Path) -> str | None:
    """How recorded demonstrations act; None where they do not say, or say nothing that we know."""
    found = {read_origin(root).get("control") for root in datasets_in(demo_path)}
    control = found.pop() if len(found) == 1 else None
    return control if control in CONTROLS else None


def task_env(task: str) -> EnvConfig:
    """Return the settings that a task begins with by itself."""
    task = canonical(task)
    return EnvConfig(**getattr(find(task), "defaults", {})) if task in TASKS else EnvConfig()


def config_of(described: Mapping[str, Any]) -> TrainConfig:
    """Make a config from what a run folder's config.yaml says."""
    import cattrs

    settings = dict(described)
    if (name := settings.pop("algorithm", None)) not in ALGORITHMS:
        raise BadConfig(
            f"config.yaml names the algorithm {name!r}; it may be one of {sorted(ALGORITHMS)}."
        )
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(Path, lambda value, _: Path(value))
    kinds = {**GROUPS, "env": EnvConfig, "agent": load(ALGORITHMS[str(name)].config)}
    # Until version 0.2 none was a number of threads.
    settings["torch_threads"] = settings.get("torch_threads") or MachineConfig.torch_threads
    misfit = "config.yaml does not fit this version of maniple:"
    parts = {"env": {}, "agent": {}} | _by_group(settings, f"{misfit} it has no setting")
    try:
        return TrainConfig(**{k: converter.structure(v, kinds[k]) for k, v in parts.items()})
    except cattrs.BaseValidationError as error:
        raise BadConfig(f"{misfit} {'; '.join(cattrs.transform_error(error))}.") from None
    except (AttributeError, TypeError, KeyError) as error:
        raise BadConfig(f"{misfit} {one_line(error)}.") from None


def algorithm_of(config: TrainConfig) -> str:
    """Name the algorithm that a config belongs to."""
    kind = type(config.agent)
    where = f"{kind.__module__}:{kind.__qualname__}"
    return next(name for name, row in ALGORITHMS.items() if row.config == where)
