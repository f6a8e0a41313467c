"""maniple eval --planner world: reach goals by planning in a trained world model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, one_line
from maniple.core.optional import require

STEPS = 60


def evaluate_planner(options: Any) -> dict[str, Any]:
    """Plan towards the goals that the options name, and tell how close it came."""
    require("torch")
    from maniple.world.goal_planner import GoalPlanner
    from maniple.world.make import make_envs
    from maniple.world.planning import GOALS, Goals, compare
    from maniple.world.teacher_checkpoint import load_teacher

    teacher = load_teacher(options.checkpoint, "--checkpoint")
    rows, goal = options.episodes, options.goal
    if goal not in (*GOALS, "reward") and not Path(goal).suffix:
        raise BadConfig(f"goal is {goal!r}; it may be pink, expert, reward, or a PNG of the goal.")
    drawn = {} if options.renderer is None else {"renderer": options.renderer}
    envs = make_envs(teacher.config, rows, max_episode_steps=10 * STEPS, perturb={}, **drawn)
    try:
        planner = GoalPlanner(teacher.model, envs.action_spec, seed=options.seed)
        seed = 2_000_000_000 + options.seed * 1_000_000
        answer = {"task": teacher.config.environment.task, "goal": goal,
                  "checkpoint": str(teacher.checkpoint.path)}  # fmt: skip
        if goal in GOALS:
            found = compare(Goals(envs, goal, seed), planner, STEPS, options.seed)
            answer |= {name: planned.summary() for name, planned in found.items()}
        else:
            if goal != "reward":
                picture = _picture(Path(goal), teacher.shapes)
                planner.aim({n: np.repeat(picture[None], rows, 0) for n in teacher.shapes.cameras})
            answer |= _play(envs, planner, seed)
    finally:
        envs.close()
    if not options.json:
        _tell(answer)
    return answer


def _play(envs: Any, planner: Any, seed: int) -> dict[str, Any]:
    """Play one episode per row; count those in which the task was solved."""
    obs, _ = envs.reset(seed=seed)
    planner.reset(np.ones(envs.num_envs, np.bool_))
    solved, earned = np.zeros(envs.num_envs, np.bool_), np.zeros(envs.num_envs)
    for _ in range(STEPS):
        obs, reward, _, _, info = envs.step(planner.act(envs.named(obs)))
        earned += reward
        solved |= np.asarray(info.get("success", solved), np.bool_)
    return {"success_rate": float(solved.mean()), "return_mean": float(earned.mean())}


def _picture(path: Path, shapes: Any) -> NDArray[np.uint8]:
    """Read a PNG of the model's own size."""
    import av
    from av.error import FFmpegError

    if not path.exists():
        raise BadConfig(f"There is no picture {path}.")
    try:
        with av.open(str(path)) as file:
            picture = np.asarray(next(file.decode(video=0)).to_ndarray(format="rgb24"), np.uint8)
    except (FFmpegError, OSError, IndexError, StopIteration) as error:
        raise BadConfig(f"{path} cannot be read as a picture: {one_line(error)}.") from None
    if picture.shape != (shapes.height, shapes.width, 3):
        raise BadConfig(
            f"{path} is {picture.shape[1]} x {picture.shape[0]} pixels; the model sees "
            f"{shapes.width} x {shapes.height}."
        )
    return picture


def _tell(answer: dict[str, Any]) -> None:
    print(f"{answer['task']}, planning in {answer['checkpoint']}, goal {answer['goal']}")
    for name, value in answer.items():
        if isinstance(value, dict):
            near, close = value["within_3cm"], value["within_5cm"]
            ways = f"median {value['final_median_cm']:.1f} cm (from {value['start_median_cm']:.1f})"
            print(
                f"{name:>8}: {near:.0%} within 3 cm, {close:.0%} within 5 cm of "
                f"{value['goals']:.0f} goals, {ways}, {value['ms_per_decision']:.1f} ms each"
            )
        elif isinstance(value, float):
            print(f"{name:>12}: {value:.3g}")
