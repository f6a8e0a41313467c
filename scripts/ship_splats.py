"""Make the splat scenes that the package ships: python scripts/ship_splats.py [TASK ...]

Each takes about a minute. What belongs to a model that looks different now is removed.
"""

import sys
from pathlib import Path

from maniple.cli.main import main
from maniple.cli.splat.subject import load_subject
from maniple.splat.store import SHIPPED, scene_name

COUNTS = {
    "PiperMobileRobot-v0": 20_000,
    "piper/AppleInBowl-v0": 20_000,
    "so101/LiftCube-v0": 20_000,
    "panda/OpenDrawer-v0": 20_000,
    "piper/Reach-v0": 12_000,
    "piper/BananaInBowl-v0": 12_000,
    "go2_piper/AppleInBowl-v0": 12_000,
    "go2_piper/BananaInBowl-v0": 12_000,
    "mobile_piper/AppleInBowl-v0": 12_000,
    "mobile_piper/BananaInBowl-v0": 12_000,
    "mobile_piper/HandOver-v0": 12_000,
}


def ship(tasks: list[str]) -> None:
    """Make the scenes of some tasks, or of all."""
    SHIPPED.mkdir(exist_ok=True)
    for task in tasks or COUNTS:
        main(["splat", "fit", task, "--out", str(SHIPPED), "--count", str(COUNTS[task])])
    current = {Path(scene_name(load_subject(task)[0])).stem for task in COUNTS}
    for path in SHIPPED.iterdir():
        if path.stem not in current:
            print(f"{path.name} belongs to no task any more: removed")
            path.unlink()


if __name__ == "__main__":
    ship(sys.argv[1:])
