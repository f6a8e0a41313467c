"""Attack training: kill it at any moment, and go on."""

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 1500


def train(folder: Path, *more: str) -> list[str]:
    """The command of a small run."""
    settings = "--task so101/Reach-v0 --num-envs 4 --eval-n-trajs 2 --eval-period 500"
    settings += f" --max-steps {STEPS} --checkpoint-period 250 --seed 3 --log-period 250"
    words = [] if more else settings.split()
    return [
        sys.executable,
        "-m",
        "maniple",
        "train",
        "sac",
        "--run-dir",
        str(folder),
        *words,
        *more,
    ]


def kills(draw: random.Random, until: float) -> dict:
    """Kill runs at random moments until they end; no line of the metrics may be torn or missing."""
    tries = killed = 0
    while time.monotonic() < until:
        tries += 1
        with tempfile.TemporaryDirectory() as name:
            folder, words = Path(name) / "run", train(Path(name) / "run")
            for _ in range(draw.randrange(1, 4)):
                child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                try:
                    child.communicate(timeout=draw.uniform(2.0, 14.0))
                except subprocess.TimeoutExpired:
                    child.send_signal(draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
                    child.communicate(timeout=60)
                    killed += 1
                if (folder / "config.yaml").exists():
                    words = train(folder, "--resume")
            done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
            if "no checkpoint" in done.stderr.lower() or "nothing to resume" in done.stderr.lower():
                continue
            assert "Traceback" not in done.stderr, done.stderr[-2000:]
            assert done.returncode == 0, (words, done.stderr[-2000:])
            lines = [
                json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()
            ]
            steps = [line["step"] for line in lines]
            assert steps == sorted(steps) and steps[-1] >= STEPS, steps
    return {"tries": tries, "faults": killed}
