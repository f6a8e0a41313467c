"""The commands, the doctor and the scripts, over RLBench's stand-in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlbench_fixtures import DISPLAY, STANDIN, make_root

from maniple.data.demos import load

ROOT = Path(__file__).parents[3]


@pytest.fixture
def variables(tmp_path):
    paths = [STANDIN / "v120", STANDIN / "shared", ROOT / "src"]
    root = make_root(tmp_path / "CoppeliaSim")
    env = {**os.environ, "PYTHONPATH": ":".join(map(str, paths)), "TMPDIR": str(tmp_path)}
    return {**env, "COPPELIASIM_ROOT": str(root), **DISPLAY}


def maniple(env, *words, code=0):
    words = [sys.executable, "-m", "maniple", *map(str, words)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def last_json(done):
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("mode", ["ik", "planning", "delta_ee", "delta_position", "joint_velocity"])
def test_bench(variables, mode):
    words = "bench --task OpenDrawer --backend rlbench --num-envs 2 --steps 32 --action-chunk 16"
    answer = last_json(
        maniple(variables, *words.split(), "--arm-mode", mode, "--copy-obs", 0, "--json",
                "--image-size", 16, 24, "--robot-setup", "panda")
    )  # fmt: skip
    assert answer["backend"] == "rlbench" and answer["engine"] == "process"
    assert answer["cameras"] == ["front", "wrist"] and answer["workers"] == 2
    assert answer["env_steps_per_s"] > 0 and "restarts" not in answer


def test_demonstrations_are_recorded(variables, tmp_path):
    out = tmp_path / "demos"
    words = "demos record --task open-drawer --backend rlbench --episodes 3 --num-envs 2"
    answer = last_json(
        maniple(variables, *words.split(), "--image-size", 8, 8, "--out", out, "--json")
    )
    assert answer["recorded"] == 3
    episodes = load(out)
    assert len(episodes) == 3 and all(e.success and e.action.shape[1] == 8 for e in episodes)
    assert episodes[0].obs["front_rgb"].shape[1:] == (8, 8, 3) and "open_drawer" in episodes[0].task


def test_a_policy_is_trained_and_judged(variables, tmp_path):
    """The very same commands, with one word more."""
    run = tmp_path / "run"
    words = "train sac --task open_drawer --backend rlbench --num-envs 2 --max-steps 60"
    small = "--random-steps 20 --training-starts 20 --batch-size 8 --eval-n-trajs 2 --json"
    done = maniple(variables, *words.split(), *small.split(), "--run-dir", run)
    assert last_json(done)["steps"] == 60
    words = ("eval", "--checkpoint", run, "--num-envs", 1, "--episodes", 1, "--no-video", "--json")
    assert last_json(maniple(variables, *words))["episodes"] == 1


def finding(env, code):
    checks = last_json(maniple(env, "doctor", "--json"))["checks"]
    return next((check for check in checks if check["code"] == code), None)


def test_the_doctor_finds_it_well(variables):
    assert finding(variables, "coppeliasim")["found"].endswith("4.1.0")
    found = finding(variables, "rlbench")
    assert found["status"] == "OK" and "with one" in found["found"]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("launch_fail", "Could not launch CoppeliaSim"),
        ("handle_missing", "does not exist"),
        ("segv@reset:1", "ended by signal 11 (last worked: launched)"),
    ],
)
def test_the_doctor_survives_a_broken_one(variables, fault, says):
    found = finding({**variables, "FAKE_RLBENCH": fault}, "rlbench")
    assert found["status"] == "WARN" and says in found["found"], found


def test_the_doctor_explains_another_version(variables, tmp_path):
    newer = make_root(tmp_path / "Newer", 40300)
    found = finding({**variables, "COPPELIASIM_ROOT": str(newer)}, "coppeliasim")
    assert found["status"] == "WARN" and "4.3.0" in found["found"]
    nowhere = finding({**variables, "COPPELIASIM_ROOT": str(tmp_path / "none")}, "coppeliasim")
    assert nowhere["status"] == "WARN" and "libcoppeliaSim.so" in nowhere["found"]


def script(name, *words, **env):
    words = ["bash", str(ROOT / "scripts" / name), *map(str, words)]
    return subprocess.run(
        words, env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )


def test_the_installer_of_coppeliasim(tmp_path):
    done = script("install_coppeliasim.sh", make_root(tmp_path / "there"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"export COPPELIASIM_ROOT={tmp_path / 'there'}\n"
    assert (tmp_path / "there/libcoppeliaSim.so.1").is_symlink()
    done = script("install_coppeliasim.sh", make_root(tmp_path / "newer", 40300))
    assert done.returncode == 1 and "not 40100" in done.stderr
    (tmp_path / "other").mkdir()
    done = script("install_coppeliasim.sh", tmp_path / "other")
    assert done.returncode == 1 and "is no CoppeliaSim" in done.stderr
    (tmp_path / "small.tar.xz").write_bytes(b"<html>not found</html>")
    archive = str(tmp_path / "small.tar.xz")
    done = script("install_coppeliasim.sh", tmp_path / "new", COPPELIASIM_ARCHIVE=archive)
    assert done.returncode == 1 and "not the whole archive" in done.stderr
    assert not (tmp_path / "new").exists()


def test_the_other_scripts(tmp_path):
    assert "apt-get install -y xvfb" in script("setup_headless.sh", "--print").stdout
    done = script("install_rlbench.sh", sys.executable, COPPELIASIM_ROOT=str(tmp_path))
    assert done.returncode == 1 and "install_coppeliasim.sh" in done.stderr
