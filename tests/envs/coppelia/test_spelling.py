"""Names, settings and versions: everything that is decided before a simulator starts."""

import numpy as np
import pytest
from rlbench_fixtures import coppelia, install, make_root  # noqa: F401

import maniple
from maniple.core.errors import BadConfig, MissingExtra, UnknownName
from maniple.envs.coppelia import check_version, find_root, variables, version_of
from maniple.envs.rlbench.config import RLBenchConfig
from maniple.envs.rlbench.contract import contract
from maniple.envs.rlbench.names import TASKS, find_task


@pytest.mark.parametrize("name", TASKS)
def test_every_task_in_every_spelling(name):
    camel = "".join(word.capitalize() for word in name.split("_"))
    for spelling in (name, camel, name.replace("_", "-"), f"panda/{camel}-v0"):
        assert find_task(spelling) == name


def test_all_tasks_are_there():
    assert len(TASKS) == len(set(TASKS)) == 106


def test_a_wrong_name_is_told():
    with pytest.raises(UnknownName, match="Did you mean open_drawer"):
        find_task("OpenDrawr")


def test_a_task_of_the_user_s_own(tmp_path, monkeypatch):
    install("v120", tmp_path, monkeypatch)
    package = tmp_path / "mine/rlbench"
    (package / "tasks").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "tasks/wave_hello.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    assert find_task("WaveHello") == "wave_hello"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"arm_mode": "plannign"}, "Did you mean planning"),
        ({"cameras": ("fornt",)}, "Did you mean front"),
        ({"robot_setup": "pandas"}, "Did you mean panda"),
        ({"observations": ("gripper",)}, "observations is 'gripper'"),
        ({"image_size": (64,)}, "image_size"),
        ({"reward": "dense"}, "only for reach_target"),
        ({"armmode": "ik"}, "Did you mean arm_mode"),
        ({"variation": -1}, "variation is -1"),
    ],
)
def test_wrong_settings_are_told(options, says):
    with pytest.raises(BadConfig, match=says):
        RLBenchConfig.of("OpenDrawer", options)


def test_the_old_name_of_the_renderer_is_accepted():
    for name in ("renderer", "coppelia_renderer"):
        assert RLBenchConfig.of("OpenDrawer", {name: "opengl3"}).coppelia_renderer == "opengl3"
    assert RLBenchConfig.of("OpenDrawer", {"renderer": "auto"}).coppelia_renderer == "opengl"
    with pytest.raises(BadConfig, match="CoppeliaSim"):
        RLBenchConfig.of("OpenDrawer", {"renderer": "mujoco"})


def test_spaces_are_known_before_anything_is_launched(coppelia):
    envs = maniple.registry.recipe(
        "OpenDrawer",
        {"backend": "rlbench", "cameras": ("front",), "image_size": (32, 48),
         "image_kinds": ("rgb", "depth", "mask", "point_cloud")},
    )  # fmt: skip
    told = envs.contract()
    shapes = {name: (spec.shape, spec.dtype.name) for name, spec in told.observation.items()}
    assert shapes["front_rgb"] == ((32, 48, 3), "uint8")
    assert shapes["front_depth"] == ((32, 48), "float32")
    assert shapes["front_mask"] == ((32, 48), "int32")
    assert shapes["front_point_cloud"] == ((32, 48, 3), "float32")
    assert shapes["gripper_pose"] == ((7,), "float32")
    assert told.action_space.shape == (8,)
    with pytest.raises(BadConfig, match="known only after"):
        contract(RLBenchConfig("OpenDrawer", observations=("task_low_dim_state",)))


@pytest.mark.parametrize(
    ("mode", "robot", "numbers"),
    [("ik", "panda", 8), ("planning", "ur5", 8), ("joint_velocity", "ur5", 7),
     ("joint_position", "sawyer", 8)],
)  # fmt: skip
def test_numbers_of_an_action(mode, robot, numbers):
    config = RLBenchConfig("ReachTarget", arm_mode=mode, robot_setup=robot)
    assert contract(config).action_space.shape == (numbers,)
    assert contract(config).action_space.dtype == np.float32


