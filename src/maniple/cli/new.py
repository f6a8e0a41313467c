"""maniple new task: write a file with a task of your own, its expert, and a test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from maniple.core.errors import BadConfig


@dataclass(frozen=True)
class Options:
    """What the task is called, and where its files go."""

    name: Annotated[str, tyro.conf.Positional]
    """Name of the task, as in WipeTable or wipe_table."""

    out: Path = Path()
    """Folder for the two files."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Write NAME.py and test_NAME.py, and print what to type next."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", options.name).replace("-", "_").lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", snake):
        raise BadConfig(f"{options.name!r} is no name for a file; use letters, digits and '_'.")
    title = "".join(word.capitalize() for word in snake.split("_"))
    files = {
        options.out / f"{snake}.py": TASK.format(title=title, snake=snake),
        options.out / f"test_{snake}.py": TEST.format(title=title, snake=snake),
    }
    for path in files:
        if path.exists():
            raise BadConfig(f"{path} exists already; choose another name or another --out.")
    options.out.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text)
    task = f"{snake}:mine/{title}-v0"
    if not options.json:
        print(f"wrote    {', '.join(map(str, files))}")
        print(f"try it   cd {options.out} && python -m pytest test_{snake}.py")
        print(f"train it maniple train sac --task {task}")
        print(f"film it  maniple bench --task {task} --num-envs 2 --steps 100 --record films")
    return {"task": task, "files": [str(path) for path in files]}


TASK = '''\
"""{title}: a task of my own."""

from typing import ClassVar

import numpy as np

import maniple
from maniple.envs.expert import Waypoint, WaypointExpert
from maniple.sim.scene import GREEN, add_camera, add_desk, add_marker

STEP_M = maniple.Task.ee_step_m


class {title}(maniple.Task):
    """Hold the fingertip at the green ball."""  # This line is the task's sentence.

    episode_steps = 60
    cameras = ("front",)
    # What the robot knows of itself: all that a policy on pictures sees besides them.
    proprioception = ("joints", "tip_pos")
    # The reward is the sum of the terms, each times its scale.
    scales: ClassVar = {{"near": 1.0, "success": 1.0, "time": -1.0}}

    def scene(self, spec):
        """Add what is around the arm."""
        add_desk(spec)
        add_marker(spec, "ball", 0.012, GREEN)
        add_camera(spec, "front", (0.6, -0.3, 0.4), (0.16, 0.0, 0.09), 42.0)

    def place(self, rng):
        """Draw where things begin, a row for every environment."""
        return {{"ball": rng.uniform([0.18, -0.08, 0.06], [0.25, 0.08, 0.14])}}

    def observe(self, s):
        """Return arrays with the environments first."""
        return {{"joints": s.qpos[:, :6], "tip_pos": s.pos("tip"), "ball_pos": s.pos("ball")}}

    def terms(self, s):
        """Return the named parts of the reward."""
        near = 1.0 - np.tanh(s.gap("tip", "ball") / 0.1)
        return {{"near": near, "success": self.success(s), "time": np.ones(s.rows)}}

    def success(self, s):
        """Within two centimetres."""
        return s.gap("tip", "ball") < 0.02


def expert(num_envs):
    """Go straight to the ball."""
    waypoints = [Waypoint(lambda obs: obs["ball_pos"], grip=1.0)]
    return WaypointExpert(waypoints, num_envs, STEP_M)


maniple.register("mine/{title}-v0", {title}, expert)
'''

TEST = '''\
"""What every task should hold, and what this one promises."""

import numpy as np
from gymnasium.utils.env_checker import check_env

import maniple

TASK = "{snake}:mine/{title}-v0"


def test_it_is_a_gymnasium_environment():
    """Spaces, seeds and signatures are right."""
    check_env(maniple.make(TASK), skip_render_check=True)


def test_the_expert_solves_it():
    """In nine of ten episodes, and chance does not."""
    assert solved(maniple.expert(TASK, 20).act) >= 18
    rng = np.random.default_rng(0)
    assert solved(lambda obs: rng.uniform(-1, 1, (20, 4)).astype(np.float32)) <= 4


def solved(act):
    """Count the rows that succeed in their first episode."""
    envs = maniple.make_vec(TASK, 20)
    obs, _ = envs.reset(seed=1)
    has_solved, has_ended = np.zeros(20, bool), np.zeros(20, bool)
    for _ in range(60):
        obs, _, terminated, truncated, info = envs.step(act(obs))
        has_solved |= info["success"] & ~has_ended
        has_ended |= terminated | truncated
    envs.close()
    return has_solved.sum()
'''
