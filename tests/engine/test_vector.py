"""The Gymnasium vector contract, as its own tests state it."""

import gymnasium
import numpy as np
import pytest
from conftest import same
from gymnasium.vector import AutoresetMode

import maniple
from maniple.core.errors import BadAction, BadConfig, ClosedError, ResetNeeded, UnknownName

TASK = "so101/Reach-v0"


@pytest.mark.parametrize("engine", ["native", "serial", "process"])
def test_shapes_types_and_metadata(make_vec, engine):
    envs = make_vec(TASK, 3, engine=engine)
    obs, info = envs.reset(seed=0)
    assert envs.observation_space.contains(obs)
    obs, reward, term, trunc, info = envs.step(envs.action_space.sample())
    assert reward.shape == term.shape == trunc.shape == (3,)
    assert reward.dtype == np.float64 and term.dtype == trunc.dtype == np.bool_
    assert info["success"].shape == (3,) and info["_success"].all()
    assert set(info["terms"]) >= {"near", "_near"}
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_three_ways_to_make_it(make_vec):
    ours, theirs = make_vec(TASK, 2), gymnasium.make_vec(TASK, num_envs=2)
    assert type(ours) is type(theirs)
    assert same(ours.reset(seed=4)[0], theirs.reset(seed=4)[0])
    assert theirs.spec.id == TASK
    assert isinstance(gymnasium.make(TASK).unwrapped, gymnasium.Env)
    theirs.close()


def test_seeds(make_vec):
    envs = make_vec(TASK, 3)
    one, _ = envs.reset(seed=5)
    assert envs.np_random_seed == (5, 6, 7)
    listed, _ = envs.reset(seed=[5, 6, 7])
    assert same(one, listed)
    following, _ = envs.reset()
    assert not np.array_equal(following["target_pos"], one["target_pos"])
    mixed, _ = envs.reset(seed=[5, None, 7])
    assert np.array_equal(mixed["target_pos"][[0, 2]], one["target_pos"][[0, 2]])
    assert not np.array_equal(mixed["target_pos"][1], one["target_pos"][1])


def test_next_step_autoreset(make_vec):
    envs = make_vec(TASK, 2, max_episode_steps=3, terminate_on_success=False)
    envs.reset(seed=0)
    still = np.zeros(envs.action_space.shape, np.float32)
    for _ in range(3):
        last, _, _, trunc, _ = envs.step(still)
    assert trunc.all()
    obs, reward, term, trunc, _ = envs.step(still)
    assert (reward == 0).all() and not (term | trunc).any()
    assert not np.array_equal(obs["target_pos"], last["target_pos"])


def test_same_step_autoreset(make_vec):
    envs = make_vec(TASK, 2, max_episode_steps=3, autoreset_mode="SameStep",
                    terminate_on_success=False)  # fmt: skip
    first, _ = envs.reset(seed=0)
    still = np.zeros(envs.action_space.shape, np.float32)
    for _ in range(2):
        assert "final_obs" not in envs.step(still)[4]
    obs, _, _, trunc, info = envs.step(still)
    assert trunc.all() and info["_final_obs"].all() and info["_final_info"].all()
    assert np.array_equal(info["final_obs"][1]["target_pos"], first["target_pos"][1])
    assert not np.array_equal(obs["target_pos"], first["target_pos"])
    assert info["final_info"]["success"].dtype == bool
    assert info["final_info"]["_terms"].all()


@pytest.mark.parametrize("engine", ["native", "serial", "process"])
def test_disabled_autoreset_and_reset_mask(make_vec, engine):
    mode = AutoresetMode.DISABLED
    envs = make_vec(TASK, 3, max_episode_steps=2, autoreset_mode=mode, engine=engine)
    envs.reset(seed=0)
    still = np.zeros(envs.action_space.shape, np.float32)
    envs.step(still)
    before, _, _, trunc, _ = envs.step(still)
    assert trunc.all()
    with pytest.raises(ResetNeeded, match=r"Rows \[0, 1, 2\]"):
        envs.step(still)
    mask = np.array([True, False, True])
    options = {"reset_mask": mask}
    obs, info = envs.reset(options=options)
    assert options == {"reset_mask": mask}, "the caller's dictionary stays as it was"
    assert np.array_equal(obs["target_pos"][1], before["target_pos"][1])
    with pytest.raises(ResetNeeded, match=r"Rows \[1\]"):
        envs.step(still)
    assert not np.array_equal(obs["target_pos"][0], before["target_pos"][0])
    assert info["_success"].tolist() == [True, False, True]
    with pytest.raises(ResetNeeded, match=r"Rows \[1\]"):
        envs.step(still)


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, True], TypeError),
        (np.array([1, 0]), TypeError),
        (np.array([True]), BadConfig),
        (np.array([False, False]), BadConfig),
    ],
)
def test_bad_reset_masks(make_vec, mask, error):
    envs = make_vec(TASK, 2)
    envs.reset(seed=0)
    with pytest.raises(error, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})


def test_copied_observations_stay(make_vec):
    envs = make_vec(TASK, 2)
    obs, _ = envs.reset(seed=0)
    kept = {k: v.copy() for k, v in obs.items()}
    for _ in range(3):
        envs.step(envs.action_space.sample())
    assert same(obs, kept)


