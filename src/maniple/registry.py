"""Tables of every task and robot, and the functions that make environments of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.core.errors import BadConfig, UnknownName, closest, unknown
from maniple.core.lookup import load
from maniple.sim.robots.table import ROBOTS, find_robot

__all__ = ["EXPERTS", "ROBOTS", "TASKS", "expert", "find", "find_robot", "make", "make_vec"]

if TYPE_CHECKING:
    from maniple.core.group import Recipe
    from maniple.engine.vector import VectorEnv
    from maniple.envs.env import ManipleEnv

TASKS: dict[str, str] = {
    "LeRobot-v0": "maniple.envs.so101.lerobot:LeRobot",
    "so101/Reach-v0": "maniple.envs.so101.reach:Reach",
    "so101/PushCube-v0": "maniple.envs.so101.push_cube:PushCube",
    "so101/LiftCube-v0": "maniple.envs.so101.lift_cube:LiftCube",
    "so101/StackCubes-v0": "maniple.envs.so101.stack_cubes:StackCubes",
}

PIPER = {
    "PiperMobileRobot-v0": ("mobile_robot:PiperMobileRobot", "pick_banana"),
    "piper/Reach-v0": ("reach:Reach", "reach"),
    "piper/AppleInBowl-v0": ("fruit_in_bowl:AppleInBowl", "apple_in_bowl"),
    "piper/BananaInBowl-v0": ("fruit_in_bowl:BananaInBowl", "banana_in_bowl"),
    "go2_piper/AppleInBowl-v0": ("fruit_in_bowl:DogAppleInBowl", "dog_apple_in_bowl"),
    "go2_piper/BananaInBowl-v0": ("fruit_in_bowl:DogBananaInBowl", "dog_banana_in_bowl"),
    "mobile_piper/AppleInBowl-v0": ("fruit_in_bowl:WheelsAppleInBowl", "wheels_apple_in_bowl"),
    "mobile_piper/BananaInBowl-v0": ("fruit_in_bowl:WheelsBananaInBowl", "wheels_banana_in_bowl"),
    "mobile_piper/HandOver-v0": ("hand_over:HandOver", "hand_over"),
}
"""Each task's class in envs/piper, and its expert in envs/piper/experts.py."""

EXPERTS: dict[str, str] = {
    "so101/Reach-v0": "maniple.envs.so101.experts:reach",
    "so101/PushCube-v0": "maniple.envs.so101.experts:push_cube",
    "so101/LiftCube-v0": "maniple.envs.so101.experts:lift_cube",
    "so101/StackCubes-v0": "maniple.envs.so101.experts:stack_cubes",
}

# RLBench's names: each is a file in envs/panda/tasks with a class of that name, and an expert.
RLBENCH = (
    "reach_target", "push_button", "pick_and_lift", "slide_block_to_target", "open_drawer",
    "close_drawer", "take_lid_off_saucepan", "close_box", "stack_blocks", "push_buttons",
    "slide_block_to_color_target", "reach_and_drag", "insert_onto_square_peg",
    "put_item_in_drawer", "put_money_in_safe", "close_jar", "open_box", "light_bulb_in",
    "put_rubbish_in_bin", "press_switch", "turn_tap", "meat_off_grill",
    "put_groceries_in_cupboard", "stack_cups", "place_wine_at_rack_location",
    "sweep_to_dustpan_of_size", "lamp_on", "block_pyramid", "open_microwave", "toilet_seat_down",
)  # fmt: skip

for _name in RLBENCH:
    _class = "".join(word.capitalize() for word in _name.split("_"))
    TASKS[f"panda/{_class}-v0"] = f"maniple.envs.panda.tasks.{_name}:{_class}"
    EXPERTS[f"panda/{_class}-v0"] = f"maniple.envs.panda.tasks.{_name}:expert"

for _id, (_where, _expert) in PIPER.items():
    TASKS[_id] = f"maniple.envs.piper.{_where}"
    EXPERTS[_id] = f"maniple.envs.piper.experts:{_expert}"

BACKENDS = ("mujoco", "rlbench")


def canonical(task: str) -> str:
    """Return the id of a task that is called as people call it.

    'OpenDrawer', 'open_drawer' and 'open-drawer' are all 'panda/OpenDrawer-v0'. 'module:id' is a
    task that a module of the user's registers, and keeps its name. A name that is no task's is
    returned as it is.
    """
    if task in TASKS:
        return task
    if ":" in task:
        return _import_own(task)
    plain = _plain(task)
    return next((id for id in TASKS if _plain(id) == plain), task)


def task_in_file(task: str, what: str) -> str:
    """Return a task that a file names: a file alone never has a module imported.

    Args:
        what: What the file is, for the message.
    """
    if ":" in task and task not in TASKS:
        raise BadConfig(f"{what} is of a task of your own: add --task {task:.80}")
    return task


