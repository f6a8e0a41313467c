"""train and eval as a user types them."""

import json
import signal
import subprocess
import sys
import time

import av
import pytest
import yaml

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
        with av.open(str(tmp_path / "run" / "videos" / film)) as played:
            shown = list(played.decode(video=0))
        assert len(shown) > 25, "how it ended stays to be seen for a second"
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
        ("train sac --stop-at-success 7", "it is a rate"),
        ("train sac --utd-ratio inf", "utd_ratio is inf"),
        ("train sac --agent.lr nan", "lr is nan"),
        ("train sac --env.robot nowhere:x", "The robot 'nowhere:x' cannot be loaded"),
        ("train drq --task OpenDrawer --backend rlbench --demos 5", "--backend rlbench"),
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


def test_resume_needs_no_other_flag(tmp_path, inside):
    """The settings are those of the run; another algorithm's folder is named."""
    run = str(tmp_path / "run")
    inside("train", "sac", *SMALL, "--run-dir", run)
    done = inside("train", "sac", "--resume", "--run-dir", run, "--max-steps", "480", "--json")
    assert json.loads(done.out.splitlines()[-1])["steps"] == 480
    refused = inside("train", "bc", "--resume", "--run-dir", run, code=2)
    assert f"maniple train sac --resume --run-dir {run}" in refused.err


def test_ctrl_c_says_how_to_go_on(tmp_path):
    """In good order: a checkpoint is there, and the code is a shell's for Ctrl-C."""
    run = tmp_path / "run"
    words = [sys.executable, "-m", "maniple", "train", "sac", *SMALL, "--max-steps", "1000000"]
    words += ["--run-dir", str(run), "--checkpoint-period", "200"]
    child = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not list(run.glob("checkpoints/step-*")):
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert f"stopped; go on with: maniple train sac --resume --run-dir {run}" in err


def test_plot_leaves_out_runs_without_an_evaluation(tmp_path, inside):
    """One run that has not come to it yet does not spoil the picture of the others."""
    for name, line in (("a", '{"step": 1, "success": 0.5}'), ("b", '{"step": 1}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text(line + "\n")
    words = ["plot", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "c.png")]
    assert "left out" in inside(*words).out
    assert (tmp_path / "c.png").exists()
    assert "It has: step" in inside("plot", str(tmp_path / "b"), code=2).err


@pytest.mark.parametrize("family", ["train", "demos", "data", "new"])
def test_families_of_verbs_have_help(family, inside):
    """With and without --help."""
    assert f"maniple {family} " in inside(family, "--help").out
    assert f"maniple {family} " in inside(family).out


def test_nothing_is_printed_or_made_before_a_run_can_start(tmp_path, inside):
    """A refused run leaves one line."""
    done = inside("train", "drq", "--device", "tpu", "--run-dir", str(tmp_path / "r"), code=2)
    assert done.out == "" and len(done.err.splitlines()) == 1 and "device is 'tpu'" in done.err
    assert not (tmp_path / "r").exists()


def test_a_short_spelling_is_the_same_run(tmp_path, inside, monkeypatch):
    """And its folder has the task's whole name."""
    monkeypatch.chdir(tmp_path)
    done = inside("train", "sac", "--task", "reach", *SMALL, "--json")
    assert json.loads(done.out.splitlines()[-1])["run_dir"] == "runs/sac-so101-Reach-v0-0"


@pytest.mark.parametrize("folder", ["/proc/x", "/dev/null"])
def test_a_folder_that_cannot_be_written_is_named(folder, inside):
    """In one line."""
    assert "cannot be written" in inside("train", "sac", *SMALL, "--run-dir", folder, code=2).err


def test_serls_spellings(tmp_path, inside):
    """'--env', '--checkpoint_path' and the roles, as scripts have them."""
    run = str(tmp_path / "run")
    inside("train", "sac", *SMALL, "--env", "so101/Reach-v0", "--checkpoint_path", run)
    for words in (["--checkpoint_path=" + run], ["--checkpoint-path", run], [run]):
        done = inside("eval", *words, "--num_envs=2", "--episodes", "2", "--no-video", "--json")
        assert json.loads(done.out.splitlines()[-1])["episodes"] == 2
    from maniple.cli.train.run import prepare

    assert prepare("train drq", ["--actor", "--ip=localhost"]) == [
        "--role",
        "actor",
        "--ip=localhost",
    ]
    assert prepare("train drq", ["--learner"]) == ["--role", "learner"]


def test_drq_on_the_mobile_piper(tmp_path, inside):
    """Its own settings: small pictures of two cameras, demonstrations, a critic that sees more."""
    words = "--num_envs 2 --max_steps 40 --random_steps 20 --training_starts 20 --batch_size 8"
    words += " --demos 1 --eval_n_trajs 0 --torch-threads 1 --json"
    run = tmp_path / "run"
    done = inside("train", "drq", "--task", "PiperMobileRobot-v0", *words.split(), "--run-dir", run)
    assert json.loads(done.out.splitlines()[-1])["steps"] == 40
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert config["env"]["cameras"] == ["3rd", "wrist"] and config["env"]["image_size"] == [64, 64]
    done = inside("eval", run, "--num-envs", "2", "--episodes", "2", "--no-video", "--json")
    assert json.loads(done.out.splitlines()[-1])["episodes"] == 2


def test_sac_on_the_mobile_piper_sees_its_state(tmp_path, inside):
    inside("train", "sac", "--task", "PiperMobileRobot-v0", *SMALL, "--run-dir", tmp_path / "run")
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    assert config["env"]["cameras"] == [] and config["env"]["observations"] == ["all"]
