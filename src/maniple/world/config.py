"""The settings of the three phases, in the sections of rl_config.yaml."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from maniple.core.checked_file import read_text, read_yaml_table
from maniple.core.errors import BadConfig, closest, one_line
from maniple.core.spec import check_picture_size
from maniple.run.config import at_least
from maniple.sim.perturbation_axes import checked

PHASES = ("teacher", "student", "adversarial")
SOURCES = ("mix", "pink", "random", "expert", "noisy_expert")
PRECISIONS = ("no", "bf16", "fp16")


@dataclass(frozen=True)
class TrainingConfig:
    """How long a phase trains, and how."""

    num_episodes: int = 100
    """Rounds of episodes: in each, every environment plays one."""

    steps_per_episode: int = 50
    """Actions in an episode."""

    batch_size: int | None = None
    """Stretches in an update, per rank; None: what suits the model."""

    learning_rate: float | None = None
    """None: what suits the model."""

    updates_per_episode: int = 10
    """Updates after every round of episodes."""

    sequence_length: int = 5
    """Steps of a stretch; gradients flow no further back."""

    gradient_accumulation: int = 1
    """Batches whose gradients are added up for one update."""

    mixed_precision: str = "no"
    """no, bf16, or fp16 (GPUs only)."""

    save_every: int = 50
    """Episodes between two checkpoints, each with samples and a video; 0: only at the end."""

    log_every: int = 10
    """Episodes between two lines of metrics."""

    held_out: int = 8
    """Episodes per environment row that are only for measuring."""

    buffer_frames: int = 60_000
    """Frames that are remembered; the oldest go first."""

    seed: int = 0
    """Root of all random numbers; every rank adds its own number."""

    max_minutes: float | None = None
    """End after this long; None: never."""

    torch_threads: int = 1
    """Threads of torch; more than one costs dearly on busy cores."""

    device: str = "auto"
    """cpu, cuda, or auto: a GPU where there is one."""

    def __post_init__(self) -> None:
        for name in ("num_episodes", "steps_per_episode", "batch_size", "gradient_accumulation",
                     "torch_threads", "held_out"):  # fmt: skip
            at_least(name, getattr(self, name), 1)
        for name in ("updates_per_episode", "save_every", "log_every", "seed", "max_minutes"):
            at_least(name, getattr(self, name), 0)
        at_least("sequence_length", self.sequence_length, 2)
        at_least("learning_rate", self.learning_rate, 0)
        if self.learning_rate == 0:
            raise BadConfig("learning_rate is 0; it must be larger, or nothing is learned.")
        _one_of("mixed_precision", self.mixed_precision, PRECISIONS)
        if self.steps_per_episode < self.sequence_length:
            raise BadConfig(
                f"steps_per_episode is {self.steps_per_episode}, but a stretch has "
                f"{self.sequence_length} steps: play longer episodes, or set --sequence-length."
            )
        if self.buffer_frames < self.steps_per_episode + 1:
            raise BadConfig(
                f"buffer_frames is {self.buffer_frames}, but an episode of "
                f"{self.steps_per_episode} steps has {self.steps_per_episode + 1} frames."
            )


@dataclass(frozen=True)
class EnvironmentConfig:
    """Where episodes come from."""

    task: str = "so101/PushCube-v0"
    """A task of 'maniple list'."""

    num_envs: int = 8
    """Environments at once; under several ranks, per rank."""

    cameras: tuple[str, ...] = ("front",)
    """Cameras that are predicted."""

    image_size: tuple[int, int] = (64, 64)
    """Height and width of the pictures; multiples of 16."""

    renderer: str = "auto"
    """What draws: fast, mujoco, splat, ... as 'make_vec' takes it."""

    control: str | None = None
    """How actions move the robot; None: the task's own."""

    arms: int | None = None
    """Arms that are driven, of a robot that has two; None: the task's choice."""

    base: bool = False
    """Drive the base too, of a robot that can move."""

    state: str = "own"
    """own: what the robot knows of itself; all: the simulator's truth too; none."""

    perturb: dict[str, float] = field(default_factory=dict)
    """How the world differs from episode to episode, as in: background 0.4 light 0.5."""

    engine: str = "auto"
    """native, process, serial, or auto."""

    workers: int | None = None
    """Worker processes of the process engine."""

    def __post_init__(self) -> None:
        at_least("num_envs", self.num_envs, 1)
        _one_of("state", self.state, ("own", "all", "none"))
        if not self.cameras:
            raise BadConfig("A world model needs a camera: name one, as in --cameras front.")
        if len(self.image_size) != 2 or any(side < 16 or side % 16 for side in self.image_size):
            raise BadConfig(f"image_size is {self.image_size}; both must be multiples of 16.")
        check_picture_size("image_size", self.image_size)
        object.__setattr__(self, "perturb", dict(checked(self.perturb)))
        for name in ("cameras", "image_size"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True)
