"""Try the real simulator in a process of its own, and report how far it got."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from maniple.core.child import python_code
from maniple.envs.coppelia import variables

TIMEOUT_S = 120.0


def probe(root: Path, with_camera: bool, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Launch, reset and step once.

    Returns:
        'stage', the last thing that worked ('stepped' is all of it), and 'error', empty if it did.
    """
    words = python_code(_SCRIPT, str(int(with_camera)))
    env = {**os.environ, **variables(root, with_camera, os.environ)}
    try:
        done = subprocess.run(
            words, env=env, capture_output=True, text=True, timeout=timeout_s, errors="replace"
        )
    except subprocess.TimeoutExpired as late:
        return {"stage": _stage(_text(late.stdout)), "error": f"no answer in {timeout_s:g} s"}
    stage = _stage(done.stdout)
    if done.returncode == 0 and stage == "stepped":
        return {"stage": stage, "error": ""}
    if done.returncode < 0:
        return {"stage": stage, "error": f"it was ended by signal {-done.returncode}"}
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return {"stage": stage, "error": lines[-1].strip() if lines else f"code {done.returncode}"}


# What is printed goes through a copy of the output: the simulator's own noise goes elsewhere.
_SCRIPT = """
import os, sys
out = os.fdopen(os.dup(1), "w", buffering=1)
say = lambda stage: print("maniple-probe", stage, file=out)
say("started")
from maniple.envs.rlbench.config import RLBenchConfig
from maniple.envs.rlbench.simulator import Simulator
import numpy as np
cameras = ("front",) if sys.argv[1] == "1" else ()
simulator = Simulator(RLBenchConfig("reach_target", cameras=cameras, image_size=(64, 64)))
say("launched")
simulator.reset(0, 0)
say("reset")
observation = simulator.observe(bool(cameras))
if cameras and observation.front_rgb is None:
    raise RuntimeError("the front camera gave no picture")
simulator.step(np.array([*observation.gripper_pose, 1.0]))
say("stepped")
simulator.close()
out.flush()
os._exit(0)
"""


def _stage(text: str) -> str:
    said = [line.split()[1] for line in text.splitlines() if line.startswith("maniple-probe ")]
    return said[-1] if said else "nothing"


def _text(output: Any) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else str(output or "")
