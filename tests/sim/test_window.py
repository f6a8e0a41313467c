"""MuJoCo's window on a virtual display: what the mouse pulls at there moves in the simulation."""

import json
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which("Xvfb") is None, reason="needs Xvfb"),
]

PULL_UP = """
import mujoco, numpy as np
import maniple
from maniple.sim.xvfb import Xvfb
import os

with Xvfb() as screen:
    os.environ["DISPLAY"] = screen.display
    env = maniple.make({task!r})
    env.reset(seed=0)
    try:
        env.render_to_window()
    except Exception as error:
        print("no window:", repr(error), flush=True)
        os._exit(0)
    window = env.get_wrapper_attr("_group").row(0)._window
    body = window._model.body({body!r}).id
    hand = window._viewer.perturb
    rest = np.zeros(env.action_space.shape, np.float32)
    heights = []
    for is_pulled in (False, True, False):
        for _ in range({steps}):
            with window._viewer.lock():
                hand.select, hand.localmass, hand.scale = body, 0.06, 1.0
                hand.active = int(mujoco.mjtPertBit.mjPERT_TRANSLATE) if is_pulled else 0
                up = env.sim_state["xpos"][body] + [0, 0, 0.1]
                hand.refpos[:] = hand.refselpos[:] = up
            env.render_to_window()
            env.step(rest)
        heights.append(float(env.sim_state["xpos"][body][2]))
    print(heights, flush=True)
    # Closing a window on software GL may end in X's own error.
    os._exit(0)
"""


def heights(task, body, steps):
    words = [sys.executable, "-c", PULL_UP.format(task=task, body=body, steps=steps)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if done.stdout.startswith("no window:"):
        pytest.skip(done.stdout.strip())
    assert done.stdout.startswith("["), done.stderr
    return json.loads(done.stdout.splitlines()[0])


def test_the_mouse_pulls_at_the_simulation():
    before, pulled, dropped = heights("so101/LiftCube-v0", "cube", 5)
    assert pulled > before + 0.02, "a cube that is pulled at rises"
    assert dropped < pulled, "and falls when it is let go"
