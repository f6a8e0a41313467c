"""Drive the adapter over recording proxies; print every name of RLBench that it used, as JSON."""

import importlib
import json
import sys
from types import ModuleType

import numpy as np

from maniple.envs.rlbench import simulator
from maniple.envs.rlbench.config import ARM_MODES, CAMERAS, STATES, RLBenchConfig
from maniple.envs.rlbench.contract import action_spec

touched = set()


class Watched:
    """Passes everything on, and writes down what is asked for."""

    def __init__(self, inner, name):
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        touched.add(f"{self._name}.{name}")
        if isinstance(found, type) and found.__name__ == "Environment":
            return WatchedMaker(found)
        return found


class WatchedMaker:
    """Makes a watched Environment, with the signature of the real one."""

    def __init__(self, kind):
        self._kind = kind
        self.__signature__ = importlib.import_module("inspect").signature(kind)

    def __call__(self, *args, **options):
        touched.update(f"Environment({name})" for name in options)
        return WatchedEnvironment(self._kind(*args, **options), "Environment")


class WatchedEnvironment(Watched):
    def get_task(self, task):
        touched.add("Environment.get_task")
        return Watched(self._inner.get_task(task), "TaskEnvironment")


real = importlib.import_module


def watching(name):
    found = real(name)
    is_foreign = name.split(".")[0] in ("rlbench", "pyrep")
    return Watched(found, name) if is_foreign and isinstance(found, ModuleType) else found


def main(mode):
    # The adapter imports RLBench through this name only.
    simulator.importlib = type("I", (), {"import_module": staticmethod(watching)})
    config = RLBenchConfig(
        "OpenDrawer", arm_mode=mode, cameras=CAMERAS, observations=STATES, image_size=(8, 8),
        image_kinds=("rgb", "depth", "mask", "point_cloud"),
    )  # fmt: skip
    made = simulator.Simulator(config)
    made.reset(0, None)
    made.reset(0, 1)
    action = np.zeros(action_spec(config).shape)
    if mode in ("ik", "planning"):
        action[:] = [*made.observe(False).gripper_pose, 1.0]
    made.step(action)
    made.observe(True)
    made.live_demos(1, 0, None)
    made.close()
    print(json.dumps(sorted(touched)), file=sys.stderr)


assert sys.argv[1] in ARM_MODES
main(sys.argv[1])
