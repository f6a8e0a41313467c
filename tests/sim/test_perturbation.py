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


def test_a_task_whose_cameras_stand_still():
    with pytest.raises(BadConfig, match="cannot perturb 'camera'"):
        maniple.make_vec("LeRobot-v0", 1, perturb={"camera": 0.1})