def _import_own(task: str) -> str:
    """Import the module of 'module:id', which registers the task; return that name."""
    module, _, id = task.partition(":")
    import_module(module)
    if id in TASKS:
        # Also known by its whole name: a run folder must say where to find its task.
        TASKS[task], _own[task] = TASKS[id], find(id)
        if id in EXPERTS:
            EXPERTS[task] = EXPERTS[id]
        if id in _own_experts:
            _own_experts[task] = _own_experts[id]
    elif not _is_gymnasium_id(id):
        there = [known for known, where in TASKS.items() if where.startswith(f"{module}:")]
        names = f" It registers: {', '.join(there)}." if there else ""
        raise UnknownName(f"The module {module!r} registers no task {id!r}.{names}")
    return task


def import_module(name: str) -> None:
    """Import a module of the user's; the working folder is searched last."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise BadConfig(f"The module {name!r} cannot be imported: {error}.") from error
        raise UnknownName(
            f"There is no module {name!r} in {here} nor where Python looks. Type the name without "
            ".py, in the folder where the file is."
        ) from None
    except Exception as error:
        raise BadConfig(
            f"The module {name!r} cannot be imported: {type(error).__name__}: {error}."
        ) from error


def _plain(task: str) -> str:
    """A name without its robot, version, capitals, dashes and underscores."""
    name = task.rpartition("/")[2].lower()
    head, _, version = name.rpartition("-v")
    name = head if head and version.isdigit() else name
    return name.replace("-", "").replace("_", "")


def find(task: str) -> type:
    """Return a task's class by its id, or by its name alone."""
    return _load(TASKS, "task", canonical(task), "'maniple list'")


def expert(task: str, num_envs: int, control: str | None = None) -> Any:
    """Return the scripted expert of a task, for a batch of environments.

    Args:
        control: How the environments are acted in, where that is not the task's own way.
    """
    task = canonical(task)
    if task not in EXPERTS:
        find(task)
        raise BadConfig(f"{task} has no scripted expert. Tasks with one: {', '.join(EXPERTS)}.")
    scripted = _load(EXPERTS, "expert", task, "'maniple list'")(num_envs)
    own = getattr(find(task), "control", None)
    if control is None or control == own:
        return scripted
    if not hasattr(scripted, "acting_by"):
        raise BadConfig(f"The scripted expert of {task} acts by {own!r}, not by {control!r}.")
    return scripted.acting_by(control)


def register(id: str, task: type, expert: Callable[[int], Any] | None = None) -> None:
    """Make a task of your own known to gymnasium.make, gymnasium.make_vec and maniple.

    On the command line it is 'module:id': the module is imported, and registers it.

    Args:
        id: A Gymnasium id, as in 'mine/Wave-v0'.
        task: A batched `Task`, or a per-env `ExtendedTask` class.
        expert: Makes a scripted expert for a number of environments.
    """
    import gymnasium  # noqa: F401  (importing it registers our own table first)

    TASKS[id] = f"{task.__module__}:{task.__qualname__}"
    _own[id] = task
    if expert is not None:
        EXPERTS[id] = f"{task.__module__}:expert"
        _own_experts[id] = expert
    _register_gymnasium(id)


def list_tasks(robot: str | None = None) -> list[str]:
    """Return the ids of all tasks, or of those of one robot, in the order of the table."""
    if robot is None:
        return list(TASKS)
    find_robot(robot)
    return [id for id in TASKS if _robot_name(find(id)) == robot]


def _robot_name(task: type) -> str | None:
    # A per-environment task brings a model of its own and names no robot.
    return task().robot.name if hasattr(task, "robot") else None


def make(id: str, **options: Any) -> ManipleEnv:
    """Make a single environment, as `gymnasium.make` does without its wrappers."""
    return _make(id, options, is_limited=True)


def make_for_gymnasium(id: str, **options: Any) -> ManipleEnv:
    """Make a single environment whose episodes are truncated by Gymnasium's TimeLimit."""
    return _make(id, options, is_limited=False)


def _make(id: str, options: dict[str, Any], is_limited: bool) -> ManipleEnv:
    from maniple.envs.env import ManipleEnv

    made_of = recipe(id, options)
    if made_of.needs_own_process:
        raise BadConfig(
            "CoppeliaSim needs a process of its own: use make_vec(id, 1, backend='rlbench')."
        )
    return ManipleEnv(made_of, is_limited)


