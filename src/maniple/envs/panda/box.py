"""RLBench's box: 36 x 26 x 15 cm, with a lid that turns about x at its edge."""

from __future__ import annotations

import mujoco

from maniple.envs.panda.parts import Rgba, add_box, add_fixture, add_moving

HINGE = (0.0, -0.123, 0.149)
"""In the box's frame, which is at its middle, on the table."""
SHUT_RAD, OPEN_RAD = -0.2531, 2.365
"""What the joint reads when the lid lies level, and when it is thrown back."""
LID_M = 0.266
"""From the hinge to the lid's edge."""
CARD: Rgba = (0.76, 0.62, 0.44, 1.0)
LIGHT: Rgba = (0.84, 0.72, 0.54, 1.0)


def add_lidded_box(spec: mujoco.MjSpec) -> None:
    """Add the box; its joint is called box_joint."""
    box = add_fixture(spec, "box")
    add_box(box, (0.18, 0.13, 0.004), (0, 0, 0.004), CARD)
    for x in (-0.176, 0.176):
        add_box(box, (0.004, 0.125, 0.071), (x, 0, 0.071), CARD)
    for y in (-0.126, 0.116):
        add_box(box, (0.18, 0.004, 0.071), (0, y, 0.071), CARD)
    lid = add_moving(
        box, "box_joint", HINGE, (1, 0, 0), (SHUT_RAD, OPEN_RAD), damping=0.15, friction=0.02
    )
    # Drawn where the joint reads 0: the lid is a quarter of a radian above level.
    lid.quat = [0.99200, 0.12622, 0, 0]
    add_box(lid, (0.175, 0.134, 0.005), (0, 0.132, 0.005), LIGHT, 0.45)
