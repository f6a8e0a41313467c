"""Every robot by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maniple.core.errors import BadConfig, unknown
from maniple.core.lookup import load

if TYPE_CHECKING:
    from maniple.sim.robots.robot import Robot

ROBOTS: dict[str, str] = {
    "so101": "maniple.sim.robots.so101:SO101",
    "panda": "maniple.sim.robots.panda:PANDA",
    "piper": "maniple.sim.robots.piper:PIPER",
    "go2_piper": "maniple.sim.robots.go2_piper:GO2_PIPER",
    "mobile_piper": "maniple.sim.robots.mobile_piper:MOBILE_PIPER",
}


def find_robot(robot: str | Robot) -> Robot:
    """Return a robot by its name, by 'module:attribute', or as it is.

    Raises:
        UnknownName: No robot has this name.
    """
    if not isinstance(robot, str):
        return robot
    where = robot if ":" in robot else ROBOTS.get(robot)
    if where is None:
        raise unknown("robot", robot, ROBOTS, "'maniple list --robots'")
    try:
        return load(where)
    except (ImportError, AttributeError) as error:
        raise BadConfig(
            f"The robot {robot!r} cannot be loaded: {error}. Robots are: {', '.join(ROBOTS)}; one "
            "of your own is 'module:NAME'."
        ) from error
