"""RLBench's cameras, sizes, sensors, joints and thresholds, side by side with ours."""

import importlib
from functools import cache
from math import pi, radians

import mujoco
import numpy as np
import pytest

import maniple
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.task_model import build_model
from maniple.registry import RLBENCH, find

NEAR_M, NEAR_RAD = 0.01, radians(1)
UNMEASURED = {"turn_tap", "meat_off_grill", "put_groceries_in_cupboard"}
"""Tasks whose scene nobody has measured."""

# Position (m), direction of view, direction that is up in the picture, field of view (degrees).
CAMERAS = {
    "front": ((1.35, 0, 1.58), (-0.9063, 0, -0.4226), (-0.4226, 0, 0.9063), 40),
    "left_shoulder": (
        (-0.175, 0.2, 1.98),
        (0.4162, -0.0734, -0.9063),
        (0.8925, -0.1574, 0.4226),
        40,
    ),
    "right_shoulder": (
        (-0.175, -0.2, 1.98),
        (0.4162, 0.0734, -0.9063),
        (0.8925, 0.1574, 0.4226),
        40,
    ),
    "overhead": ((-0.175, 0, 2.43), (0.4226, 0, -0.9063), (0.9063, 0, 0.4226), 40),
}
WORKSPACE_M = ((-0.275, -0.655, 0.752), (0.775, 0.655, 1.752))
HOME_POSE = (0.2784, -0.0082, 1.4722, 0, 0.9927, 0, 0.121)

BUTTON, PLATE, BLOCK, SQUARE = (0.1, 0.1, 0.02), (0.056, 0.056, 0.007), (0.05,) * 3, (0.1, 0.1, 0)
SLIDER, WEE_BLOCK, DIRT = (0.056,) * 3, (0.0375,) * 3, (0.01,) * 3
CHEST = {"drawers": (0.383, 0.379, 0.470)} | {
    f"drawer_{name}": (0.367, 0.381, 0.118) for name in ("bottom", "middle", "top")
}
BOX = {"box": (0.360, 0.260, 0.150), "box_joint": (0.350, 0.268, 0.010)}

# Full extents in metres as measured in RLBench's scenes, along the axes of our bodies. Where one
# body here is several there, the extents of all of them together.
SIZES: dict[str, dict[str, tuple[float, ...]]] = {
    "reach_target": dict.fromkeys(("target", "distractor0", "distractor1"), (0.05,) * 3),
    "push_button": {"button": BUTTON, "button_joint": PLATE},
    "pick_and_lift": dict.fromkeys(("target", "distractor0", "distractor1"), BLOCK)
    | {"goal": (0.08,) * 3},
    "slide_block_to_target": {"block": SLIDER, "target": SQUARE},
    "open_drawer": CHEST,
    "close_drawer": CHEST,
    "take_lid_off_saucepan": {"pan": (0.439, 0.229, 0.090), "lid": (0.229, 0.230, 0.039)},
    "close_box": BOX,
    "stack_blocks": {f"{kind}{k}": BLOCK for kind in ("target", "distractor") for k in range(4)}
    | {"plane": (0.075, 0.075, 0)},
    "push_buttons": {f"button{k}": BUTTON for k in range(3)}
    | {f"button{k}_joint": PLATE for k in range(3)},
    "slide_block_to_color_target": {"block": SLIDER} | {f"target{k}": SQUARE for k in range(4)},
    "reach_and_drag": {"cube": (0.08,) * 3, "stick": (0.013, 0.360, 0.013)}
    | dict.fromkeys(("target", "distractor0", "distractor1", "distractor2"), (0.13, 0.13, 0)),
    "insert_onto_square_peg": {"stand": (0.4, 0.1, 0.02), "ring": (0.05, 0.05, 0.01)}
    | {f"pillar{k}": (0.025, 0.025, 0.120) for k in range(3)},
    "put_item_in_drawer": CHEST | {"item": (0.04,) * 3},
    "put_money_in_safe": {"safe": (0.588, 0.247, 0.495), "money": (0.136, 0.093, 0.032)},
    "close_jar": dict.fromkeys(("jar0", "jar1"), (0.091, 0.094, 0.110))
    | {"lid": (0.074, 0.074, 0.021)},
    "open_box": BOX,
    "light_bulb_in": {"lamp": (0.094, 0.094, 0.334)}
    | {f"holder{k}": (0.099, 0.099, 0.074) for k in range(2)}
    | {f"bulb{k}": (0.068, 0.068, 0.106) for k in range(2)},
    "put_rubbish_in_bin": {"bin": (0.203, 0.203, 0.191), "rubbish": (0.087, 0.050, 0.034)}
    | dict.fromkeys(("tomato1", "tomato2"), (0.065, 0.066, 0.070)),
    "press_switch": {"wall": (0.024, 0.500, 0.500), "switch": (0.041, 0.051, 0.022)},
    "stack_cups": {f"cup{k}": (0.093, 0.095, 0.147) for k in (1, 2, 3)},
    "place_wine_at_rack_location": {
        "rack": (0.329, 0.242, 0.124), "bottle": (0.060, 0.060, 0.246),
    },
    "sweep_to_dustpan_of_size": {
        "pans": (0.276, 0.679, 0.092), "broom": (0.263, 0.050, 0.653),
    } | {f"dirt{k}": DIRT for k in range(5)},
    "lamp_on": {
        "button": (0.035, 0.035, 0.02), "button_joint": (0.033, 0.033, 0.007),
        "lamp": (0.219, 0.219, 0.466),
    },
    "block_pyramid": {f"{k}{n}": WEE_BLOCK for k in ("block", "distractor") for n in range(6)}
    | {"plane": (0.05, 0.16, 0)},
    "open_microwave": {
        "microwave": (0.570, 0.276, 0.314), "microwave_door": (0.456, 0.046, 0.264),
    },
    "toilet_seat_down": {"toilet": (0.378, 0.212, 0.4696), "seat": (0.255, 0.225, 0.011)},
}  # fmt: skip