class TeacherConfig:
    """The world model, and what it learns from."""

    output_dir: Path = Path("./outputs/teacher_rl")
    """Folder of the run."""

    model: str = "nano"
    """nano, small or base (pixels), or latent."""

    history: int = 4
    """Frames, and actions with the present one, that are seen at once."""

    heads: int = 5
    """Members of the ensemble whose disagreement tells what is not known."""

    decoder: bool = True
    """Let a latent model draw what it thinks, to look at; planning does not need it."""

    source: str = "mix"
    """Who plays: random, pink (noise that lasts), expert, or mix: pink, with the expert in a
    quarter of the episodes where the task has one that sees enough; noisy_expert: half pink, half
    the expert with noise of every strength, so that near misses are seen too."""

    dataset: Path | None = None
    """Learn from this LeRobot dataset instead of playing."""

    cache: Path | None = None
    """Keep the dataset's decoded pictures in this folder; the next run reads them from there."""

    def __post_init__(self) -> None:
        at_least("history", self.history, 2)
        at_least("heads", self.heads, 2)
        _one_of("source", self.source, SOURCES)


@dataclass(frozen=True)
class StudentConfig:
    """The explorer, and what it is rewarded for."""

    output_dir: Path = Path("./outputs/student_rl")
    """Folder of the run."""

    teacher_path: Path | None = None
    """A checkpoint of the teacher, or its run folder: checkpoint-500 or outputs/teacher_rl."""

    algorithm: str = "mpc"
    """mpc (plans for disagreement) or ppo (learns a policy; needs far more steps)."""

    port: str | None = None
    """Play with a policy server instead, such as ws://127.0.0.1:8000 (openpi's protocol)."""

    disagreement: float = 1.0
    """Weight of the ensemble's disagreement about what followed the action."""

    novelty: float = 3.0
    """Weight of taking the gripper, or a base that is driven, where it has not been; mpc only."""

    memory_approach: float = 0.0
    """Weight of the student's memory coming closer to the teacher's; ppo only."""

    uncertainty: float = 0.0
    """Weight of the teacher's uncertainty whether the task is solved; ppo only."""

    raw_error: float = 0.0
    """Weight of the teacher's error; ppo only. It rewards noise that nobody can predict."""

    action_cost: float = 0.01
    """Weight of the squared action, which is taken off."""

    horizon: int = 16
    """Steps that mpc plans ahead."""

    samples: int = 48
    """Plans that mpc compares in each iteration."""

    def __post_init__(self) -> None:
        _one_of("algorithm", self.algorithm, ("mpc", "ppo"))
        at_least("novelty", self.novelty, 0)
        at_least("horizon", self.horizon, 1)
        at_least("samples", self.samples, 4)


