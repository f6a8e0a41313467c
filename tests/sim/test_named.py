"""Arrays by name: what old dm_control code asks for, beside MuJoCo's own views."""

import mujoco
import numpy as np
import pytest

from maniple.core.errors import UnknownName
from maniple.sim.physics import Physics

XML = """
<mujoco>
  <worldbody>
    <body name="cart"><joint name="slide" type="slide"/>
      <geom name="box" size=".1" rgba=".1 .2 .3 1"/>
      <body name="pole" pos="0 0 .3"><joint name="hinge"/><geom name="rod" size=".1"/>
        <site name="tip" pos="0 0 .5"/></body></body>
    <body name="ball" pos="1 0 0"><freejoint name="free"/><geom size=".1"/></body>
    <body name="goal" mocap="true" pos="2 0 0"/>
    <camera name="eye" pos="0 0 2"/>
  </worldbody>
  <actuator><motor name="push" joint="slide"/><motor name="turn" joint="hinge"/></actuator>
  <sensor><framepos name="where" objtype="site" objname="tip"/></sensor>
</mujoco>
"""


@pytest.fixture
def physics():
    made = Physics(mujoco.MjModel.from_xml_string(XML))
    made.data.qpos[:2] = [0.3, 0.7]
    mujoco.mj_forward(made.model, made.data)
    return made


def test_rows_by_name(physics):
    data, model, named = physics.data, physics.model, physics.named
    assert np.array_equal(named.data.site_xpos["tip"], data.site("tip").xpos)
    assert np.array_equal(named.data.xpos["pole"], data.body("pole").xpos)
    assert np.array_equal(named.data.geom_xmat["rod"], data.geom("rod").xmat)
    assert np.array_equal(named.data.cam_xpos["eye"], data.camera("eye").xpos)
    assert np.array_equal(named.data.sensordata["where"], data.sensor("where").data)
    assert np.array_equal(named.data.mocap_pos["goal"], [2, 0, 0])
    assert named.data.qpos["hinge"] == 0.7 and named.data.qvel["hinge"] == 0.0
    assert named.data.qpos["free"].shape == (7,) and named.data.qvel["free"].shape == (6,)
    assert named.model.body_mass["ball"] == model.body("ball").mass[0]
    assert np.allclose(named.model.geom_rgba["box"], [0.1, 0.2, 0.3, 1])


def test_columns_and_lists(physics):
    data = physics.named.data
    assert data.site_xpos["tip", "z"] == data.site_xpos["tip"][2] == data.site_xpos["tip", 2]
    assert np.array_equal(data.xpos[["cart", "pole"]], physics.data.xpos[1:3])
    assert data.xpos[["cart", "pole"], ["x", "z"]].shape == (2, 2)
    assert np.array_equal(data.qpos[["slide", "hinge"]], [0.3, 0.7])
    assert data.xpos["pole", :2].shape == (2,)


def test_writing_goes_through(physics):
    data = physics.named.data
    data.ctrl["turn"] = 0.5
    data.qpos["free"][:3] = [1, 2, 3]
    data.mocap_pos["goal", "y"] = 4.0
    assert physics.control().tolist() == [0.0, 0.5]
    assert physics.data.qpos[2:5].tolist() == [1, 2, 3] and physics.data.mocap_pos[0, 1] == 4


def test_everything_else_is_mujocos_own(physics):
    named = physics.named
    assert named.data.body("pole").xpos.shape == (3,) and named.data.time == 0.0
    assert named.model.nq == physics.model.nq and named.model.opt.timestep == physics.timestep()
    assert len(named.data.xpos) == physics.model.nbody and "by body" in repr(named.data.xpos)
    assert np.asarray(named.data.xpos).shape == (physics.model.nbody, 3)


def test_a_wrong_name_is_told(physics):
    with pytest.raises(UnknownName, match="Did you mean tip"):
        _ = physics.named.data.site_xpos["tipp"]
    with pytest.raises(KeyError, match="There are: slide, hinge"):
        _ = physics.named.data.qpos["elbow"]
    with pytest.raises(UnknownName, match="no column 'w'"):
        _ = physics.named.data.site_xpos["tip", "w"]
    with pytest.raises(UnknownName, match="no column 'q'"):
        _ = physics.named.data.xpos["pole", ["x", "q"]]
    with pytest.raises(UnknownName, match="not a mocap body"):
        _ = physics.named.data.mocap_pos["ball"]
    with pytest.raises(UnknownName, match="There are: box, rod"):
        _ = physics.named.data.geom_xpos["cone"]


def test_it_computes_like_an_array(physics):
    data = physics.named.data
    assert np.array_equal(data.xpos * 2, physics.data.xpos * 2)
    assert data.xpos.mean() == physics.data.xpos.mean() and data.xpos.shape[1] == 3
    assert data.xquat["pole", "w"] == physics.data.xquat[2, 0]