DIFFERENT = {
    ("sweep_to_dustpan_of_size", "broom"): "it is held upright: 65 cm would be out of reach",
}
"""Bodies that are off by more than a centimetre, and why."""

# Middle and full extents of each success sensor, in the frame of the body that it belongs to here.
SENSORS: dict[str, list[tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "reach_target": [((0, 0, 0), (0.1, 0.1, 0.08))],
    "pick_and_lift": [((0, 0, -0.013), (0.078, 0.078, 0.06))],
    "slide_block_to_target": [((0, 0, 0.0075), (0.01, 0.01, 0.015))],
    "take_lid_off_saucepan": [((0, 0, 0.2435), (0.1, 0.1, 0.055))],
    "stack_blocks": [((0, 0, 0.1025), (0.01, 0.01, 0.205))],
    "slide_block_to_color_target": [((0, 0, 0.0525), (0.1, 0.1, 0.105))] * 4,
    "reach_and_drag": [((0, 0, 0.0015), (0.1, 0.1, 0.015))],
    "insert_onto_square_peg": [
        ((0, 0.02, 0.0275), (0.04, 0.01, 0.055)), ((0, -0.023, 0.0275), (0.04, 0.01, 0.055)),
        ((-0.02, -0.005, 0.0275), (0.01, 0.04, 0.055)),
        ((0.02, -0.005, 0.0275), (0.01, 0.04, 0.055)),
    ],
    "put_item_in_drawer": [
        ((0, 0.023, z), (0.3, 0.3, 0.0825)) for z in (-0.0126, 0.0174, -0.0082)
    ],
    "put_money_in_safe": [
        ((-0.001, 0.009, 0.0268), (0.2, 0.2, 0.015)),
        ((-0.001, 0.012, 0.1715), (0.2, 0.2, 0.015)),
        ((-0.001, 0.012, 0.3265), (0.2, 0.2, 0.015)),
    ],
    "close_jar": [((0, 0, 0.1139), (0.05, 0.05, 0.025))],
    "light_bulb_in": [((0, 0, 0.2913), (0.02, 0.02, 0.025))],
    "put_rubbish_in_bin": [((0, 0, 0.0355), (0.14, 0.14, 0.065))],
    "stack_cups": [((0, 0, 0.0615), (0.04, 0.04, 0.105))],
    "place_wine_at_rack_location": [
        ((x, -0.0025, 0.113), (0.04, 0.205, 0.04)) for x in (0.001, 0.120, -0.115)
    ],
    "sweep_to_dustpan_of_size": [
        ((0, -0.275, 0.0255), (0.25, 0.15, 0.055)), ((0.041, 0.188, 0.0155), (0.15, 0.09, 0.033)),
    ],
    "block_pyramid": [
        ((0, 0, 0.0185), (0.03, 0.14, 0.035)), ((0, 0, 0.0545), (0.03, 0.08, 0.035)),
        ((0, 0, 0.0925), (0.03, 0.05, 0.035)),
    ],
}  # fmt: skip

# Least and largest position of each joint (metres or rad).
BUTTON_RANGE, DRAWER_RANGE, LID_RANGE = (-0.007, 0.003), (0.0, 0.3), (-0.2531, 2.3649)
DRAWER_RANGES = {f"drawer_{name}": DRAWER_RANGE for name in ("bottom", "middle", "top")}
JOINTS: dict[str, dict[str, tuple[float, float]]] = {
    "push_button": {"button_joint": BUTTON_RANGE},
    "push_buttons": {f"button{k}_joint": BUTTON_RANGE for k in range(3)},
    "lamp_on": {"button_joint": BUTTON_RANGE},
    "open_drawer": DRAWER_RANGES,
    "close_drawer": DRAWER_RANGES,
    "put_item_in_drawer": DRAWER_RANGES,
    "close_box": {"box_joint": LID_RANGE},
    "open_box": {"box_joint": LID_RANGE},
    "press_switch": {"switch": (0.0, 1.0472)},
    "open_microwave": {"microwave_door": (0.0, 1.5708)},
    "toilet_seat_down": {"seat": (0.0, 1.7453)},
}

# How far a joint has to move (metres or rad).
THRESHOLDS = {
    "button.PRESSED_M": 0.003,
    "open_drawer.OPENED_M": 0.15,
    "close_drawer.CLOSED_M": 0.06,
    "close_box.MOVED_RAD": 2.6,
    "open_box.MOVED_RAD": pi / 2,
    "press_switch.TURNED_RAD": 1.0,
    "open_microwave.OPENED_RAD": radians(80),
    "toilet_seat_down.MOVED_RAD": 1.7,
}


@cache
def model_of(task: str) -> mujoco.MjModel:
    return build_model(find(task)())


def furniture(model: mujoco.MjModel) -> dict[str, list[int]]:
    """Shapes of every body that is not the robot's: those to touch, or all if there are none."""
    robot = _below(model, "link0")
    found: dict[str, list[int]] = {}
    for body in set(range(1, model.nbody)) - robot:
        shapes = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body]
        touchable = [g for g in shapes if model.geom_contype[g] or model.geom_conaffinity[g]]
        if shapes:
            found[model.body(body).name] = touchable or shapes
    return found