@dataclass(frozen=True)
class AdversarialConfig:
    """The explorer against the world model."""

    output_dir: Path = Path("./outputs/adversarial_rl")
    """Folder of the run."""

    teacher_checkpoint: Path | None = None
    """A checkpoint of the teacher, or its run folder."""

    student_checkpoint: Path | None = None
    """A checkpoint of the student to begin with; None: a new explorer."""

    total_iterations: int | None = None
    """Rounds of: the explorer plays, the model learns, the explorer learns; None: num_episodes."""

    warm_up: int = 5
    """Iterations of pink noise before the explorer plays."""

    replay_share: float = 0.5
    """Part of every batch that is the old data, so that it is not forgotten."""

    prioritise: bool = True
    """Draw the explorer's stretches in proportion to the model's error there."""

    constraint: float = 0.5
    """How strongly the explorer is held to actions that the data supports; 0: not at all."""

    guard_db: float = 0.5
    """Fall of quality on the frozen probe set after which the model is rolled back."""

    wander: float = 0.75
    """Last part of an episode within which every row goes over, at a step that is drawn, from the
    explorer to random actions: then what is far away is seen calmly too. 0: never; mpc only."""

    pool: int = 4
    """Explorers that are kept; an old one plays in every fourth round."""

    def __post_init__(self) -> None:
        at_least("total_iterations", self.total_iterations, 1)
        at_least("warm_up", self.warm_up, 0)
        at_least("constraint", self.constraint, 0)
        at_least("guard_db", self.guard_db, 0)
        at_least("pool", self.pool, 1)
        for name in ("replay_share", "wander"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadConfig(f"{name} is {getattr(self, name)}; it is a part, 0 to 1.")


@dataclass(frozen=True)
class LoggingConfig:
    """What is told, and where."""

    console_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR, on the screen."""

    file_level: str = "DEBUG"
    """The same for train.log in the run folder."""

    def __post_init__(self) -> None:
        for name in ("console_level", "file_level"):
            level = getattr(self, name).upper()
            _one_of(name, level, ("DEBUG", "INFO", "WARNING", "ERROR"))
            assert isinstance(logging.getLevelName(level), int)
            object.__setattr__(self, name, level)


@dataclass(frozen=True)
class WorldConfig:
    """Everything that a phase is run with."""

    training: TrainingConfig = field(default_factory=TrainingConfig)
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    student: StudentConfig = field(default_factory=StudentConfig)
    adversarial: AdversarialConfig = field(default_factory=AdversarialConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)


SECTIONS = {f.name: f.default_factory for f in fields(WorldConfig)}


def read_config(path: Path) -> WorldConfig:
    """Read an rl_config.yaml; what it does not name stays at its default."""
    return config_of(read_sections(path), str(path))


def read_sections(path: Path) -> dict[str, Any]:
    """Read the sections that a file names; one of comments only names none."""
    if not path.exists():
        raise BadConfig(f"There is no config file {path}.")
    lines = (line.strip() for line in read_text(path).splitlines())
    return read_yaml_table(path) if any(line and line[0] != "#" for line in lines) else {}


def config_of(described: Any, where: str = "config.yaml") -> WorldConfig:
    """Make a config from nested tables, refusing names that do not exist."""
    import cattrs

    if not isinstance(described, dict):
        raise BadConfig(f"{where} should hold a table of sections.")
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(Path, lambda value, _: Path(value))
    converter.register_structure_hook(bool, _switch)
    for section, values in described.items():
        if section not in SECTIONS:
            raise BadConfig(f"{where} has no section {section!r}.{closest(section, SECTIONS)}")
        known = [f.name for f in fields(SECTIONS[section])]  # type: ignore[arg-type]
        if values is not None and not isinstance(values, dict):
            raise BadConfig(
                f"{where}: the section {section} should hold a table of settings, not "
                f"{values!r:.60}."
            )
        for name in values or {}:
            if name not in known:
                raise BadConfig(
                    f"{where} has no setting {section}.{name}.{closest(name, known)} Settings of "
                    f"{section} are: {', '.join(known)}."
                )
    found: dict[str, Any] = {}
    for section, values in described.items():
        try:
            found[section] = converter.structure(values or {}, SECTIONS[section])  # type: ignore[arg-type]
        except BadConfig as error:
            raise BadConfig(f"{where}: {section}.{error}") from None
        except (cattrs.BaseValidationError, TypeError, ValueError) as error:
            raise BadConfig(f"{where}: {_told(error, section)}.") from None
    return WorldConfig(**found)


def _switch(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _told(error: Exception, section: str) -> str:
    """Say in one line which settings of a section could not be read."""
    import cattrs

    if not isinstance(error, cattrs.BaseValidationError):
        return f"{section}: {one_line(error)}"
    own = next((e for e in error.exceptions if isinstance(e, BadConfig)), None)
    if own is not None:
        return f"{section}.{one_line(own)}"
    lines = (line.replace(" @ $.", f": {section}.") for line in cattrs.transform_error(error))
    return "; ".join(lines)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadConfig(
            f"{name} is {value!r};{closest(value, allowed)} it may be one of: {', '.join(allowed)}."
        )