def test_versions(tmp_path):
    assert check_version(make_root(tmp_path / "right")) == (4, 1, 0)
    with pytest.raises(BadConfig, match=r"CoppeliaSim 4\.3\.0.*4\.1\.0 only.*COPPELIASIM_ROOT"):
        check_version(make_root(tmp_path / "wrong", 40300))
    newer = make_root(tmp_path / "newer")
    header = (
        "#define SIM_VERSION_MAJOR 4\n#define SIM_VERSION_MINOR 9\n#define SIM_VERSION_PATCH 0\n"
    )
    (newer / "programming/include/simConst.h").write_text(header)
    assert version_of(newer) == (4, 9, 0)
    readme = tmp_path / "readme"
    readme.mkdir()
    (readme / "readme.txt").write_text("This is the Debian/Ubuntu release V4.1.0, 64bit\n")
    assert version_of(readme) == (4, 1, 0)
    named = tmp_path / "CoppeliaSim_Edu_V4_1_0_Ubuntu20_04"
    named.mkdir()
    assert version_of(named) == (4, 1, 0)
    silent = tmp_path / "silent"
    silent.mkdir()
    assert check_version(silent) is None


def test_finding_it(tmp_path):
    with pytest.raises(BadConfig, match="install_coppeliasim"):
        find_root({"HOME": str(tmp_path)})
    with pytest.raises(BadConfig, match="no libcoppeliaSim"):
        find_root({"COPPELIASIM_ROOT": str(tmp_path)})
    usual = make_root(tmp_path / "CoppeliaSim_Edu_V4_1_0_Ubuntu20_04")
    assert find_root({"HOME": str(tmp_path)}) == usual
    other = make_root(tmp_path / "other")
    assert find_root({"HOME": str(tmp_path), "COPPELIASIM_ROOT": str(other)}) == other


def test_variables(tmp_path):
    found = variables(tmp_path, False, {"LD_LIBRARY_PATH": "/a:/b"})
    assert found["LD_LIBRARY_PATH"] == f"{tmp_path}:/a:/b"
    assert found["QT_QPA_PLATFORM"] == "offscreen"
    assert "QT_QPA_PLATFORM" not in variables(tmp_path, True, {})
    # What works without cameras has no OpenGL.
    assert variables(tmp_path, True, {"QT_QPA_PLATFORM": "offscreen"})["QT_QPA_PLATFORM"] == "xcb"


def test_what_is_missing_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("COPPELIASIM_ROOT", str(make_root(tmp_path / "CoppeliaSim")))
    if not _has_rlbench():
        with pytest.raises(MissingExtra, match=r"rlbench is not installed.*install_rlbench\.sh"):
            maniple.make_vec("OpenDrawer", 2, backend="rlbench")
    monkeypatch.setenv("COPPELIASIM_ROOT", str(make_root(tmp_path / "Newer", 40500)))
    with pytest.raises(BadConfig, match=r"4\.5\.0"):
        maniple.make_vec("OpenDrawer", 2, backend="rlbench")


def _has_rlbench():
    from importlib.util import find_spec

    return find_spec("rlbench") is not None


def test_what_cannot_work_is_told(coppelia):
    with pytest.raises(BadConfig, match="once per process"):
        maniple.make_vec("OpenDrawer", 2, backend="rlbench", engine="native")
    with pytest.raises(BadConfig, match="once per process"):
        maniple.make_vec("OpenDrawer", 4, backend="rlbench", workers=2)
    with pytest.raises(BadConfig, match="process of its own"):
        maniple.make("OpenDrawer", backend="rlbench")
    with pytest.raises(UnknownName, match="Did you mean rlbench"):
        maniple.make_vec("OpenDrawer", 2, backend="rlbnch")
