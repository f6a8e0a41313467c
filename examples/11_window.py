"""Random actions in MuJoCo's window: pull at things with Ctrl and a mouse button held.

Needs a display (on macOS start it with mjpython instead of python).
"""

import time

import maniple
from maniple.core.errors import NoDisplay


def main(task: str = "so101/LiftCube-v0", seconds: float = 10.0) -> None:
    env = maniple.make(task)
    env.reset(seed=0)
    env.action_space.seed(0)
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            env.render_to_window()
            _, _, terminated, truncated, _ = env.step(0.3 * env.action_space.sample())
            if terminated or truncated:
                env.reset()
            time.sleep(1 / env.metadata["render_fps"])
    except NoDisplay as error:
        print(error)
    env.close()


if __name__ == "__main__":
    main()
