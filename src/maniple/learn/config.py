"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maniple.agents.bc import BCConfig
from maniple.agents.drq import DrQConfig
from maniple.agents.sac import SACConfig
from maniple.core.errors import BadConfig
from maniple.envs.config import EnvConfig
from maniple.registry import BACKENDS

AgentConfig = SACConfig | DrQConfig | BCConfig
KINDS: dict[str, type] = {"sac": SACConfig, "drq": DrQConfig, "bc": BCConfig}


@dataclass(frozen=True)
class TrainConfig:
    """What is trained on which task, for how long, and what is kept of it."""

    task: str = "so101/Reach-v0"
    """A task of 'maniple list', or any Gymnasium id."""

    backend: str = "mujoco"
    """mujoco, or rlbench: the real one, on CoppeliaSim, a process for each environment."""

    num_envs: int = 16
    """Environments at once; under torchrun, per rank."""

    max_steps: int = 100_000
    """Environment steps in all, over all rows."""

    max_minutes: float | None = None
    """Wall time after which the run ends by itself; None: never."""

    seed: int = 0
    """Root of all random numbers of the run; evaluation has seeds of its own."""

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

    demo_path: Path | None = None
    """Folder of demonstrations, as 'maniple demos record' writes it."""

    demos: int = 0
    """Episodes to record from the task's scripted expert before training."""

    demo_share: float = 0.5
    """Part of every batch that is demonstrations."""

    log_period: int = 1_000
    """Environment steps between two lines of metrics."""

    eval_period: int = 2_000
    """Environment steps between two evaluations; 0: only at the end."""

    eval_n_trajs: int = 50
    """Episodes of an evaluation."""

    checkpoint_period: int = 20_000
    """Environment steps between two checkpoints; 0: only at the end."""

    stop_at_success: float | None = None
    """End when an evaluation reaches this success rate; None: never."""

    overlap: bool = True
    """Step the environments while the learner updates; the numbers are the same every time."""

    engine: str = "auto"
    """native, process, serial, or auto."""

    workers: int | None = None
    """Worker processes of the process engine."""

    torch_threads: int | None = None
    """Threads of the learner; None: one or all cores of this rank, whichever is faster just now."""

    device: str = "auto"
    """cpu, cuda, or auto: a GPU where there is one."""

    env: EnvConfig = field(default_factory=EnvConfig)
    """How the task is run."""

    agent: AgentConfig = field(default_factory=SACConfig)
    """How the agent learns."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "max_steps", "batch_size", "steps_per_update", "n_step"):
            if getattr(self, name) < 1:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be 1 or larger.")
        for name in ("utd_ratio", "random_steps", "training_starts", "demos", "eval_n_trajs"):
            if getattr(self, name) < 0:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be 0 or larger.")
        if self.backend not in BACKENDS:
            raise BadConfig(
                f"backend is {self.backend!r}; it may be one of: {', '.join(BACKENDS)}."
            )
        if self.backend == "rlbench" and self.demos:
            raise BadConfig(
                "The experts play on MuJoCo. Record demonstrations with 'maniple demos record "
                "--backend rlbench', then train with --demos 0 --demo-path FOLDER."
            )
        if self.eval_n_trajs == 0 and self.stop_at_success is not None:
            raise BadConfig("stop_at_success needs evaluations: set eval_n_trajs above 0.")
        if self.training_starts < self.num_envs:
            object.__setattr__(self, "training_starts", self.num_envs)


def config_of(described: dict[str, Any]) -> TrainConfig:
    """Make a config from what a run folder's config.yaml says."""
    import cattrs

    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(Path, lambda value, _: Path(value))
    # Which agent's settings these are is told by the algorithm's name, not by their shape.
    converter.register_structure_hook(AgentConfig, lambda value, _: value)
    settings = dict(described)
    kind = KINDS.get(str(settings.pop("algorithm", None)))
    if kind is None:
        raise BadConfig(f"config.yaml names no algorithm; it may be one of {sorted(KINDS)}.")
    agent_settings = settings.pop("agent", {})
    try:
        agent = converter.structure(agent_settings, kind)
        config = converter.structure(settings, TrainConfig)
    except cattrs.BaseValidationError as error:
        lines = "; ".join(cattrs.transform_error(error))
        raise BadConfig(f"config.yaml does not fit this version of maniple: {lines}.") from None
    return replace(config, agent=agent)


def kind_of(config: AgentConfig) -> str:
    """Name the algorithm that an agent's config belongs to."""
    return next(name for name, kind in KINDS.items() if type(config) is kind)
