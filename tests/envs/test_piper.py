"""Piper: the environment that its users know, and arms and bases that are driven where asked."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import maniple
from maniple.core.errors import BadConfig, UnknownName
from maniple.envs.piper.mobile_robot import PiperMobileRobotEnv
from maniple.registry import PIPER, find, recipe

MOBILE = "PiperMobileRobot-v0"
QUICK = {"cameras": (), "observations": "all"}


@pytest.fixture
def plain(make_vec):
    """Rows of the mobile robot that draw nothing and show everything."""
    return lambda rows, **options: make_vec(MOBILE, rows, **QUICK, **options)


def test_it_is_the_environment_that_its_users_know():
    env = gymnasium.make(MOBILE, render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    obs, _ = env.reset(seed=0)
    assert list(obs) == ["state", "rgb"] or list(obs) == ["rgb", "state"]
    assert obs["rgb"].shape == (128, 128, 3) and obs["rgb"].dtype == np.uint8
    assert obs["state"].shape == (7,) and obs["state"].dtype == np.float32
    assert env.action_space == gymnasium.spaces.Box(-1.0, 1.0, (7,), np.float32)
    assert env.spec.max_episode_steps == 80
    assert env.render().shape == (480, 640, 3)
    *_, info = env.step(env.action_space.sample())
    assert {"success", "is_success"} <= set(info)
    env.close()


def test_it_starts_where_the_original_does(plain):
    obs, _ = plain(2).reset(seed=3)
    start = [0.0, 1.1, -0.95, 0.0, 0.976, 0.0, 0.035]
    assert np.allclose(obs["state"], start, atol=1e-3)
    offset = obs["banana_pose"][:, :2] - [0.7, 0.15]
    assert (np.hypot(*offset.T) <= 0.1).all()


def test_four_in_gymnasiums_own_vector_env():
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(MOBILE)] * 4)
    obs, _ = envs.reset(seed=0)
    assert obs["rgb"].shape == (4, 128, 128, 3)
    assert envs.action_space.shape == (4, 7)
    obs, *_ = envs.step(envs.action_space.sample())
    assert obs["rgb"].std() > 10
    envs.close()


def test_it_can_be_made_by_its_class():
    env = PiperMobileRobotEnv(render_mode="rgb_array")
    obs, _ = env.reset(seed=1)
    other, _ = gymnasium.make(MOBILE).reset(seed=1)
    assert all(np.array_equal(obs[name], other[name]) for name in obs)
    env.close()


def test_the_seed_matters(plain):
    envs = plain(1)
    first, again, other = (envs.reset(seed=s)[0]["banana_pose"].copy() for s in (5, 5, 6))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_an_increment_moves_each_joint_by_its_step(plain):
    envs = plain(1)
    obs, _ = envs.reset(seed=0)
    before = obs["state"][0].copy()
    # Away from the limits: the second joint down, the others up, the gripper shut.
    way = np.array([1, -1, 1, 1, 0.5, 1, -1], np.float32)
    for _ in range(3):
        obs, *_ = envs.step(way[None])
    for _ in range(15):
        obs, *_ = envs.step(np.zeros((1, 7), np.float32))
    steps = 3 * np.array([0.05, 0.03, 0.03, 0.03, 0.03, 0.05, 0.005])
    assert np.allclose(obs["state"][0] - before, way * steps, atol=0.012)


def test_a_fallen_banana_ends_the_episode_with_a_loss():
    group = recipe(MOBILE, dict(QUICK)).group(2, 1)
    group.reset(np.arange(2), [0, 1])
    pose = np.array([[0.2, 0.9, 0.3, 1.0, 0.0, 0.0, 0.0]])
    group.state.put(np.array([1]), {"banana": pose})
    group.step(np.zeros((2, 7), np.float32))
    group.report()
    assert group._out.terminated.tolist() == [False, True]
    assert group._out.reward[1] < -4 < group._out.reward[0]
    assert not group._out.extras.arrays["success"].any()
    group.close()


def test_an_arm_on_the_table_ends_the_episode_after_thirty_steps(plain):
    envs = plain(1, max_episode_steps=200)
    envs.reset(seed=2)
    down = np.array([[0, 1, 0.4, 0, 0, 0, 0]], np.float32)
    rewards = []
    for _ in range(150):
        _, reward, terminated, truncated, _ = envs.step(down)
        rewards.append(reward[0])
        if terminated[0] or truncated[0]:
            break
    assert terminated[0] and not truncated[0]
    assert rewards[-1] < -10 and sum(r < -3 for r in rewards) >= 30


def test_arms_that_a_scene_does_not_have_are_refused():
    for task, options, says in (
        ("piper/Reach-v0", {"arms": 2}, "no arms to choose"),
        ("so101/Reach-v0", {"base": True}, "no base to choose"),
        ("panda/OpenDrawer-v0", {"arms": 1}, "no arms to choose"),
        ("go2_piper/AppleInBowl-v0", {"arms": 2}, "no arms to choose"),
        (MOBILE, {"arms": 3}, "has 1 or 2"),
        (MOBILE, {"arms": 0}, "1 or larger"),
        (MOBILE, {"arms": "2"}, "arms is '2'"),
        (MOBILE, {"base": "yes"}, "True or False"),
        ("mobile_piper/HandOver-v0", {"arms": 1}, "both arms"),
        ("mobile_piper/HandOver-v0", {"arms": 5}, "both arms"),
    ):
        with pytest.raises(BadConfig, match=says):
            maniple.make(task, **options)


def test_what_is_driven_is_observed(plain, make_vec):
    both = plain(1, arms=2, base=True)
    obs, _ = both.reset(seed=0)
    assert obs["right_pos"].shape == (1, 7) and obs["base_pose"].tolist() == [[0, 0, 0]]
    action = np.zeros((1, 16), np.float32)
    action[0, 7], action[0, -1] = 1.0, 1.0
    before = obs["right_pos"].copy()
    for _ in range(5):
        obs, *_ = both.step(action)
    assert obs["right_pos"][0, 0] > before[0, 0] + 0.05 and obs["base_pose"][0, 2] > 0.05
    dog = make_vec("go2_piper/AppleInBowl-v0", 1, base=True)
    assert "base_pose" in dog.reset(seed=0)[0]
    alone = plain(1)
    assert not {"right_pos", "base_pose"} & set(alone.reset(seed=0)[0])
    # Also where the task shows less than all it could.
    shown = make_vec(MOBILE, 1, arms=2, base=True, cameras=())
    assert set(shown.reset(seed=0)[0]) == {"state", "right_pos", "base_pose"}


def test_a_driven_base_is_seen_from_afar(make_vec):
    """The other cameras look at the table; this one sees where the base went."""
    options = {"renderer": "fast", "image_size": (64, 64)}
    envs = make_vec("mobile_piper/AppleInBowl-v0", 1, base=True, cameras=("overview",), **options)
    envs.reset(seed=0)
    back = np.zeros((1, 9), np.float32)
    back[0, -2] = -1.0
    middles = []
    for _ in range(45):
        obs, *_ = envs.step(back)
        # The robot is dark, the floor and the sky are not.
        columns = np.nonzero(obs["overview_rgb"][0].max(-1) < 90)[1]
        assert len(columns) > 40
        middles.append(columns.mean())
    assert middles[0] - middles[-1] > 12
    with pytest.raises(UnknownName, match="overview"):
        make_vec("mobile_piper/AppleInBowl-v0", 1, cameras=("overview",), **options)


@pytest.mark.parametrize(("options", "size"), [
    ({}, 7), ({"arms": 2}, 14), ({"base": True}, 9), ({"arms": 2, "base": True}, 16),
])  # fmt: skip
def test_arms_and_base_are_driven_where_asked(plain, options, size):
    envs = plain(2, **options)
    obs, _ = envs.reset(seed=0)
    assert envs.single_action_space.shape == (size,)
    assert obs["state"].shape == (2, 7)
    obs, *_ = envs.step(envs.action_space.sample())
    assert np.isfinite(obs["tip_pos"]).all()


@pytest.mark.parametrize("task", ["mobile_piper/AppleInBowl-v0", "go2_piper/AppleInBowl-v0"])
def test_a_driven_base_goes_ahead_and_turns(task, make_vec):
    envs = make_vec(task, 2, base=True, terminate_on_success=False)
    obs, _ = envs.reset(seed=0)
    tips = [obs["tip_pos"].copy()]
    # Row 0 backs away from the table, row 1 turns.
    actions = np.zeros((2, *envs.single_action_space.shape), np.float32)
    actions[0, -2], actions[1, -1] = -1.0, 1.0
    for _ in range(10):
        obs, *_ = envs.step(actions)
        tips.append(obs["tip_pos"].copy())
    moved = tips[-1] - tips[0]
    assert moved[0, 0] < -0.1 and abs(moved[0, 1]) < 0.02
    assert moved[1, 1] > 0.05


def test_wrist_and_third_person_with_depth(make_vec):
    envs = make_vec(
        MOBILE, 2, cameras=("3rd", "wrist"), image_kinds=("rgb", "depth"), image_size=(64, 64)
    )
    obs, _ = envs.reset(seed=0)
    assert set(obs) == {"state", "rgb", "depth", "wrist_rgb", "wrist_depth"}
    assert 0.2 < np.median(obs["depth"]) < 3.0


@pytest.mark.parametrize("task", PIPER)
def test_a_picture_shows_the_arm(task):
    """The first camera sees a hundredth of a picture of it, and the wrist camera its fingers."""
    settings = {"image_kinds": ("mask",), "image_size": (96, 128), "observations": "all"}
    env = maniple.make(task, cameras=(find(task).cameras[0], "wrist"), **settings)
    obs, _ = env.reset(seed=0)
    model = env.get_wrapper_attr("model")
    names = [model.body(k).name for k in range(model.nbody)]
    arm = [k for k, name in enumerate(names) if name.startswith(("link", "gripper", "finger"))]
    first, wrist = (mask for name, mask in obs.items() if name.endswith("mask"))
    assert 0.01 < np.isin(first, arm).mean() < 0.5
    assert np.isin(wrist, [k for k in arm if "finger" in names[k]]).mean() > 0.02
    env.close()


def test_an_expert_that_cannot_see_says_what_to_do(make_vec):
    envs = make_vec(MOBILE, 2)
    obs, _ = envs.reset(seed=0)
    with pytest.raises(UnknownName, match="observations='all'"):
        maniple.expert(MOBILE, 2).act(obs)
