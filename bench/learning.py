"""Train tasks with their presets, several seeds each, and write the table: it goes on where it was.

Every seed is 'maniple train ALGORITHM --task TASK --seed SEED' with no other setting, stopped as
soon as an evaluation of 50 episodes reaches 98 %; what counts is 'maniple eval' of its best
checkpoint on 100 episodes that chose nothing. A run that failed stays in the table.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

TASKS = (
    "ReachTarget", "PushButton", "PickAndLift", "SlideBlockToTarget", "OpenDrawer", "CloseDrawer",
    "CloseBox", "TakeLidOffSaucepan", "PressSwitch", "LampOn", "so101/PushCube-v0",
    "so101/StackCubes-v0",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", default="sac")
    parser.add_argument("--tasks", nargs="*", default=TASKS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[41, 905, 1733])
    parser.add_argument("--out", type=Path, default=Path("bench/learning.jsonl"))
    parser.add_argument("--runs", type=Path, default=Path("runs/learning"))
    parser.add_argument("--most-steps", type=int, default=None)
    options = parser.parse_args()
    known = read(options.out)
    for task in options.tasks:
        for seed in options.seeds:
            if (options.algorithm, task, seed) not in known:
                row = measure(options, task, seed)
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)
    print(table(read(options.out)))


def measure(options: argparse.Namespace, task: str, seed: int) -> dict:
    """Train one seed from nothing and judge it."""
    folder = options.runs / f"{options.algorithm}-{task.replace('/', '-')}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    words = ["train", options.algorithm, "--task", task, "--seed", str(seed)]
    words += ["--run-dir", str(folder), "--stop-at-success", "0.98"]
    words += ["--max-steps", str(options.most_steps)] if options.most_steps else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    trained = maniple(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    judged = maniple("eval", "--checkpoint", str(folder), "--episodes", "100", "--no-video")
    shutil.rmtree(folder / "replay", ignore_errors=True)
    return {
        "algorithm": options.algorithm,
        "task": task,
        "seed": seed,
        "success": judged["success_rate"],
        "ci95": [round(bound, 3) for bound in judged["success_ci95"]],
        "steps": trained["steps"],
        "updates": trained["updates"],
        "cpu_s": round(cpu_s),
    }


def maniple(*words: str) -> dict:
    """Run a command and return its answer."""
    command = [sys.executable, "-m", "maniple", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def read(path: Path) -> dict[tuple[str, str, int], dict]:
    """Rows that are there already."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["algorithm"], row["task"], row["seed"]): row for row in rows}


def table(rows: dict[tuple[str, str, int], dict]) -> str:
    """Markdown, a line per task: every seed, the median, and what it cost."""
    lines = [
        "| task | success of each seed (95 % interval) | median | CPU s |",
        "|---|---|---|---|",
    ]
    for algorithm, task in dict.fromkeys(key[:2] for key in rows):
        mine = [row for key, row in rows.items() if key[:2] == (algorithm, task)]
        each = ", ".join(
            f"{row['success']:.0%} ({row['ci95'][0]:.0%} to {row['ci95'][1]:.0%})" for row in mine
        )
        cost = f"{min(r['cpu_s'] for r in mine)} to {max(r['cpu_s'] for r in mine)}"
        middle = median(row["success"] for row in mine)
        lines.append(f"| {algorithm} {task} | {each} | {middle:.0%} | {cost} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