def test_views_stay_for_one_step_and_are_read_only(make_vec):
    envs = make_vec(TASK, 2, copy_obs=False)
    envs.reset(seed=0)
    obs, *_ = envs.step(envs.action_space.sample())
    kept = {k: v.copy() for k, v in obs.items()}
    after, *_ = envs.step(envs.action_space.sample())
    assert same(obs, kept)
    assert not any(np.shares_memory(obs[k], after[k]) for k in obs)
    with pytest.raises(ValueError, match="read-only"):
        obs["tip_pos"][0] = 0
    envs.step(envs.action_space.sample())
    assert not same(obs, kept), "the third step reuses the first one's memory"


def test_attributes(make_vec):
    envs = make_vec(TASK, 3)
    envs.reset(seed=0)
    assert envs.get_attr("sentence") == ("Touch the red ball with the fingertip",) * 3
    assert envs.call("elapsed_steps") == (0, 0, 0)
    states = envs.get_attr("sim_state")
    envs.step(envs.action_space.sample())
    envs.set_attr("sim_state", states)
    assert envs.get_attr("elapsed_steps") == (0, 0, 0)
    with pytest.raises(BadConfig, match="Did you mean sentence"):
        envs.get_attr("sentense")
    with pytest.raises(BadConfig, match="1 values for 3"):
        envs.set_attr("sim_state", [states[0]])


def test_render_gives_a_picture_per_row(make_vec):
    envs = make_vec(TASK, 2, render_mode="rgb_array", width=64, height=48)
    envs.reset(seed=0)
    pictures = envs.render()
    assert len(pictures) == 2 and pictures[0].shape == (48, 64, 3)
    assert pictures[0].std() > 5


def test_close_twice_and_use_after_close(make_vec):
    envs = make_vec(TASK, 2)
    envs.reset(seed=0)
    envs.close()
    envs.close()
    for use in (lambda: envs.step(np.zeros((2, 4))), envs.reset, lambda: envs.get_attr("task")):
        with pytest.raises(ClosedError, match="closed"):
            use()


def test_step_before_reset(make_vec):
    with pytest.raises(ResetNeeded, match="reset"):
        make_vec(TASK, 2).step(np.zeros((2, 4)))


def test_stats(make_vec):
    envs = make_vec(TASK, 4)
    envs.reset(seed=0)
    for _ in range(5):
        envs.step(envs.action_space.sample())
    stats = envs.stats()
    assert stats["env_steps"] == 20 and stats["engine"] == "native"
    assert 0 < stats["exec_ms"]["p50"] <= stats["exec_ms"]["p99"]


BAD_ACTIONS = {
    "shape": (np.zeros((2, 3)), r"shape \(2, 3\); they must have \(2, 4\)"),
    "text": (np.array([["a"] * 4] * 2), "dtype"),
    "nan": (np.array([[0] * 4, [0, np.nan, 0, 0]]), "row 1, number 1, is nan"),
    "range": (np.array([[0, 0, 0, 3.0], [0] * 4]), r"row 0, number 3, is 3, outside \[-1, 1\]"),
}


@pytest.mark.parametrize("case", BAD_ACTIONS)
def test_bad_actions(make_vec, case):
    actions, message = BAD_ACTIONS[case]
    envs = make_vec(TASK, 2)
    before, _ = envs.reset(seed=0)
    with pytest.raises(BadAction, match=message):
        envs.step(actions)
    after = envs.step(np.zeros((2, 4)))[0]
    assert np.array_equal(after["target_pos"], before["target_pos"]), "nothing was stepped"


def test_clipping_where_asked_for(make_vec):
    far, near = make_vec(TASK, 2, clip_actions=True), make_vec(TASK, 2)
    far.reset(seed=0), near.reset(seed=0)
    action = np.full((2, 4), 5.0)
    assert same(far.step(action), near.step(np.ones((2, 4))))
    with pytest.raises(BadAction, match="nan"):
        far.step(np.full((2, 4), np.nan))


@pytest.mark.parametrize("num_envs", [0, -1, 2.5, True])
def test_bad_num_envs(num_envs):
    with pytest.raises(BadConfig, match="num_envs"):
        maniple.make_vec(TASK, num_envs)


def test_unknown_names():
    with pytest.raises(UnknownName, match="Did you mean so101/LiftCube-v0"):
        maniple.make_vec("so101/LiftCub-v0")
    with pytest.raises(BadConfig, match="Did you mean randomize"):
        maniple.make_vec(TASK, randomise=True)
    with pytest.raises(UnknownName, match="Did you mean native"):
        maniple.make_vec(TASK, engine="nativ")
    with pytest.raises(BadConfig, match="autoreset_mode"):
        maniple.make_vec(TASK, autoreset_mode="sometimes")
    with pytest.raises(UnknownName, match="Did you mean front"):
        maniple.make_vec(TASK, cameras=("frontt",))
    with pytest.raises(BadConfig, match="step_chunk"):
        envs = maniple.make_vec(TASK)
        envs.reset()
        envs.step_chunk(np.zeros(4))


def test_gymnasium_wrappers_fit(make_vec):
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make_vec(TASK, 2, max_episode_steps=3))
    envs.reset(seed=0)
    for _ in range(3):
        *_, info = envs.step(envs.action_space.sample())
    assert info["episode"]["l"].tolist() == [3, 3]
