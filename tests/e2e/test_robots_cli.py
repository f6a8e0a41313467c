"""maniple robots export: the file is a model by itself, and a part of another one."""

import json

import mujoco
import numpy as np
import pytest

from maniple.sim.robots.table import ROBOTS, find_robot
from maniple.sim.scene import compile_model, new_scene


@pytest.mark.parametrize("robot", ROBOTS)
def test_an_exported_robot_moves_as_ours(robot, tmp_path, inside):
    path = tmp_path / "robot.xml"
    done = inside("robots", "export", robot, path, "--json")
    answer = json.loads(done.out.splitlines()[-1])
    theirs = mujoco.MjModel.from_xml_path(str(path))
    spec = new_scene(robot, 0.005)
    find_robot(robot).add(spec, (0.0, 0.0, 0.0))
    ours = compile_model(spec)
    assert answer["joints"] == [ours.joint(k).name for k in range(ours.njnt)]
    data = [mujoco.MjData(model) for model in (ours, theirs)]
    for model, one in zip((ours, theirs), data, strict=True):
        one.ctrl[:] = 0.1
        assert model.jnt_range[0, 1] > 0.5
        mujoco.mj_step(model, one, 50)
    assert np.allclose(data[0].qpos, data[1].qpos, atol=1e-6)


def test_it_is_included_in_a_scene(tmp_path, inside):
    inside("robots", "export", "so101", tmp_path / "so101.xml")
    (tmp_path / "scene.xml").write_text(
        '<mujoco><include file="so101.xml"/><worldbody><geom name="floor" type="plane" '
        'size="1 1 .1"/></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml"))
    assert model.geom("floor").id >= 0 and model.nu == 6


def test_mistakes_are_told(tmp_path, inside):
    assert "Did you mean so101" in inside("robots", "export", "so10", tmp_path / "a", code=2).err
    assert "cannot be written" in inside("robots", "export", "so101", "/proc/x/y", code=2).err
