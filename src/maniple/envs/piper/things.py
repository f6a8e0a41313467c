"""What the Piper's tasks are about: a banana, an apple, a bowl, furniture."""

from __future__ import annotations

import mujoco
import numpy as np

from maniple.sim.robots.chain import BOX, CAPSULE, CYLINDER, SPHERE, WORLD_BIT, Vec3
from maniple.sim.rotation import yaw_quat
from maniple.sim.scene import WOOD, Rgba

YELLOW: Rgba = (0.95, 0.80, 0.18, 1.0)
BROWN: Rgba = (0.30, 0.21, 0.12, 1.0)
APPLE_RED: Rgba = (0.78, 0.11, 0.12, 1.0)
CHINA: Rgba = (0.80, 0.86, 0.92, 1.0)
BANANA_R_M, APPLE_R_M = 0.017, 0.028
BANANA_KG, APPLE_KG = 0.05, 0.08
BOWL_R_M, BOWL_HIGH_M = 0.085, 0.045


def add_banana(spec: mujoco.MjSpec, pos: Vec3 = (0.0, 0.0, 0.0)) -> None:
    """Add a banana that lies on its side, its middle along x."""
    body = spec.worldbody.add_body(name="banana", pos=pos)
    body.add_freejoint(name="banana")
    bends = ((-0.085, 0.024), (-0.035, 0.0), (0.035, 0.0), (0.085, 0.024))
    radii = (BANANA_R_M - 0.002, BANANA_R_M, BANANA_R_M - 0.002)
    for k, radius in enumerate(radii):
        geom = body.add_geom(type=CAPSULE, size=[radius, 0, 0], rgba=YELLOW, mass=BANANA_KG / 3)
        geom.fromto = [*bends[k], 0.0, *bends[k + 1], 0.0]
        _touchable(geom)
    for k in (0, 3):
        tip = [bends[k][0] * 1.17, bends[k][1] * 1.3, 0.0]
        stub = body.add_geom(type=SPHERE, size=[0.008, 0, 0], pos=tip, rgba=BROWN, mass=1e-4)
        stub.contype = stub.conaffinity = 0


def add_apple(spec: mujoco.MjSpec, pos: Vec3 = (0.0, 0.0, 0.0)) -> None:
    """Add an apple that does not roll far."""
    body = spec.worldbody.add_body(name="apple", pos=pos)
    body.add_freejoint(name="apple")
    ball = body.add_geom(type=SPHERE, size=[APPLE_R_M, 0, 0], rgba=APPLE_RED, mass=APPLE_KG)
    _touchable(ball)
    ball.condim, ball.friction = 6, [1.2, 0.02, 0.01]
    stem = body.add_geom(type=CAPSULE, size=[0.002, 0, 0], rgba=BROWN, mass=1e-4)
    stem.fromto = [0, 0, APPLE_R_M - 0.002, 0.004, 0, APPLE_R_M + 0.010]
    stem.contype = stem.conaffinity = 0


def add_bowl(spec: mujoco.MjSpec) -> None:
    """Add a bowl that is put somewhere and stays there: a floor and a ring of staves."""
    body = spec.worldbody.add_body(name="bowl", mocap=True)
    floor = body.add_geom(type=CYLINDER, size=[BOWL_R_M - 0.015, 0.004, 0], pos=[0, 0, 0.004])
    floor.rgba = CHINA
    staves = 12
    for k in range(staves):
        angle = 2 * np.pi * k / staves
        out = BOWL_R_M - 0.006
        stave = body.add_geom(
            type=BOX,
            size=[0.004, out * np.tan(np.pi / staves) + 0.003, BOWL_HIGH_M / 2],
            pos=[out * np.cos(angle), out * np.sin(angle), BOWL_HIGH_M / 2],
            quat=yaw_quat(np.array([angle]))[0],
            rgba=CHINA,
        )
        stave.contype = stave.conaffinity = WORLD_BIT
    floor.contype = floor.conaffinity = WORLD_BIT


def add_board(spec: mujoco.MjSpec, pos: Vec3) -> None:
    """Add a cutting board, to be seen."""
    board = spec.worldbody.add_geom(type=BOX, size=[0.11, 0.16, 0.0015], pos=pos)
    board.rgba, board.contype, board.conaffinity = (0.62, 0.44, 0.28, 1.0), 0, 0


def add_table_top(
    spec: mujoco.MjSpec, pos: Vec3, half: tuple[float, float, float], legs: bool = True
) -> None:
    """Add a table whose top is a box, called 'table', on four legs on the floor at z = 0."""
    top = spec.worldbody.add_geom(name="table", type=BOX, size=half, pos=pos, rgba=WOOD)
    top.friction, top.condim = [2.0, 0.1, 0.01], 4
    top.contype = top.conaffinity = WORLD_BIT
    for sx in (-1, 1) if legs else ():
        for sy in (-1, 1):
            high = (pos[2] - half[2]) / 2
            at = [pos[0] + sx * (half[0] - 0.03), pos[1] + sy * (half[1] - 0.03), high]
            leg = spec.worldbody.add_geom(type=BOX, size=[0.02, 0.02, high], pos=at)
            leg.rgba, leg.contype, leg.conaffinity = (0.35, 0.33, 0.32, 1.0), 0, 0


def add_floor(spec: mujoco.MjSpec) -> None:
    """Add a floor at z = 0."""
    floor = spec.worldbody.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2.5, 2.5, 0.1]
    )
    floor.rgba = [0.70, 0.72, 0.74, 1.0]
    floor.contype = floor.conaffinity = WORLD_BIT


def _touchable(geom: mujoco.MjsGeom) -> None:
    geom.friction, geom.condim = [1.0, 0.45, 0.25], 4
    geom.contype = geom.conaffinity = WORLD_BIT
