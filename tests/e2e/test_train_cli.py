"""train and eval as a user types them."""

import json
import subprocess
import sys

import pytest

SMALL = [
    "--num_envs", "4", "--max_steps", "400", "--random_steps", "100", "--training_starts", "100",
    "--batch_size", "32", "--eval_n_trajs", "4", "--log_period", "200", "--torch-threads", "1",
]  # fmt: skip


def maniple(*words: str, code: int = 0) -> subprocess.CompletedProcess:
    """Run a command and check how it ends."""
    command = [sys.executable, "-m", "maniple", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_train_then_eval(tmp_path, inside):
    """The original's flags train, and the policy can be judged and filmed."""
    run = str(tmp_path / "run")
    done = maniple("train", "sac", *SMALL, "--checkpoint_path", run, "--json")
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["steps"] == 400 and answer["run_dir"] == run
    done = inside("eval", "--checkpoint", run, "--num-envs", "3", "--episodes", "5", "--json")
    judged = json.loads(done.out.splitlines()[-1])
    assert judged["episodes"] == 5 and 0 <= judged["success_rate"] <= 1
    low, high = judged["success_ci95"]
    assert low <= judged["success_rate"] <= high
    assert isinstance(judged["return_mean"], float)
    for film in ("best.mp4", "worst.mp4"):
        assert (tmp_path / "run" / "videos" / film).stat().st_size > 1000
    picture = tmp_path / "curves.png"
    inside("plot", run, "--out", str(picture))
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "It has:" in inside("plot", run, "--metric", "luck", code=2).err
    assert "holds a run already" in inside("train", "sac", "--run-dir", run, code=2).err


def test_recorded_demonstrations_are_imitated(tmp_path, inside):
    """record, then bc."""
    demos = str(tmp_path / "demos")
    inside("demos", "record", "--task", "so101/Reach-v0", "--episodes", "4", "--out", demos)
    words = ["--demos", "0", "--demo_path", demos, "--max_steps", "50", "--eval_n_trajs", "4"]
    done = inside("train", "bc", *words, "--run-dir", str(tmp_path / "bc"), "--json")
    assert json.loads(done.out.splitlines()[-1])["updates"] == 50


def test_resume_tells_from_where_and_takes_nothing_torn(tmp_path, inside):
    run = tmp_path / "run"
    words = ["train", "sac", *SMALL, "--run-dir", str(run), "--resume"]
    assert "a new run begins" in inside(*words).err
    assert "Going on from" in inside(*words).err
    lines = (run / "metrics.jsonl").read_text()
    (weights,) = run.glob("checkpoints/step-*/weights.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    assert "holds no whole checkpoint" in inside(*words, code=2).err
    assert (run / "metrics.jsonl").read_text() == lines, "nothing is lost"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("train sac --task so101/Reech-v0", "Did you mean so101/Reach-v0"),
        ("train sac --num-envs 0", "num_envs is 0"),
        ("train sac --role boss", "role is 'boss'"),
        ("train drq --task OpenDrawer --backend rlbench", "--backend rlbench"),
        ("train bc --demos 0", "BC needs demonstrations"),
        ("train drq --env.image-size 0 64", "image_size is 0"),
        ("train drq --env.cameras frontt", "Did you mean front"),
        ("eval --checkpoint /nowhere", "no checkpoint at"),
    ],
)
def test_mistakes_are_one_readable_line(words, says, tmp_path, inside):
    """Each names what was found and what to do."""
    more = ["--run-dir", str(tmp_path / "run")] if words.startswith("train") else []
    done = inside(*words.split(), *more, code=2)
    assert says in done.err
    assert not (tmp_path / "run").exists(), "a mistake leaves nothing behind"
