"""Judge checkpoints of one training under two renderers: does a policy care who draws?

python bench/renderers.py --task so101/Reach-v0 --runs runs/renderers --episodes 100

A run saves often and every checkpoint is kept. Each is judged on the same episodes under both
renderers. Told are Pearson's r with its 95 % interval, and the largest success that is given away
by choosing the best checkpoint under the other renderer. It goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def main() -> None:
    """Train, keep, judge, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", default="so101/Reach-v0")
    parser.add_argument("--runs", type=Path, default=Path("runs/renderers"))
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--renderers", nargs=2, default=("fast", "splat"))
    options = parser.parse_args()
    kept = options.runs / "kept"
    if not kept.exists():
        train(options, kept)
    table = options.runs / "judged.jsonl"
    known = [json.loads(line) for line in table.read_text().splitlines()] if table.exists() else []
    for folder in sorted(kept.iterdir()):
        if folder.name not in [row["checkpoint"] for row in known]:
            row = {"checkpoint": folder.name}
            row |= {name: judge(folder, name, options.episodes) for name in options.renderers}
            known.append(row)
            with table.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)
    tell(known, *options.renderers)


def train(options: argparse.Namespace, kept: Path) -> None:
    """Train once, drawn by the first renderer, and copy every checkpoint before it is removed."""
    run, copies = options.runs / "run", options.runs / "copies"
    words = ["train", "drq", "--task", options.task, "--seed", str(options.seed)]
    words += ["--max-steps", str(options.steps), "--checkpoint-period", str(options.every)]
    words += ["--eval-period", "0", "--run-dir", str(run), "--env.renderer", options.renderers[0]]
    child = subprocess.Popen([sys.executable, "-m", "maniple", *words], stdout=subprocess.DEVNULL)
    while True:
        is_over = child.poll() is not None
        for manifest in run.glob("checkpoints/step-*/manifest.json"):
            target = copies / manifest.parent.name
            if not target.exists():
                copy = target / "checkpoints" / manifest.parent.name
                shutil.copytree(manifest.parent, copy)
                # Acting needs no replay, which stays with the run.
                files = json.loads((copy / "manifest.json").read_text())
                own = {name: about for name, about in files.items() if not name.startswith("..")}
                (copy / "manifest.json").write_text(json.dumps(own))
                for name in ("config.yaml", "versions.yaml"):
                    shutil.copy(run / name, target / name)
        if is_over:
            break
        time.sleep(0.5)
    if child.returncode:
        raise SystemExit(f"the training ended with {child.returncode}")
    copies.rename(kept)


def judge(folder: Path, renderer: str, episodes: int) -> float:
    """Return the success of a checkpoint under a renderer."""
    words = ["eval", "--checkpoint", str(folder), "--episodes", str(episodes), "--no-video"]
    words += ["--latest", "--renderer", renderer, "--seed", "5", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "maniple", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["success_rate"]


def tell(rows: list[dict], one: str, other: str) -> None:
    """Print the table, the correlation and what a choice under the other renderer costs."""
    a = np.array([row[one] for row in rows])
    b = np.array([row[other] for row in rows])
    r = float(np.corrcoef(a, b)[0, 1])
    spread = 1.96 / np.sqrt(max(1, len(rows) - 3))
    low, high = np.tanh(np.arctanh(r) - spread), np.tanh(np.arctanh(r) + spread)
    print(f"| checkpoint | {one} | {other} |\n|---|---|---|")
    for row in rows:
        print(f"| {row['checkpoint']} | {row[one]:.0%} | {row[other]:.0%} |")
    between = int(((a > 0.2) & (a < 0.8)).sum())
    print(f"{len(rows)} checkpoints, {between} between 20 and 80 % under {one}")
    print(f"Pearson r {r:.3f} (95 %: {low:.3f} to {high:.3f})")
    worse = max(0.0, *(a[i] - a[j] for i in range(len(a)) for j in range(len(a)) if b[i] < b[j]))
    print(f"ranking violation: at most {worse:.0%} lost where {other} ranks two the other way")
    at_best = b[a.argmax()] - a.max()
    print(f"{other} minus {one}: mean {np.mean(b - a):+.1%}, at its best {at_best:+.1%}")


if __name__ == "__main__":
    main()