def extents(model: mujoco.MjModel, shapes: list[int]) -> np.ndarray:
    """Sides of the box around shapes, in their body's frame."""
    lows, highs = [], []
    for g in shapes:
        mat = np.zeros(9)
        mujoco.mju_quat2Mat(mat, model.geom_quat[g])
        turn = mat.reshape(3, 3)
        middle = model.geom_pos[g] + turn @ model.geom_aabb[g, :3]
        half = np.abs(turn) @ model.geom_aabb[g, 3:]
        lows.append(middle - half)
        highs.append(middle + half)
    return np.max(highs, axis=0) - np.min(lows, axis=0)


def _below(model: mujoco.MjModel, name: str) -> set[int]:
    found = {model.body(name).id}
    for body in range(1, model.nbody):
        if int(model.body_parentid[body]) in found:
            found.add(body)
    return found


@pytest.mark.parametrize("camera", CAMERAS)
def test_cameras(camera):
    pos, ahead, up, fov = CAMERAS[camera]
    ours = model_of("reach_target").camera(camera)
    mat = np.zeros(9)
    mujoco.mju_quat2Mat(mat, ours.quat)
    _, y, z = mat.reshape(3, 3).T
    assert ours.pos == pytest.approx(pos, abs=NEAR_M)
    assert min(-z @ ahead, y @ up) > np.cos(NEAR_RAD)
    assert ours.fovy == pytest.approx(fov)


def test_workspace_and_home_pose():
    task = find("reach_target")()
    assert (task.ee_low_m, task.ee_high_m) == WORKSPACE_M
    pose = maniple.make("ReachTarget").reset(seed=0)[0]["gripper_pose"]
    assert pose[:3] == pytest.approx(HOME_POSE[:3], abs=0.001)
    assert 2 * np.arccos(min(1.0, abs(pose[3:] @ HOME_POSE[3:]))) < NEAR_RAD


def test_every_measured_task_is_compared():
    assert set(SIZES) == set(RLBENCH) - UNMEASURED


@pytest.mark.parametrize("task", SIZES)
def test_sizes(task):
    """Every body is as large as RLBench's, or is listed with a reason, and then it does differ."""
    model = model_of(task)
    ours = {name: extents(model, shapes) for name, shapes in furniture(model).items()}
    assert set(ours) == set(SIZES[task])
    off = {name for name in ours if np.abs(ours[name] - SIZES[task][name]).max() > NEAR_M}
    listed = {body for of, body in DIFFERENT if of == task}
    assert off == listed, {name: ours[name].round(3).tolist() for name in off ^ listed}


@pytest.mark.parametrize("task", SENSORS)
def test_sensors(task):
    module = importlib.import_module(f"maniple.envs.panda.tasks.{task}")
    ours = [
        (volume.centre, 2 * np.array(volume.half))
        for value in vars(module).values()
        for volume in _volumes(value)
    ]
    assert len(ours) == len(SENSORS[task])
    for (centre, size), (their_centre, their_size) in zip(ours, SENSORS[task], strict=True):
        assert centre == pytest.approx(their_centre, abs=0.006)
        assert size == pytest.approx(their_size, abs=0.001)


def _volumes(value: object) -> list[ProximitySensor]:
    if isinstance(value, ProximitySensor):
        return [value]
    if isinstance(value, list | tuple):
        return [volume for entry in value for volume in _volumes(entry)]
    return []


@pytest.mark.parametrize("task", JOINTS)
def test_joints(task):
    model = model_of(task)
    for name, limits in JOINTS[task].items():
        assert model.joint(name).range == pytest.approx(limits, abs=0.001)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds(name):
    module, constant = name.split(".")
    folder = "tasks." if module in RLBENCH else ""
    ours = getattr(importlib.import_module(f"maniple.envs.panda.{folder}{module}"), constant)
    assert ours == pytest.approx(THRESHOLDS[name])
