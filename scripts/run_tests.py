"""Run the quick tests: first those that can share the machine, two at a time, then the others.

Tests marked 'alone' are about time, processes, cores, signals, displays, leaks or ports.
Arguments are passed on to pytest in both parts.
"""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from time import monotonic

PARALLEL = ["-m", "not slow and not alone", "-n", "2", "--dist", "worksteal"]
ALONE = ["-m", "not slow and alone"]
# Two processes that each use a thread per core would slow each other down.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}

COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")
NO_TESTS = 5


def main(more: list[str]) -> int:
    """Run both parts, even if the first one fails; return 0 if both are good."""
    # A shell starts 'make test &' with SIGINT ignored, and tests of Ctrl-C would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    start = monotonic()
    counts: Counter[str] = Counter()
    codes = [run(PARALLEL + more, ONE_THREAD, counts), run(ALONE + more, {}, counts)]
    found = ", ".join(f"{number} {what}" for what, number in counts.items()) or "no tests"
    print(f"both parts: {found} in {monotonic() - start:.0f}s")
    if codes == [NO_TESTS, NO_TESTS]:
        return NO_TESTS
    # One part may be empty where a few tests were chosen.
    return next((code for code in codes if code not in (0, NO_TESTS)), 0)


def run(words: list[str], variables: dict[str, str], counts: Counter[str]) -> int:
    """Run pytest, show what it prints, and add up the counts of its closing line."""
    words = [sys.executable, "-m", "pytest", *words]
    if sys.stdout.isatty():
        words.append("--color=yes")
    print("pytest", *words[3:], flush=True)
    environment = os.environ | variables
    closing, line = "", b""
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        # As it comes, not line by line: the dots show that it is alive.
        while data := process.stdout.read1(65536):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            *lines, line = (line + data).split(b"\n")
            for whole in lines:
                text = whole.decode(errors="replace")
                closing = text if COUNT.search(text) and " in " in text else closing
    for number, what in COUNT.findall(closing):
        counts[what.rstrip("s") if what == "errors" else what] += int(number)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
