"""Every command of docs/how-to/migrate.md does what it says, with small numbers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/how-to/migrate.md"
PHASE = (
    "--num-episodes 2 --steps-per-episode 8 --updates-per-episode 1 --batch-size 2 "
    "--sequence-length 3 --held-out 1 --image-size 32 32 --task so101/Reach-v0"
)
SMALL = {
    "train teacher": PHASE,
    "train student": PHASE,
    "train adversarial": f"{PHASE} --total-iterations 1",
    "bench": "--steps 4 --num-envs 2",
    "bench trace": "--steps 4 --num-envs 2 --action-chunk 2 --image-size 32 32",
    "bench sweep": "--num-envs 2 --workers 1 --action-chunk 1 --turns 1 --steps 4 --seconds 0.1",
    "train drq": "--max-steps 16 --random-steps 8 --training-starts 8 --batch-size 8 --demos 1 "
    "--eval-n-trajs 0 --num-envs 2",
    "eval": "--episodes 2 --num-envs 2 --no-video",
}


def rows():
    """Cells of every table: before, now, what differs."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "before"]


def commands():
    """The new commands of maniple, without those that are marked."""
    found = []
    for _, now, *_ in rows():
        if "not run" not in now:
            found += re.findall(r"`((?:torchrun [^`]*-m )?maniple [^`]+)`", now)
    return found


def verb_of(words):
    return next(v for v in (" ".join(words[:2]), words[0]) if v in SMALL or v == words[0])


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("maniple")])
def test_a_command_of_the_page(command, tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = command.split()[1:]
    if words[0] == "eval":
        train = SMALL["train drq"].replace("--demos 1 ", "")
        inside("train", "sac", *train.split(), "--run-dir", "DIR")
    if words[1:2] in (["student"], ["adversarial"]):
        inside("train", "teacher", "1", "1", *PHASE.split())
        words = [word.replace("checkpoint-500", "checkpoint-2") for word in words]
    small = SMALL.get(verb_of(words), "").split()
    if "sweep" in words and "--peers" not in words:
        small += ["--peers", "none"]  # To start all of them takes longest.
    inside(*words, *small)
    if "--record" in words:
        assert list(tmp_path.rglob("*.mp4"))
    if "sweep" in words:
        assert list(tmp_path.rglob("throughput.png"))


@pytest.mark.alone
@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("torchrun")])
def test_a_command_under_torchrun(command, tmp_path):
    words = command.replace("--nproc_per_node=4", "--nproc_per_node=2").split()
    words = [*words, *SMALL["bench"].split()]
    run = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "env-steps/s" in done.stdout


def test_the_page_is_complete():
    """A row says what is typed now, and what is not run says why."""
    assert len(rows()) > 20 and len(commands()) >= 12
    for row in rows():
        assert len(row) == 3 and row[0] and row[1], row
        for reason in re.findall(r"\(not run([^)]*)\)", row[1]):
            assert reason.startswith(": ") and len(reason) > 4, row
