"""Attack the product for a while and print what came of it.

python tests/attack --minutes 60 --seed 7 [--only faults,files]
"""

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
SHARES = {
    "faults": 3,
    "interrupts": 2,
    "threads": 1,
    "kills": 3,
    "policy_port": 1,
    "page_port": 1,
    "files": 3,
    "cli": 6,
}
"""Which part of the time each attack gets."""


def main() -> int:
    """Run the attacks one after the other; return how many found something."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--only", default=",".join(SHARES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        attack(options.one, options.seed, options.seconds)
        return 0
    chosen = {name: SHARES[name] for name in options.only.split(",")}
    rows = []
    for name, share in chosen.items():
        seconds = 60 * options.minutes * share / sum(chosen.values())
        begin = time.monotonic()
        found = (outside if name in ("files", "cli") else inside)(name, options.seed, seconds)
        rows.append({"attack": name, "seconds": round(time.monotonic() - begin), **found})
        print(json.dumps(rows[-1]), flush=True)
    print(f"\nseed {options.seed}\n\n| attack | tries | faults put in | s | outcome |")
    print("|---|---|---|---|---|")
    for row in rows:
        outcome = row["wrong"].strip().splitlines()[-1] if row["wrong"] else "nothing wrong"
        counts = f"{row['tries']:,} | {row['faults']:,} | {row['seconds']}"
        print(f"| {row['attack']} | {counts} | {outcome} |")
    return sum(bool(row["wrong"]) for row in rows)


def inside(name: str, seed: int, seconds: float) -> dict:
    """Run one of our own attacks in a process, which may hang or crash."""
    words = [
        sys.executable,
        str(HERE),
        "--one",
        name,
        "--seed",
        str(seed),
        "--seconds",
        str(seconds),
    ]
    nothing = {"tries": 0, "faults": 0}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=seconds + 300, check=False
        )
    except subprocess.TimeoutExpired:
        return {**nothing, "wrong": "it hung"}
    if done.returncode:
        return {**nothing, "wrong": done.stderr[-3000:] or f"exit code {done.returncode}"}
    return {**json.loads(done.stdout.splitlines()[-1]), "wrong": ""}


def attack(name: str, seed: int, seconds: float) -> None:
    """Run an attack in this process and print what it counted."""
    import engines
    import network
    import runs

    work = next(getattr(m, name) for m in (engines, network, runs) if hasattr(m, name))
    print(json.dumps(work(random.Random(f"{seed} {name}"), time.monotonic() + seconds)))


def outside(name: str, seed: int, seconds: float) -> dict:
    """Run the fuzzers of files and of command lines, a batch at a time."""
    until, tries, wrong, draw = time.monotonic() + seconds, 0, "", random.Random(seed)
    kinds = ["settings", "metrics", "checkpoint", "pickles", "dataset"]
    while time.monotonic() < until and not wrong:
        batch = str(draw.randrange(10**6))
        if name == "cli":
            count, words = 50, [HERE.parent / "e2e/fuzz_cli.py", "50", batch]
        else:
            count, kind = 1000, kinds[tries // 1000 % len(kinds)]
            count = 100 if kind == "dataset" else count
            words = [HERE.parent / "files/fuzz_files.py", kind, str(count), batch]
        done = subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, timeout=3600, check=False
        )
        tries += count
        if done.returncode:
            wrong = done.stdout[-3000:] + done.stderr[-3000:]
    return {"tries": tries, "faults": tries, "wrong": wrong}


if __name__ == "__main__":
    sys.exit(main())
