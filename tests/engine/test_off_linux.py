"""Off Linux: native and serial engines run, and the process engine says why it does not."""

import subprocess
import sys

CODE = """
import os, select, signal, sys

class NoFcntl:
    def find_spec(self, name, *_):
        if name == "fcntl":
            raise ModuleNotFoundError("No module named 'fcntl'", name=name)

import subprocess, tempfile, importlib.metadata  # what Python itself needs of them
sys.modules.pop("fcntl", None)
sys.meta_path.insert(0, NoFcntl())
for module, names in (
    (os, ("sched_getaffinity", "sched_setaffinity", "memfd_create", "pidfd_open", "eventfd")),
    (select, ("epoll", "EPOLLIN")),
    (signal, ("SIGKILL", "pidfd_send_signal", "SIGSTOP", "SIGCONT")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "darwin"
import gymnasium, numpy as np
import maniple

for engine in ("native", "serial", "auto"):
    drawn = {"cameras": ("front",), "image_size": (32, 32)}
    envs = maniple.make_vec("so101/Reach-v0", 3, engine=engine, **drawn)
    obs, _ = envs.reset(seed=0)
    obs, *_ = envs.step(envs.action_space.sample())
    assert obs["front_rgb"].std() > 5
    envs.close()
env = gymnasium.make("LeRobot-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
try:
    maniple.make_vec("so101/Reach-v0", 2, engine="process")
except maniple.core.errors.BadConfig as error:
    print("refused:", error)
envs = maniple.make_vec("Pendulum-v1", 2)
envs.reset(seed=0)
print(envs.stats()["engine"])
"""


def test_without_what_only_linux_has():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    refused, engine = done.stdout.strip().splitlines()
    assert "Linux" in refused and "native" in refused
    assert engine == "serial"
