"""Which tasks the laws are checked on in this run: a sample that goes through all of them.

Ten runs in a row see every task. MANIPLE_LAWS_SAMPLE chooses: '3/10' is the third sample, names as
in 'OpenDrawer,so101/Reach-v0' are these tasks, 'all' is every one.
"""

import os
import subprocess
from pathlib import Path

from maniple.registry import TASKS, canonical

VARIABLE = "MANIPLE_LAWS_SAMPLE"
SAMPLES = 10
OTHERS = 2
"""Tasks of other robots than the Panda in every sample."""
_CACHED = "maniple/laws_sample"


def sample(k):
    """The k-th sample: every tenth task of the Panda, and two of the others."""
    panda = sorted(task for task in TASKS if task.startswith("panda/"))
    others = sorted(task for task in TASKS if not task.startswith("panda/"))
    pairs = [others[(OTHERS * k + i) % len(others)] for i in range(OTHERS)]
    return [*pairs, *panda[k % SAMPLES :: SAMPLES]]


def chosen():
    """The tasks of this run."""
    asked = os.environ.get(VARIABLE, f"1/{SAMPLES}")
    if asked == "all":
        return sorted(TASKS)
    number = asked.removesuffix(f"/{SAMPLES}")
    if number.isdigit():
        return sample((int(number) - 1) % SAMPLES)
    names = [canonical(name.strip()) for name in asked.split(",")]
    unknown = [name for name in names if name not in TASKS]
    assert not unknown, f"{VARIABLE} names {unknown}; give '3/{SAMPLES}', 'all', or tasks"
    return names


def start(config):
    """Choose a sample unless the user did: the one after the last run's, or the commit's own."""
    config.laws_sample_rotates = VARIABLE not in os.environ
    if config.laws_sample_rotates:
        cache = getattr(config, "cache", None)
        last = cache.get(_CACHED, None) if cache else None
        k = _commits() if last is None else last + 1
        # Workers of pytest-xdist read it there.
        os.environ[VARIABLE] = f"{k % SAMPLES + 1}/{SAMPLES}"


def finish(reporter):
    """Print the sample if laws were checked, and let the next run take the next one."""
    reports = (report for kind in ("passed", "failed") for report in reporter.stats.get(kind, ()))
    if not any("laws/test_laws" in report.nodeid for report in reports):
        return
    asked = os.environ[VARIABLE]
    reporter.write_line(f"Laws were checked on sample {asked}: {', '.join(chosen())}")
    reporter.write_line(f"Choose another with {VARIABLE}=3/{SAMPLES}, names of tasks, or all.")
    cache = getattr(reporter.config, "cache", None)
    if reporter.config.laws_sample_rotates and cache:
        cache.set(_CACHED, int(asked.split("/")[0]) - 1)


def _commits():
    """Commits so far: a fresh clone has no memory of its last run."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-list", "--count", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 0
