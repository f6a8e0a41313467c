"""RLBench's vocabulary on MuJoCo: names, variations, sentences, grasps, cameras."""

import mujoco
import numpy as np
import pytest
from conftest import same

import maniple
from maniple.core.errors import BadConfig, UnknownName
from maniple.registry import EXPERTS, RLBENCH, TASKS, canonical, find
from maniple.sim.derived_images import intrinsics

PANDA = sorted(id for id in TASKS if id.startswith("panda/"))
VARIATIONS = {
    "reach_target": 20, "push_button": 18, "pick_and_lift": 20, "slide_block_to_target": 1,
    "open_drawer": 3, "close_drawer": 3, "take_lid_off_saucepan": 1, "close_box": 1,
    "stack_blocks": 60, "push_buttons": 50, "slide_block_to_color_target": 4,
    "reach_and_drag": 20, "insert_onto_square_peg": 20, "put_item_in_drawer": 3,
    "put_money_in_safe": 3, "close_jar": 20, "open_box": 1, "light_bulb_in": 20,
    "put_rubbish_in_bin": 1, "press_switch": 1, "turn_tap": 2, "meat_off_grill": 2,
    "put_groceries_in_cupboard": 9, "stack_cups": 20, "place_wine_at_rack_location": 3,
    "sweep_to_dustpan_of_size": 2, "lamp_on": 1, "block_pyramid": 20, "open_microwave": 1,
    "toilet_seat_down": 1,
}  # fmt: skip


def test_all_thirty_are_there():
    assert len(PANDA) == len(RLBENCH) == 30
    assert set(PANDA) <= set(EXPERTS)
    assert {name: find(name).variations for name in RLBENCH} == VARIATIONS


@pytest.mark.parametrize("name", ["OpenDrawer", "open_drawer", "open-drawer", "OpenDrawer-v0"])
def test_any_spelling(name):
    assert canonical(name) == "panda/OpenDrawer-v0"
    assert maniple.make(name).task.sentence == "Open the named drawer"


def test_a_wrong_name_is_answered_with_the_right_one():
    with pytest.raises(UnknownName, match="panda/OpenDrawer-v0"):
        maniple.make("panda/OpenDraw-v0")


@pytest.mark.parametrize("id", PANDA)
def test_every_variation_has_sentences(id):
    task = find(id)()
    for variation in range(task.variations):
        said = task.sentences(variation)
        assert len(said) >= 2 or task.variations == 1
        assert all(text and text == text.strip() and "%" not in text for text in said)
    assert len({task.sentences(k)[0] for k in range(task.variations)}) == task.variations


@pytest.mark.parametrize("id", PANDA)
def test_every_scene_starts_unsolved_and_at_rest(id):
    """Nothing is solved, grasped or flying half a second after the beginning."""
    envs = maniple.make_vec(id, 12, control="joint_velocity")
    obs, info = envs.reset(seed=5)
    assert not info["success"].any()
    first = obs["task_low_dim_state"].copy()
    still = np.zeros(envs.action_space.shape, np.float32)
    still[:, -1] = 1.0
    for _ in range(5):
        obs, _, term, _, info = envs.step(still)
    assert not term.any() and "env_error" not in info
    assert np.abs(obs["task_low_dim_state"] - first)[:, :3].max() < 0.02
    envs.close()


@pytest.mark.parametrize("engine", ["native", "serial", "process"])
def test_a_reset_may_choose_the_variation_and_tells_the_sentence(engine):
    envs = maniple.make_vec("OpenDrawer", 3, engine=engine)
    obs, info = envs.reset(seed=0, options={"variation": 1})
    assert (obs["variation_index"] == 1).all()
    assert info["sentence"].tolist() == ["open middle drawer"] * 3
    assert info["variation"].tolist() == [1, 1, 1]
    # The choice is of that reset alone.
    drawn = {tuple(envs.reset(seed=s)[1]["variation"].tolist()) for s in range(5)}
    assert len(drawn) > 1
    with pytest.raises(BadConfig, match="variation is 3; there are 3: give 0 to 2"):
        maniple.make("OpenDrawer").reset(options={"variation": 3})
    envs.close()


def test_variation_can_be_chosen():
    envs = maniple.make_vec("OpenDrawer", 3, variation=2)
    obs, _ = envs.reset(seed=0)
    assert (obs["variation_index"] == 2).all()
    assert envs.get_attr("sentence") == ("open top drawer",) * 3
    envs.close()
    with pytest.raises(BadConfig, match="give 0 to 2"):
        maniple.make("OpenDrawer", variation=3)


def test_observations_can_be_switched_off():
    env = maniple.make("OpenDrawer", observations=("gripper_pose", "gripper_open"))
    assert list(env.observation_space) == ["gripper_open", "gripper_pose"]
    with pytest.raises(UnknownName, match="gripper_pose"):
        maniple.make("OpenDrawer", observations=("gripper_poses",))


