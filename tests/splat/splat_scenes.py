"""Clouds and models that the tests of splats draw."""

from __future__ import annotations

import mujoco
import numpy as np

from maniple.sim.render_source import DataSource
from maniple.splat.cloud import make_cloud
from maniple.splat.compiled import CompiledScene
from maniple.splat.scene import Part, Scene

MODEL = """
<mujoco>
  <visual><map znear="0.01" zfar="30"/></visual>
  <statistic extent="1" center="0 0 0"/>
  <worldbody>
    <light type="directional" dir="-.3 .2 -1" diffuse=".6 .6 .6"/>
    <geom name="floor" type="plane" size="2 2 .1" rgba=".5 .6 .7 1"/>
    <camera name="front" pos="1.6 0 .7" xyaxes="0 1 0 -.4 0 1" fovy="50"/>
    <camera name="above" pos="0 0 2" fovy="45"/>
    <body name="link" pos="0 0 .3">
      <joint name="turn" type="ball"/>
      <geom name="box" type="box" size=".2 .15 .1" rgba=".8 .3 .2 1"/>
      <camera name="wrist" pos="0 0 .25" xyaxes="1 0 0 0 1 0" fovy="70"/>
    </body>
    <body name="other" pos="0 .5 .2">
      <freejoint/>
      <geom name="ball" type="sphere" size=".1" rgba=".2 .7 .3 1"/>
    </body>
  </worldbody>
</mujoco>
"""


def model_and_data(qpos=None):
    """Return the little world, with the link turned as wanted."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    if qpos is not None:
        data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    return model, data


def random_cloud(count, seed=0, degree=0, size=0.03, box=1.0, mode="default", spread=0.6):
    """Return Gaussians all over a box."""
    rng = np.random.default_rng(seed)
    quats = rng.normal(size=(count, 4))
    scales = size * np.exp(spread * rng.normal(size=(count, 3)))
    opacities = np.where(rng.random(count) < 0.5, rng.uniform(0.02, 0.5, count), 0.97)
    sh = 0.25 * rng.normal(size=(count, (degree + 1) ** 2, 3))
    sh[:, 0] = rng.normal(size=(count, 3))
    return make_cloud(rng.uniform(-box, box, (count, 3)), quats, scales, opacities, sh, mode=mode)


def compiled(*parts, qpos=None, background=((0.2, 0.3, 0.4),)):
    """Return a compiled scene and the source of its one row."""
    model, data = model_and_data(qpos)
    scene = Scene(tuple(parts), np.array(background, np.float32))
    return CompiledScene(scene, model), DataSource(model, data)


def part(cloud, body="world", **settings):
    """Bind a cloud to a body."""
    return Part(cloud, ((body, -1),), **settings)
