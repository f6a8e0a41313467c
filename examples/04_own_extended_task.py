"""Bring a task that is written for one environment at a time, over an MJCF file of your own."""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict

import maniple


class SwingUp(maniple.ExtendedTask):
    """Swing the weight above the hinge."""

    XML_PATH = Path(__file__).parent / "models" / "pendulum.xml"
    ACTION_SPACE = Box(-1.0, 1.0, (1,), np.float64)
    OBSERVATION_SPACE = Dict(
        {"weight": Box(-2.0, 2.0, (3,), np.float64), "speed": Box(-50.0, 50.0, (1,), np.float64)}
    )
    SUBSTEPS = 4

    def initialize_episode(self, physics, rng):
        """Begin hanging down, a little to one side."""
        physics.data.qpos[:] = rng.uniform(-0.3, 0.3, 1)

    def get_observation(self, physics):
        """Return an element of OBSERVATION_SPACE."""
        weight = physics.site("weight").xpos.copy()
        return {"weight": weight, "speed": physics.data.qvel.copy()}

    def get_reward(self, physics):
        """1 at the top, 0 at the bottom."""
        return float(physics.site("weight").xpos[2] - 0.5)

    def get_sim_metadata(self):
        """Travel along in sim_state."""
        return {"task": "SwingUp"}


def main() -> None:
    """Pump energy into every pendulum: push in the direction in which it moves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    maniple.register("mine/SwingUp-v0", SwingUp)
    envs = gymnasium.make_vec("mine/SwingUp-v0", num_envs=8, max_episode_steps=250)
    obs, _ = envs.reset(seed=0)
    best = np.zeros(8)
    for _ in range(options.steps):
        obs, reward, _, _, _ = envs.step(np.sign(obs["speed"]))
        best = np.maximum(best, reward)
    print("best height above the lowest point (m):", best.round(2))
    envs.close()


if __name__ == "__main__":
    main()
