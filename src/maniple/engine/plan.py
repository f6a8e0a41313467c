"""Choose the engine that steps environments, and build it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gymnasium.vector import AutoresetMode

from maniple.core.errors import BadConfig, unknown
from maniple.core.group import Recipe
from maniple.core.rank import Rank
from maniple.engine.config import ProcessConfig, missing_for_workers

if TYPE_CHECKING:
    from maniple.engine.vector import Engine

ENGINES = ("auto", "native", "process", "serial")


@dataclass(frozen=True)
class Plan:
    """What make_vec builds, with every choice made."""

    recipe: Recipe
    num_envs: int
    engine: str
    threads: int
    process: ProcessConfig | None


def check(num_envs: int, engine: str, workers: int | None, threads: int | None) -> None:
    """Refuse what no engine can be."""
    if not isinstance(num_envs, int) or isinstance(num_envs, bool) or num_envs < 1:
        raise BadConfig(f"num_envs is {num_envs!r}; it must be a whole number, 1 or larger.")
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES, f"one of {ENGINES}")
    for name, value in (("threads", threads), ("workers", workers)):
        if value is not None and value < 1:
            raise BadConfig(f"{name} is {value}; it must be 1 or larger.")


def take_process_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take the settings of `ProcessConfig` out of the options of an environment."""
    names = {f.name for f in fields(ProcessConfig)} - {"workers", "preload"}
    return {name: options.pop(name) for name in list(options) if name in names}


def choose(
    made_of: Recipe,
    num_envs: int,
    engine: str,
    workers: int | None,
    threads: int | None,
    process_options: dict[str, Any],
) -> Plan:
    """Choose the engine and its settings by what the environment needs."""
    if made_of.needs_own_process:
        if engine not in ("auto", "process") or workers not in (None, num_envs):
            raise BadConfig(
                f"CoppeliaSim runs once per process: use engine='process' with {num_envs} "
                "workers, or leave both out."
            )
        workers = num_envs
    if engine == "auto":
        engine = made_of.preferred_engine(num_envs, workers)
        if engine == "process" and workers is None and missing_for_workers():
            engine = "serial"
    if engine == "process" and (missing := missing_for_workers()):
        raise BadConfig(
            f"The process engine runs on Linux only: this system has no {missing}. Use "
            "engine='native', or 'serial' for environments of others."
        )
    cpus, process = Rank.here().num_cpus(), None
    if engine == "process":
        wanted = made_of.process_options()
        # Variables that the user sets are added to those that the environment needs.
        environment = {**wanted.get("environment", {}), **process_options.get("environment", {})}
        settings = {**wanted, **process_options, "environment": environment}
        count = workers or min(num_envs, cpus)
        process = ProcessConfig(workers=count, preload=made_of.preload, **settings)
    elif workers is not None or process_options:
        stray = "workers" if workers is not None else next(iter(process_options))
        raise BadConfig(f"{stray} belongs to the process engine; add engine='process'.")
    threads = threads or (1 if engine == "serial" else cpus)
    return Plan(made_of, num_envs, engine, threads, process)


def build(plan: Plan, mode: AutoresetMode) -> Engine:
    """Start what was chosen."""
    if plan.process is not None:
        from maniple.engine.process import ProcessEngine

        return ProcessEngine(plan.recipe, plan.num_envs, mode, plan.process)
    from maniple.engine.local import LocalEngine

    is_serial = plan.engine == "serial"
    return LocalEngine(plan.recipe, plan.num_envs, plan.threads, mode, one_by_one=is_serial)


def autoreset_mode(given: Any) -> AutoresetMode:
    """Return Gymnasium's mode from its name, in any spelling."""
    if isinstance(given, AutoresetMode):
        return given
    for mode in AutoresetMode:
        if str(given).replace("_", "").lower() == mode.value.lower():
            return mode
    raise BadConfig(
        f"autoreset_mode is {given!r}; it may be one of: {[mode.value for mode in AutoresetMode]}."
    )
