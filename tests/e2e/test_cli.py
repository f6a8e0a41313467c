"""The command line, run as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def maniple(*words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "maniple", *words], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done


def last_json(done):
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_help_imports_nothing_heavy():
    code = "import sys; from maniple.cli.main import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "bench" in done.stdout
    assert not loaded & {"numpy", "gymnasium", "mujoco", "tyro", "rich", "torch"}


def test_list(inside):
    tasks = json.loads(inside("list", "--json").out)["tasks"]
    assert {"LeRobot-v0", "so101/Reach-v0"} <= {t["id"] for t in tasks}
    assert {"id", "robot", "sentence", "cameras", "experimental"} <= set(tasks[0])
    assert "so101/LiftCube-v0" in inside("list").out
    assert "shoulder_pan" in inside("list", "--robots").out


def test_doctor():
    answer = last_json(maniple("doctor", "--json"))
    assert answer["ok"]
    assert {c["status"] for c in answer["checks"]} <= {"OK", "WARN", "FAIL"}
    assert {"python", "cores", "drawing", "codecs"} <= {c["code"] for c in answer["checks"]}


@pytest.mark.parametrize("flag", ["--num-envs", "--num_envs"])
def test_bench(flag):
    answer = last_json(
        maniple("bench", flag, "4", "--steps", "20", "--action-chunk", "5", "--json")
    )
    assert answer["num_envs"] == 4 and answer["action_chunk"] == 5
    assert answer["env_steps_per_s"] > 0
    assert set(answer["exec_ms"]) == set(answer["transport_ms"]) == {"p50", "p90", "p99"}
    assert {"task", "engine", "workers"} <= set(answer)


def test_bench_with_pictures_and_limit():
    words = "bench --task so101/Reach-v0 --num-envs 2 --steps 14 --copy-obs 0 --image-size 32 48"
    answer = last_json(maniple(*words.split(), "--limit", "--json"))
    assert answer["cameras"] == ["front", "wrist"]
    assert answer["fraction_of_limit"] > 0


def test_bench_limit(inside):
    done = inside("bench", "limit", "--task", "LeRobot-v0", "--steps", "50", "--json")
    answer = json.loads(done.out)
    assert answer["env_steps_per_s"] > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("bench", "--task", "lerobt"), "Did you mean LeRobot-v0"),
        (("bench", "--num-envs", "0"), "num_envs is 0"),
        (("bench", "--steps", "0"), "--steps"),
        (("bench", "--engine", "warp"), "No engine is named 'warp'"),
        (("benhc",), "Did you mean bench"),
    ],
)
def test_mistakes_are_one_readable_line(words, says, inside):
    done = inside(*words, code=2)
    assert says in done.err
    assert "Traceback" not in done.err and len(done.err.strip().splitlines()) == 1


def test_unknown_flags_fail(inside):
    assert "num-envss" in inside("bench", "--num-envss", "3", code=2).err


def test_debug_shows_the_traceback():
    assert "Traceback" in maniple("bench", "--task", "x", "--debug", code=1).stderr


def test_bench_records_films(tmp_path):
    words = f"bench --task so101/Reach-v0 --num-envs 2 --steps 8 --record {tmp_path} --json"
    answer = last_json(maniple(*words.split(), "--image-size", "32", "32"))
    assert answer["cameras"] == ["front", "wrist"] and answer["engine"] == "native"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[:2] == ["env_000_front_episode_0000.mp4", "env_000_wrist_episode_0000.mp4"]
    assert not [name for name in names if name.endswith(".part")]


def test_the_demo_draws_every_task(tmp_path):
    """Each with its expert on its way, also where the task hides what the expert looks at."""
    from maniple.cli.demo import Options, _draw_tasks

    path = _draw_tasks(Options(out=tmp_path))
    assert path.read_bytes()[:4] == b"\x89PNG" and path.stat().st_size > 50_000


@pytest.mark.parametrize("line", ["data export {data} --out {file}", "list --pictures {file}/x"])
def test_a_file_where_a_folder_should_be_is_one_line(inside, tmp_path, line):
    file = tmp_path / "file"
    file.write_text("here")
    inside(
        "demos", "record", "--task", "so101/Reach-v0", "--episodes", "1", "--out", tmp_path / "d"
    )
    told = inside(*line.format(data=tmp_path / "d", file=file).split(), code=2)
    assert str(file) in told.err and file.read_text() == "here"


@pytest.mark.slow
@pytest.mark.alone
def test_mutated_lines_end_in_words():
    fuzz = Path(__file__).with_name("fuzz_cli.py")
    done = subprocess.run([sys.executable, fuzz, "300"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
