"""Compose MuJoCo scenes out of furniture, objects and a robot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import mujoco
from numpy.typing import NDArray

from maniple.core.errors import BadModel
from maniple.sim.robots.chain import BOX, SPHERE, WORLD_BIT, Vec3
from maniple.sim.rotation import look_quat

ARENA_BYTES = 1 << 20

Rgba = tuple[float, float, float, float]

RED: Rgba = (0.85, 0.16, 0.13, 1.0)
GREEN: Rgba = (0.18, 0.68, 0.29, 1.0)
BLUE: Rgba = (0.16, 0.38, 0.82, 1.0)
WOOD: Rgba = (0.80, 0.67, 0.52, 1.0)
WHITE: Rgba = (0.94, 0.94, 0.92, 1.0)


def new_scene(
    name: str,
    timestep_s: float,
    integrator: mujoco.mjtIntegrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    cone: mujoco.mjtCone = mujoco.mjtCone.mjCONE_ELLIPTIC,
    impratio: float = 10.0,
) -> mujoco.MjSpec:
    """Return an empty, lit scene."""
    spec = mujoco.MjSpec()
    spec.modelname = name
    spec.compiler.degree = False
    # Each row has an arena of its own; MuJoCo's guess would be 14 MB, of which 0.1 are used.
    spec.memory = ARENA_BYTES
    spec.option.timestep = timestep_s
    spec.option.integrator = integrator
    spec.option.cone = cone
    spec.option.impratio = impratio
    # What shadows and clipping planes are measured with; a lone plane would stretch it.
    spec.stat.extent = 1.0
    spec.visual.headlight.ambient = [0.40, 0.40, 0.40]
    spec.visual.headlight.diffuse = [0.22, 0.22, 0.22]
    spec.visual.headlight.specular = [0.05, 0.05, 0.05]
    spec.visual.map.znear = 0.005
    spec.visual.map.zfar = 30.0
    spec.visual.global_.offwidth = 1920
    spec.visual.global_.offheight = 1440
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.72, 0.80, 0.88],
        rgb2=[0.93, 0.94, 0.95],
        width=64,
        height=384,
    )
    light = spec.worldbody.add_light(
        pos=[0.5, -0.6, 1.9], dir=[-0.25, 0.35, -1.0], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    )
    light.diffuse, light.specular, light.castshadow = [0.55, 0.55, 0.52], [0.15, 0.15, 0.15], True
    return spec


def add_desk(spec: mujoco.MjSpec, height_m: float = 0.0, half: float = 0.6) -> None:
    """Add a desk top without edges: a plane, which collides at half the price of a box."""
    spec.worldbody.add_geom(
        name="desk",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        pos=[0.2, 0, height_m],
        size=[half, half, 0.1],
        rgba=WOOD,
        friction=[1.0, 0.01, 0.001],
        contype=WORLD_BIT,
        conaffinity=WORLD_BIT,
    )


def add_table(spec: mujoco.MjSpec, height_m: float, half: tuple[float, float]) -> None:
    """Add a table with edges, legs and a floor below it."""
    world = spec.worldbody
    world.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[2.5, 2.5, 0.1],
        rgba=[0.70, 0.72, 0.74, 1],
    )
    thick = 0.025
    world.add_geom(
        name="table",
        type=BOX,
        pos=[0, 0, height_m - thick],
        size=[*half, thick],
        rgba=WOOD,
        friction=[1.0, 0.005, 0.0001],
    )
    for sx in (-1, 1):
        for sy in (-1, 1):
            world.add_geom(
                type=BOX,
                pos=[sx * (half[0] - 0.04), sy * (half[1] - 0.04), height_m / 2 - thick],
                size=[0.025, 0.025, height_m / 2 - thick],
                rgba=[0.35, 0.33, 0.32, 1],
                contype=0,
                conaffinity=0,
            )


def add_box(
    spec: mujoco.MjSpec,
    name: str,
    half: Vec3,
    rgba: Rgba,
    pos: Vec3,
    mass_kg: float,
    friction: float = 1.0,
) -> None:
    """Add a free box; its joint has the same name."""
    body = spec.worldbody.add_body(name=name, pos=pos)
    body.add_freejoint(name=name)
    body.add_geom(
        name=name,
        type=BOX,
        size=half,
        rgba=rgba,
        mass=mass_kg,
        friction=[friction, 0.01, 0.001],
        condim=4,
        contype=WORLD_BIT,
        conaffinity=WORLD_BIT,
    )


def add_marker(
    spec: mujoco.MjSpec, name: str, radius_m: float, rgba: Rgba, pos: Vec3 = (0, 0, 0)
) -> None:
    """Add a ball that touches nothing and can be put anywhere: a goal to be seen."""
    body = spec.worldbody.add_body(name=name, pos=pos, mocap=True)
    body.add_geom(
        name=name, type=SPHERE, size=[radius_m, 0, 0], rgba=rgba, contype=0, conaffinity=0
    )


def add_disc(spec: mujoco.MjSpec, name: str, radius_m: float, rgba: Rgba, pos: Vec3) -> None:
    """Add a flat round goal on a surface, which touches nothing."""
    body = spec.worldbody.add_body(name=name, pos=pos, mocap=True)
    body.add_geom(
        name=name,
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        size=[radius_m, 0.0008, 0],
        rgba=rgba,
        contype=0,
        conaffinity=0,
    )


def add_camera(
    spec: mujoco.MjSpec,
    name: str,
    pos: Sequence[float] | NDArray,
    look_at: Sequence[float] | NDArray,
    fovy_deg: float = 45.0,
    body: str | None = None,
    up: Sequence[float] = (0.0, 0.0, 1.0),
) -> None:
    """Add a camera that looks at a point; all in the frame of `body` (None: the world)."""
    parent = spec.worldbody if body is None else spec.body(body)
    parent.add_camera(name=name, pos=pos, quat=look_quat(pos, look_at, up), fovy=fovy_deg)


def compile_model(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compile a scene, naming it where it cannot be."""
    try:
        return spec.compile()
    except ValueError as error:
        raise BadModel(f"The scene {spec.modelname!r} does not compile: {_line(error)}") from None


def load_model(path: str | Path) -> mujoco.MjModel:
    """Read a user's MJCF file, naming the file where it is missing or broken."""
    path = Path(path)
    if not path.is_file():
        raise BadModel(f"There is no model file {path.resolve()}. Check XML_PATH.")
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise BadModel(f"MuJoCo cannot read {path.resolve()}: {_line(error)}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
