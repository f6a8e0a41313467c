"""maniple robots export: a robot as an MJCF file, to include in a scene of your own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro


@dataclass(frozen=True)
class Options:
    """Which robot, and where to."""

    robot: Annotated[str, tyro.conf.Positional]
    """A robot of 'maniple list --robots'."""

    file: Annotated[Path, tyro.conf.Positional]
    """The file to write, as in so101.xml."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Write the file, and say how to use it."""
    from maniple.core.atomic import write_text
    from maniple.core.errors import BadConfig
    from maniple.sim.robots.table import find_robot
    from maniple.sim.scene import compile_model, new_scene

    robot = find_robot(options.robot)
    spec = new_scene(robot.name, timestep_s=0.005)
    robot.add(spec, (0.0, 0.0, 0.0))
    model = compile_model(spec)
    try:
        write_text(options.file, spec.to_xml())
    except OSError as error:
        raise BadConfig(f"{options.file} cannot be written: {error.strerror}.") from None
    answer = {
        "robot": robot.name,
        "file": str(options.file),
        "joints": [model.joint(k).name for k in range(model.njnt)],
        "actuators": [model.actuator(k).name for k in range(model.nu)],
    }
    if not options.json:
        print(
            f"{robot.name} is in {options.file}: {model.njnt} joints, {model.nu} actuators.\n"
            f'Put it into a scene with <include file="{options.file.name}"/>.'
        )
    return answer
