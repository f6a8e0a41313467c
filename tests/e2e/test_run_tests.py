"""What 'make test' runs: both parts, and a failure in either of them counts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/run_tests.py"

TESTS = """
import os, pytest
def test_beside_others():
    assert os.environ["OMP_NUM_THREADS"] == "1" and "PYTEST_XDIST_WORKER" in os.environ
    assert {parallel}
@pytest.mark.alone
def test_alone():
    assert "PYTEST_XDIST_WORKER" not in os.environ
    assert {alone}
@pytest.mark.slow
def test_slow():
    assert False
"""


@pytest.mark.parametrize(
    ("parallel", "alone", "total"),
    [(False, True, "1 failed, 1 passed"), (True, False, "1 passed, 1 failed")],
)
def test_both_parts_count(tmp_path, parallel, alone, total, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q\nmarkers =\n    alone\n    slow\n")
    (tmp_path / "test_two.py").write_text(TESTS.format(parallel=parallel, alone=alone))
    done = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    closing = [line for line in done.stdout.splitlines() if re.search(r"\d+ (passed|failed)", line)]
    assert len(closing) == 3, done.stdout
    assert closing[-1].startswith(f"both parts: {total} in ")
