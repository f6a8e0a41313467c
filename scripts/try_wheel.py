"""Try an installed wheel: compiled parts, a picture, many environments, the command line."""

import subprocess
import sys
from pathlib import Path

import maniple
from maniple.sim.kernel.library import find_library

here = Path(maniple.__file__).parent
assert "site-packages" in here.parts, f"{here} is not the installed package"
for extension in ("maniple.core._quick", "maniple.sim.fast._raycast"):
    assert find_library(extension) is not None, f"{extension} is not in the wheel"
envs = maniple.make_vec("so101/LiftCube-v0", 16, cameras=("front",), image_size=(64, 64))
obs, _ = envs.reset(seed=0)
obs, *_ = envs.step(envs.action_space.sample())
assert obs["front_rgb"].std() > 5 and envs.stats()["renderer"] == "fast"
envs.close()
command = Path(sys.executable).with_name("maniple")
subprocess.run([str(command), "list"], check=True, stdout=subprocess.DEVNULL)
subprocess.run([str(command), "doctor", "--json"], check=True, stdout=subprocess.DEVNULL)
print(f"The wheel of maniple {maniple.__version__} works.")
