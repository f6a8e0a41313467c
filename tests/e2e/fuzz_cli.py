"""Type mistakes: mutated command lines must end in time and in words, never in a traceback.

python tests/e2e/fuzz_cli.py [LINES] [SEED] prints what went wrong and a count.
"""

import contextlib
import io
import os
import random
import signal
import sys
import tempfile
import traceback
from pathlib import Path

LINES = [
    "list", "list --robots", "list --json", "doctor --json", "new task Wave",
    "robots export so101 arm.xml", "bench --num-envs 2 --steps 5", "bench limit --steps 5",
    "bench --task OpenDrawer --num_envs 2 --steps 4 --arm_mode ik --action_chunk 2 --copy_obs 0",
    "bench --num-envs 2 --steps 4 --image-size 16 16 --record films",
    "bench trace --task OpenDrawer --num-envs 2 --steps 4 --workers 2",
    "bench sweep --num-envs 2 --workers 1 --turns 1 --steps 4 --seconds 0.05 --peers gymnasium",
    "train sac --max-steps 300 --num-envs 4 --eval-n-trajs 2 --run-dir run --seed 5",
    "train sac --resume --run-dir run", "train sac --task push_button --max-steps 100 --demos 2",
    "train drq --max-steps 60 --num-envs 2 --demos 1 --eval-n-trajs 1 --batch-size 8",
    "train bc --max-updates 5 --demos 2 --eval-n-trajs 1", "train teacher 1 2 --num-episodes 1",
    "train student 1 1 --teacher_path nowhere", "train adv 1 1 --teacher_checkpoint nowhere",
    "world report run", "eval --checkpoint run --episodes 2 --no-video",
    "eval --policy expert so101/Reach-v0 --perturb light=0.4,camera --episodes 2",
    "report run --out page.html", "plot run --out curves.png",
    "demos record --task so101/Reach-v0 --episodes 1 --out demos", "demos info demos",
    "data check demos", "data repair demos", "data export demos --out other",
    "record so101/Reach-v0 --episodes 1 --out seen --format both", "replay seen --grid",
    "splat info cloud.ply", "splat render so101/LiftCube-v0 --out s.png",
    "splat align room.ply --points p.json", "view so101/Reach-v0 --port 70000",
    "view nowhere", "--print-completion bash", "--version", "train", "train --help",
]  # fmt: skip
RUBBISH = [
    "", "-1", "0", "1e999", "nan", "inf", "9" * 21, "../..", "/dev/zero", "/dev/full",
    "/etc/passwd", "[bold]", "ünïcode", "a b", "\x1b[31m", "--", "-", "=", "--=", "None", "True",
    "{}", "[]", "so101/", "panda/NoSuch-v0", "os:system", "json:x", "none,,", "1,2,x", "%s", "'",
    "--help", "--json", "--debug=1", "--resume", "--seed", "--task", "x" * 5000,
]  # fmt: skip
SECONDS = 60
LONG = ("view", "train", "bench")
"""Commands that rightly go on for long where a line lost its limit."""


def mutated(line: str, draw: random.Random) -> list[str]:
    """Change one to three things about a line."""
    words = line.split()
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(words) + 1)
        kind = draw.randrange(6)
        if kind == 0 and words:
            words.pop(min(at, len(words) - 1))
        elif kind == 1:
            words.insert(at, draw.choice(RUBBISH))
        elif kind == 2 and words:
            words[min(at, len(words) - 1)] = draw.choice(RUBBISH)
        elif kind == 3 and words:
            words.append(draw.choice(words))
        elif kind == 4 and words:
            k = min(at, len(words) - 1)
            word = list(words[k]) or ["x"]
            word[draw.randrange(len(word))] = draw.choice("abcxyz-_=./0")
            words[k] = "".join(word)
        elif words:
            draw.shuffle(words)
    return words


def attempt(words: list[str], folder: Path) -> str:
    """Run one line in a process of its own; return what is wrong with how it ended."""
    told = folder / "told.txt"
    child = os.fork()
    if child == 0:
        code = 99
        os.setsid()
        os.chdir(folder)
        with told.open("w") as file, contextlib.suppress(BaseException):
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            sys.stdin = io.StringIO("")
            sys.stdout = sys.stderr = file
            try:
                from maniple.cli.main import main

                code = main(words)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except BaseException:
                traceback.print_exc()
                code = 98
            file.flush()
        os._exit(code or 0)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(SECONDS)
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    text = told.read_text(errors="replace")
    if os.WIFSIGNALED(status) and words[0] in LONG:
        return ""
    if os.WIFSIGNALED(status):
        return f"ended by signal {os.WTERMSIG(status)} (over {SECONDS} s, if that is 9)"
    if "Traceback (most recent call last)" in text and "--debug" not in " ".join(words):
        return text[-1500:]
    return ""


def main(count: int = 200, seed: int = 0) -> int:
    """Try so many lines; return how many went wrong."""
    draw, wrong = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        # What commands work on.
        for line in ("train sac --max-steps 200 --num-envs 4 --eval-n-trajs 1 --run-dir run",
                     "demos record --task so101/Reach-v0 --episodes 1 --out demos"):  # fmt: skip
            attempt(line.split(), Path(folder))
        for _ in range(count):
            words = mutated(draw.choice(LINES), draw)
            if trouble := attempt(words, Path(folder)):
                wrong += 1
                print(f"{words}\n{trouble}\n", flush=True)
    print(f"{count} lines, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
