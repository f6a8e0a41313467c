"""Two ranks are one learner: equal parameters, the loss of one rank with twice the batch."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from conftest import SMALL_PHASE as SMALL
from safetensors.numpy import load_file

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
QUIET = {**os.environ, "OMP_NUM_THREADS": "1"}
LOSSES = """
import json, sys, numpy as np, torch
sys.path.insert(0, {here!r})
from test_models import SHAPES, batch
from maniple.run.ranks import Ranks, end_rank
from maniple.world.config import TeacherConfig
from maniple.world.models import MODELS, make_model
from maniple.world.shapes import Batch
from maniple.world.updater import Updater

torch.set_num_threads(1)
ranks, name = Ranks(), {model!r}
model = make_model(SHAPES, TeacherConfig(model=name), 0)
updater = Updater(model, MODELS[name].weights, 1e-3, ranks, 20)
losses = []
for step in range(20):
    whole = batch(rows=16, seed=step)
    mine = Batch(*(part.chunk(ranks.world_size)[ranks.rank] for part in whole))
    loss = updater.step([mine])["loss"]
    losses.append(float(ranks.total(np.array([loss]))[0]) / ranks.world_size)
ranks.check_equal("parameters after 20 updates", updater.weights())
if ranks.is_main:
    print(json.dumps(losses))
ranks.close()
end_rank(0)
"""


def losses(tmp_path, ranks, model):
    script = tmp_path / "losses.py"
    script.write_text(LOSSES.format(here=str(Path(__file__).parent), model=model))
    words = [*TORCHRUN, str(ranks), str(script)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=QUIET)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("model", ["nano", pytest.param("latent", marks=pytest.mark.slow)])
def test_two_ranks_are_one_with_twice_the_batch(tmp_path, model):
    """Also the batch statistics of 'latent': they are those of all ranks together."""
    one, two = (losses(tmp_path, ranks, model) for ranks in (1, 2))
    assert len(one) == 20
    assert np.allclose(one, two, rtol=2e-4), "equal within float noise"


def maniple(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "maniple", *map(str, words)], env=QUIET, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def test_a_number_starts_the_ranks(tmp_path):
    """'2' on a machine without GPUs is two processes; each has its own seeds."""
    folder = tmp_path / "run"
    process = maniple("train", "teacher", "2", "2", *SMALL, "--num-episodes", "3", "--output-dir",
                      folder, "--json")  # fmt: skip
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert json.loads(out.strip().splitlines()[-1])["world_size"] == 2
    newest = folder / "checkpoint-3"
    parts = [
        load_file(newest / name) for name in ("weights.safetensors", "weights.rank1.safetensors")
    ]
    for name in parts[0]:
        if ".updater." in name:
            assert np.array_equal(parts[0][name], parts[1][name]), name
    seen = [next((folder / "replay" / sub).glob("*.safetensors")) for sub in (".", "rank1")]
    a, b = (load_file(path)["action"] for path in seen)
    assert not np.array_equal(a[: len(b)], b[: len(a)]), "ranks play different episodes"


@pytest.mark.slow
def test_a_wrong_number_of_ranks_is_refused(tmp_path):
    words = [*TORCHRUN, "2", "-m", "maniple", "train", "teacher", "3", "1", *SMALL]
    done = subprocess.run([*words, "--output-dir", str(tmp_path / "run")], capture_output=True,
                          text=True, timeout=120, env=QUIET)  # fmt: skip
    assert done.returncode != 0
    assert "3 ranks were asked for, and 2 run" in done.stderr


@pytest.mark.slow
def test_a_killed_rank_stops_the_run_and_it_resumes(tmp_path):
    folder = tmp_path / "run"
    words = ["train", "teacher", "2", "1", *SMALL, "--save-every", "1", "--output-dir", folder]
    process = maniple(*words, "--num-episodes", "10000")
    until = time.monotonic() + 120
    while not list(folder.glob("checkpoint-*")):
        assert time.monotonic() < until and process.poll() is None, process.stderr.read()
        time.sleep(0.2)
    family = psutil.Process(process.pid).children(recursive=True)
    # A rank is the process that torchrun gave a number; its zygote has the same variables.
    ranks = [p for p in family if p.environ().get("RANK") == "1"]
    os.kill(min(ranks, key=lambda p: p.create_time()).pid, signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "go on with the same command and --resume" in err
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    steps = max(int(p.name.rpartition("-")[2]) for p in folder.glob("checkpoint-*"))
    again = maniple(*words, "--resume", "--num-episodes", steps + 1, "--json")
    out, err = again.communicate(timeout=180)
    assert again.returncode == 0, err
    assert json.loads(out.strip().splitlines()[-1])["episodes"] >= steps + 1


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    folder = tmp_path / "run"
    words = ["train", "teacher", "2", "1", *SMALL, "--save-every", "1", "--output-dir", folder]
    process = maniple(*words, "--num-episodes", "10000")
    until = time.monotonic() + 120
    while not list(folder.glob("checkpoint-*")):
        assert time.monotonic() < until and process.poll() is None, process.stderr.read()
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"stopped; go on with: maniple train teacher --resume --output-dir {folder}" in err
