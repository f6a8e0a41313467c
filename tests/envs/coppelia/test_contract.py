"""The stand-in has RLBench's signatures, and the adapter uses nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlbench_fixtures import DISPLAY, STANDIN, make_root, version  # noqa: F401

from maniple.envs.coppelia import variables
from maniple.envs.rlbench.config import ARM_MODES

CONTRACTS = {"v120": "rlbench_1_2_0.json", "peract": "rlbench_peract.json"}
SOURCE = Path(__file__).parents[3] / "src"


def run(version, tmp_path, script, *words):
    root = make_root(tmp_path / "CoppeliaSim")
    env = {**os.environ, **variables(root, True, os.environ), "TMPDIR": str(tmp_path)} | DISPLAY
    paths = [STANDIN / version, STANDIN / "shared", SOURCE]
    env["PYTHONPATH"] = ":".join(map(str, paths))
    words = [sys.executable, str(STANDIN / script), *map(str, words)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def test_the_stand_in_has_the_real_signatures(version, tmp_path):
    done = run(version, tmp_path, "walk.py", STANDIN / "contracts" / CONTRACTS[version])
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("mode", ARM_MODES)
def test_the_adapter_uses_only_what_the_contract_names(version, mode, tmp_path):
    done = run(version, tmp_path, "touched.py", mode)
    touched = json.loads(done.stderr.strip().splitlines()[-1])
    contract = json.loads((STANDIN / "contracts" / CONTRACTS[version]).read_text())
    allowed = {"pyrep.backend.sim.simSetBoolParameter"}
    allowed.add("pyrep.backend.sim.sim_boolparam_realtime_simulation")
    for module, parts in contract.items():
        allowed |= {f"{module}.{name}" for name in (*parts["classes"], *parts["functions"])}
    for kind in ("Environment", "TaskEnvironment"):
        module = "rlbench.environment" if kind == "Environment" else "rlbench.task_environment"
        methods = contract[module]["classes"][kind]["methods"]
        allowed |= {f"{kind}.{name}" for name in methods}
        allowed |= {f"{kind}({name})" for name, _ in methods.get("__init__", ())}
    assert not set(touched) - allowed
    assert {"TaskEnvironment.step", "TaskEnvironment.reset", "Environment.launch"} <= set(touched)
