"""Random scenes of primitives, to draw them in more than one way."""

import mujoco
import numpy as np

from maniple.sim.fast.structs import ROW_FIELDS
from maniple.sim.render_source import DataSource

KINDS = ("rgb", "depth", "segmentation")
SHAPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
LIGHTS = {
    "directional": '<light type="directional" dir="-.3 .2 -1" specular=".3 .3 .3"/>',
    "point": '<light type="point" pos="1 .5 2" attenuation="1 .1 .05" diffuse=".6 .5 .4"/>',
    "none": "",
}


def random_scene(rng, geoms=12, light="directional", shininess=None) -> mujoco.MjModel:
    """Primitives of all kinds in a box of two metres, a floor, and a camera anywhere."""
    material = ""
    if shininess is not None:
        material = f'<asset><material name="m" specular=".8" shininess="{shininess}"/></asset>'
    parts = [
        '<geom type="plane" size="1.5 1.2 .1" pos="0 0 -.6" rgba=".7 .6 .5 1"/>',
        LIGHTS[light],
    ]
    for _ in range(geoms):
        size = rng.uniform(0.03, 0.35, 3)
        pos, turn = rng.uniform(-0.8, 0.8, 3), rng.uniform(-180, 180, 3)
        rgba = [*rng.uniform(0, 1, 3), 1]
        text = "material='m'" if shininess is not None else ""
        parts.append(
            f'<geom type="{rng.choice(SHAPES)}" size="{_row(size)}" pos="{_row(pos)}" '
            f'euler="{_row(turn)}" rgba="{_row(rgba)}" {text}/>'
        )
    eye = rng.normal(size=3)
    eye = eye / np.linalg.norm(eye) * rng.uniform(0.1, 2.5)
    back = eye + rng.normal(size=3) * 0.3
    back /= np.linalg.norm(back)
    right = np.cross(rng.normal(size=3), back)
    right /= np.linalg.norm(right)
    up = np.cross(back, right)
    parts.append(
        f'<camera name="c" pos="{_row(eye)}" xyaxes="{_row(right)} {_row(up)}" '
        f'fovy="{rng.uniform(20, 100)}"/>'
    )
    head = '<headlight ambient=".3 .3 .3" diffuse=".4 .4 .4" specular=".2 .2 .2"/>'
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><statistic extent="1"/><visual>{head}<map znear=".01" zfar="30"/></visual>'
        f"{material}<worldbody>{''.join(parts)}</worldbody></mujoco>"
    )


def source_of(model: mujoco.MjModel) -> DataSource:
    """The model at rest, as a renderer wants it."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return DataSource(model, data)


def pictures(count: int, height: int, width: int, camera: int = 0) -> dict:
    """Empty pictures of one camera."""
    return {
        (camera, "rgb"): np.empty((count, height, width, 3), np.uint8),
        (camera, "depth"): np.empty((count, height, width), np.float32),
        (camera, "segmentation"): np.empty((count, height, width), np.int32),
    }


def row_fields(source: DataSource) -> dict:
    """What the reference wants to know of row 0."""
    found = {name: source.field(name) for name in ROW_FIELDS}
    return {name: array[0] if has_rows else array for name, (array, has_rows) in found.items()}


def _row(numbers) -> str:
    return " ".join(f"{x:.6f}" for x in numbers)
