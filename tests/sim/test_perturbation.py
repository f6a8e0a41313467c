"""Perturbed rows show another world, and only as far as was asked."""

import numpy as np
import pytest

import maniple
from maniple.core.errors import BadConfig

CAMERA = {"cameras": ("front",), "image_size": (48, 48), "autoreset_mode": "Disabled"}


def seen(perturb, seed=3, rows=4, steps=1, task="so101/PushCube-v0", **options):
    envs = maniple.make_vec(task, rows, perturb=perturb, **CAMERA, **options)
    obs, _ = envs.reset(seed=seed)
    shots = [obs]
    for _ in range(steps):
        obs, *_ = envs.step(np.zeros((rows, *envs.action_spec.shape), np.float32))
        shots.append(obs)
    envs.close()
    return shots


@pytest.fixture(scope="module")
def plain():
    return seen({})


@pytest.mark.parametrize(
    ("kind", "far"), [("background", 0.4), ("object_colour", 0.5), ("light", 0.4), ("camera", 0.05)]
)
def test_looks_differ_and_the_task_does_not(plain, kind, far):
    shots = seen({kind: far})
    for before, now in zip(plain, shots, strict=True):
        assert (before["front_rgb"] != now["front_rgb"]).any((1, 2, 3)).all(), "every row"
        for name in ("joint_pos", "tip_pos", "cube_pose", "goal_pos"):
            assert np.array_equal(before[name], now[name]), name
    changes = shots[0]["front_rgb"].astype(int) - plain[0]["front_rgb"]
    assert len({row.tobytes() for row in changes}) == 4, "rows differ from each other"
    again = seen({kind: far})
    assert np.array_equal(again[1]["front_rgb"], shots[1]["front_rgb"]), "a seed brings it again"


def test_object_colour_leaves_the_desk_alone(plain):
    change = np.abs(
        seen({"object_colour": 0.5})[0]["front_rgb"].astype(int) - plain[0]["front_rgb"]
    )
    share = (change.max(-1) > 8).mean()
    assert 0 < share < 0.05, "a small cube, not the whole picture"


def test_another_start_stays(plain):
    shots = seen({"start": 0.2}, steps=5, control="delta_joint")
    gap = np.abs(shots[0]["joint_pos"] - plain[0]["joint_pos"])
    assert 0.02 < gap.max() <= 0.2 + 1e-6
    moved = np.abs(shots[5]["joint_pos"][:, :5] - shots[0]["joint_pos"][:, :5]).max()
    assert moved < 0.1, "servos hold the new start"
    for name in ("cube_pose", "goal_pos"):
        assert np.allclose(shots[0][name], plain[0][name], atol=1e-6)


@pytest.mark.parametrize("engine", ["serial", "process"])
def test_engines_agree(engine):
    how = {"background": 0.3, "camera": 0.03, "start": 0.1}
    a, b = seen(how), seen(how, engine=engine)
    for name in a[1]:
        assert np.array_equal(a[1][name], b[1][name]), name


def test_nonsense_is_refused():
    with pytest.raises(BadConfig, match="Did you mean background"):
        seen({"backgrond": 1.0})


@pytest.mark.parametrize(
    "perturb",
    [{"light": -1}, {"light": float("nan")}, {"light": "much"}, {"light": None}, {"light": True},
     {3: 1.0}, "light", 5, ["light"], [("light", 1, 2)]],
)  # fmt: skip
def test_what_is_no_perturbation(perturb):
    with pytest.raises(BadConfig, match="perturb") as error:
        maniple.make_vec("so101/PushCube-v0", 1, perturb=perturb)
    assert "\n" not in str(error.value)


def test_a_task_that_computes_only_what_it_reads():
    """Its cameras move too: it then computes everything, and to the same numbers."""
    clean = seen({}, task="LeRobot-v0", steps=2)
    shots = seen({"camera": 0.1}, task="LeRobot-v0", steps=2)
    assert (clean[2]["front_rgb"] != shots[2]["front_rgb"]).any((1, 2, 3)).all()
    assert np.array_equal(clean[2]["qpos"], shots[2]["qpos"])


def test_axes_do_not_disturb_each_other():
    """What an axis draws does not depend on the others, nor on their order."""
    one = seen({"light": 0.4, "start": 0.1})
    other = seen({"mass": 0.3, "start": 0.1, "light": 0.4})
    assert np.array_equal(one[0]["joint_pos"], other[0]["joint_pos"])
    assert np.array_equal(one[0]["front_rgb"], other[0]["front_rgb"])


def test_late_actions():
    """After two steps of rest the same moves follow, two steps later."""
    moves = np.random.default_rng(0).uniform(-1, 1, (9, 2, 4)).astype(np.float32)
    tracks = []
    for perturb in ({}, {"action_delay": 2}):
        envs = maniple.make_vec("so101/Reach-v0", 2, perturb=perturb, max_episode_steps=50)
        envs.reset(seed=1)
        tracks.append([envs.step(move)[0]["joint_pos"] for move in moves])
        envs.close()
    first, late = np.array(tracks[0]), np.array(tracks[1])
    assert np.abs(late[1] - late[0]).max() < 1e-3 < np.abs(first[1] - first[0]).max()
    assert np.allclose(late[4:], first[2:7], atol=0.02)
    assert not np.allclose(late[4:], first[4:], atol=0.02)


def test_noise_has_the_size_that_was_asked_for():
    clean = seen({}, rows=16)[0]
    noisy = seen({"observation_noise": 0.01, "pixel_noise": 5}, rows=16)[0]
    gap = noisy["joint_pos"] - clean["joint_pos"]
    assert 0.008 < gap.std() < 0.012 and abs(gap.mean()) < 0.004
    pixels = noisy["front_rgb"].astype(int) - clean["front_rgb"]
    inside = (clean["front_rgb"] > 30) & (clean["front_rgb"] < 225)
    assert 4.5 < pixels[inside].std() < 5.5


def test_things_lie_apart_from_the_task_s_own():
    envs = maniple.make_vec("so101/PushCube-v0", 6, perturb={"distractors": 5})
    envs.reset(seed=0)
    for state, model in zip(envs.get_state(), envs.get_attr("model"), strict=True):
        names = [model.body(k).name for k in range(model.nbody)]
        places = {name: state["xpos"][k] for k, name in enumerate(names)}
        laid = [places[name] for name in names if name.startswith("distractor.")]
        assert len(laid) == 5 and min(place[2] for place in laid) > 0
        for k, place in enumerate(laid):
            assert np.hypot(*(place - places["cube"])[:2]) > 0.03
            assert all(np.hypot(*(place - other)[:2]) > 0.08 for other in laid[:k])
    envs.close()


@pytest.mark.parametrize("perturb", [{"action_delay": 1.5}, {"mass": 1.0}, {"distractors": 99}])
def test_what_is_too_much(perturb):
    with pytest.raises(BadConfig, match="perturb"):
        maniple.make_vec("so101/PushCube-v0", 1, perturb=perturb)