def test_pictures_are_rlbenchs():
    """Mask and point cloud belong to the same moment: the target's points lie on the target."""
    kinds = ("rgb", "depth", "mask", "point_cloud")
    env = maniple.make(
        "ReachTarget", cameras=("front", "wrist"), image_kinds=kinds, image_size=(96, 96)
    )
    obs, _ = env.reset(seed=2)
    assert {f"{c}_{k}" for c in ("front", "wrist") for k in kinds} <= set(obs)
    body = env.unwrapped._row.model.body("target").id
    points = obs["front_point_cloud"][obs["front_mask"] == body]
    assert len(points) > 3
    assert np.linalg.norm(points - obs["task_low_dim_state"][:3], axis=1).max() < 0.03
    env.close()


def test_cameras_are_where_rlbench_has_them():
    env = maniple.make("ReachTarget")
    env.reset(seed=0)
    model, data = env.unwrapped._group.model, env.unwrapped._group.sim.data(0)
    front = model.camera("front").id
    assert data.cam_xpos[front] == pytest.approx([1.35, 0.0, 1.58])
    ahead = -data.cam_xmat[front].reshape(3, 3)[:, 2]
    assert ahead == pytest.approx([-0.9063, 0.0, -0.4226], abs=1e-3)
    assert intrinsics(model, front, 128, 128)[0, 0] == pytest.approx(64 / np.tan(np.radians(20)))
    wrist = model.camera("wrist").id
    way = data.site("tip").xmat.reshape(3, 3).T @ (data.cam_xpos[wrist] - data.site("tip").xpos)
    assert way == pytest.approx([-0.05, 0.002, -0.0921], abs=1e-4)
    assert model.cam_fovy[wrist] == 60.0


def test_colours_belong_to_the_row():
    """Two variations look different, and a restored state has its colour back."""
    env = maniple.make("PushButton", variation=0)
    env.reset(seed=0)
    maroon = env.unwrapped._row.model.geom("button").rgba[:3].copy()
    other = maniple.make("PushButton", variation=3)
    other.reset(seed=0)
    assert maroon == pytest.approx([0.5, 0, 0])
    assert not np.allclose(other.unwrapped._row.model.geom("button").rgba[:3], maroon)


@pytest.mark.parametrize("grasp", ["attach", "contact"])
def test_holding_and_letting_go(grasp):
    """A shut gripper around a block holds it, an open one lets go."""
    env = maniple.make("PickAndLift", grasp=grasp)
    expert = maniple.expert("PickAndLift", 1)
    obs, _ = env.reset(seed=4)
    group = env.unwrapped._group
    held = []
    for _ in range(60):
        action = expert.act({k: v[None] for k, v in obs.items()})[0]
        obs, _, term, _, info = env.step(action)
        held.append(int(group.state.note("held")[0]))
        if term:
            break
    assert info["success"] and held[0] == 0 and held[-1] == 1
    action[-1] = 1.0
    for _ in range(4):
        env.step(action)
    assert group.state.note("held")[0] == 0


def test_a_state_with_a_held_block_is_restored_bit_for_bit():
    env = maniple.make("PickAndLift")
    expert = maniple.expert("PickAndLift", 1)
    obs, _ = env.reset(seed=4)
    for _ in range(27):
        action = expert.act({k: v[None] for k, v in obs.items()})[0]
        obs, *_ = env.step(action)
    assert env.unwrapped._group.state.note("held")[0] == 1
    saved = env.unwrapped.sim_state
    first = [env.step(action)[0] for _ in range(5)]
    env.reset(seed=9)
    env.unwrapped.sim_state = saved
    assert same(first, [env.step(action)[0] for _ in range(5)])


def test_buttons_count_in_order_only():
    env = maniple.make("PushButtons", variation=2)
    env.reset(seed=0)
    group = env.unwrapped._group
    last = group.model.joint("button2_joint").qposadr[0]
    group.state.qpos[0, last] = -0.006
    group.task.after_step(group.state, None)
    assert group.state.note("pressed")[0] == 0
    group.state.qpos[0, group.model.joint("button0_joint").qposadr[0]] = -0.006
    group.task.after_step(group.state, None)
    assert group.state.note("pressed")[0] == 1


@pytest.mark.parametrize("id", PANDA)
def test_no_mesh_and_sane_masses(id):
    from maniple.envs.task_model import build_model

    model = build_model(find(id)())
    assert model.nmesh == 0
    assert not (model.geom_type == int(mujoco.mjtGeom.mjGEOM_MESH)).any()
    assert 0 < model.body_mass[1:].max() < 30
