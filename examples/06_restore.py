"""Go back to a saved sim_state: the same bits follow, and the same picture is drawn."""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import maniple
from maniple.data.video import save_png

TASK = "so101/StackCubes-v0"


def follow(env, actions) -> list:
    """Take the actions and keep what is seen."""
    return [env.step(action)[:2] for action in actions]


def main() -> None:
    """Save in the middle of an episode, go on, and go on again elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="folder; a temporary one if left")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="maniple-"))

    env = maniple.make(TASK, randomize=True)
    env.reset(seed=7)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (2 * options.steps, 4)).astype(np.float32)
    follow(env, actions[: options.steps])
    state = env.sim_state
    picture = env.render(320, 240)
    first = follow(env, actions[options.steps :])

    other = maniple.make(TASK, randomize=True)
    other.sim_state = state
    assert np.array_equal(other.render(320, 240), picture)
    again = follow(other, actions[options.steps :])
    for (obs, reward), (same_obs, same_reward) in zip(first, again, strict=True):
        assert reward == same_reward
        assert all(np.array_equal(obs[name], same_obs[name]) for name in obs)

    save_png(out / "moment.png", picture)
    print(f"{options.steps} steps after the saved moment gave the same bits in both environments")
    print(f"at {state['time']:.2f} s: {out / 'moment.png'}")
    env.close()
    other.close()


if __name__ == "__main__":
    main()