def make_vec(
    id: str | Callable[..., Any],
    num_envs: int = 1,
    *,
    engine: str = "auto",
    workers: int | None = None,
    threads: int | None = None,
    autoreset_mode: Any = "NextStep",
    copy_obs: bool = True,
    **options: Any,
) -> VectorEnv:
    """Make many environments that are stepped as one.

    Args:
        id: A task of 'maniple list', any other Gymnasium id, or a function that makes an
            environment.
        num_envs: How many; under torchrun, per rank.
        engine: native (this process, MuJoCo's threads), process (worker processes), serial (one
            row after the other, for a debugger), or auto: native for tasks without cameras,
            process for the rest.
        workers: Worker processes; None: this rank's share of the cores.
        threads: Threads of the native engine; None: this rank's share of the cores.
        autoreset_mode: Gymnasium's NextStep, SameStep or Disabled.
        copy_obs: Return copies; False gives read-only views that stay valid for one more step.
        options: Settings of the environment, see `EnvConfig`, and of the process engine, see
            `ProcessConfig`. backend='rlbench' runs a task on CoppeliaSim, see `RLBenchConfig`.
    """
    from maniple.engine import plan
    from maniple.engine.lifetime import follow_launcher
    from maniple.engine.vector import VectorEnv

    plan.check(num_envs, engine, workers, threads)
    mode = plan.autoreset_mode(autoreset_mode)
    follow_launcher()
    spec = _spec(id, options)
    process_options = plan.take_process_options(options)
    made_of = recipe(id, options)
    chosen = plan.choose(made_of, num_envs, engine, workers, threads, process_options)
    envs = VectorEnv(plan.build(chosen, mode), chosen.engine, mode, copy_obs)
    envs.spec = spec
    return envs


def _spec(id: str | Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return Gymnasium's description of what is made, None if Gymnasium does not know it."""
    import copy

    import gymnasium

    spec = gymnasium.registry.get(canonical(id)) if isinstance(id, str) else None
    if spec is not None:
        spec = copy.copy(spec)
        spec.kwargs = {**spec.kwargs, **options}
    return spec


def recipe(id: str | Callable[..., Any], options: dict[str, Any]) -> Recipe:
    """Return the picklable description of an environment."""
    from maniple.envs.config import EnvConfig
    from maniple.envs.extended import ExtendedRecipe, is_extended
    from maniple.envs.task_recipe import TaskRecipe

    backend = options.pop("backend", "mujoco")
    if backend not in BACKENDS:
        raise UnknownName(
            f"No backend is named {backend!r}.{closest(str(backend), BACKENDS)} "
            f"There are: {', '.join(BACKENDS)}."
        )
    if backend == "rlbench":
        from maniple.envs.rlbench.recipe import RLBenchRecipe

        return RLBenchRecipe.of(str(id), _renamed(options, "control", "arm_mode"))
    if not isinstance(id, str) or (canonical(id) not in TASKS and _is_gymnasium_id(id)):
        return _hosted_recipe(id, options)
    task = find(id)
    settings = _renamed(options, "arm_mode", "control")
    if is_extended(task):
        return ExtendedRecipe(task, EnvConfig.of(settings))
    return TaskRecipe.of(task, settings)


def _renamed(options: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Let both backends take the arm's mode by RLBench's name and by ours."""
    if old not in options:
        return options
    if new in options:
        raise BadConfig(f"{old} and {new} mean the same; give one of them.")
    return {new if name == old else name: value for name, value in options.items()}


def _hosted_recipe(id: str | Callable[..., Any], options: dict[str, Any]) -> Recipe:
    from maniple.envs.hosted import HostedRecipe

    if not (isinstance(id, str) or callable(id)):
        raise BadConfig(f"{id!r} is neither a task's id nor a function that makes an environment.")
    return HostedRecipe.of(id, options)


def _is_gymnasium_id(id: str) -> bool:
    import gymnasium

    # Gymnasium takes 'module:id' too, and imports the module where the environment is made.
    return id.rpartition(":")[2] in gymnasium.registry


def register_all() -> None:
    """Register every task of the table with Gymnasium."""
    for id in TASKS:
        _register_gymnasium(id)


_own: dict[str, type] = {}
_own_experts: dict[str, Callable[[int], Any]] = {}


def _register_gymnasium(id: str) -> None:
    from functools import partial

    import gymnasium

    from maniple.envs.task_spec import LIMITS, TaskSpec

    single, vector = partial(make_for_gymnasium, id), partial(make_vec, id)
    gymnasium.register(id, entry_point=single, vector_entry_point=vector)
    LIMITS[id] = partial(_episode_steps, id)
    gymnasium.registry[id] = TaskSpec(id, entry_point=single, vector_entry_point=vector)


def _episode_steps(id: str) -> int | None:
    """Return a task's own time limit."""
    return getattr(find(id), "episode_steps", None)


def _load(table: dict[str, str], kind: str, name: str, listing: str) -> Any:
    if name in _own and table is TASKS:
        return _own[name]
    if name in _own_experts and table is EXPERTS:
        return _own_experts[name]
    if name not in table:
        raise unknown(kind, name, table, listing)
    return load(table[name])
