"""Write a batched task of your own, register it, and step it like any other."""

import argparse
from typing import ClassVar

import numpy as np

import maniple
from maniple.sim.scene import GREEN, add_camera, add_desk, add_marker


class Hover(maniple.Task):
    """Hold the fingertip at the green ball."""

    cameras = ("front",)
    proprioception = ("joints", "tip")
    scales: ClassVar = {"near": 1.0, "success": 1.0, "time": -1.0}

    def scene(self, spec):
        """Add what is around the arm, which stands there already."""
        add_desk(spec)
        add_marker(spec, "ball", 0.012, GREEN)
        add_camera(spec, "front", (0.6, -0.3, 0.4), (0.16, 0.0, 0.09), 42.0)

    def place(self, rng):
        """Draw where the ball begins, a row for every environment."""
        return {"ball": rng.uniform([0.18, -0.08, 0.06], [0.25, 0.08, 0.14])}

    def observe(self, s):
        """Return arrays with the environments first."""
        return {"joints": s.qpos[:, :6], "tip": s.pos("tip"), "ball": s.pos("ball")}

    def terms(self, s):
        """Return the named parts of the reward; `scales` weighs them."""
        near = 1.0 - np.tanh(s.gap("tip", "ball") / 0.1)
        return {"near": near, "success": self.success(s), "time": np.ones(s.rows)}

    def success(self, s):
        """Within two centimetres."""
        return s.gap("tip", "ball") < 0.02


def main() -> None:
    """Steer straight to the ball, in all rows at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    maniple.register("mine/Hover-v0", Hover)
    envs = maniple.make_vec("mine/Hover-v0", 16, terminate_on_success=False)
    obs, info = envs.reset(seed=0)
    actions = np.zeros((16, 4), np.float32)
    for _ in range(parser.parse_args().steps):
        actions[:, :3] = np.clip((obs["ball"] - obs["tip"]) * 30.0, -1.0, 1.0)
        obs, reward, _, _, info = envs.step(actions)
    print(f"{info['success'].sum()} of 16 tips are at their ball; reward {reward.mean():.2f}")
    envs.close()


if __name__ == "__main__":
    main()
