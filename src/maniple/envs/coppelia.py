"""Find CoppeliaSim, and read its version before anything of it is loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from maniple.core.errors import BadConfig

WANTED = (4, 1, 0)
DOWNLOADS = "https://www.coppeliarobotics.com/previousVersions"
INSTALL = "bash scripts/install_coppeliasim.sh"
LIBRARY = "libcoppeliaSim.so"

# Where the archive is usually unpacked; the first that is there counts.
USUAL_PLACES = ("~/CoppeliaSim_Edu_V4_1_0_Ubuntu20_04", "~/CoppeliaSim", "~/.local/bin/CoppeliaSim")

Version = tuple[int, int, int]


def find_root(variables: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of CoppeliaSim: COPPELIASIM_ROOT, or one of the usual places."""
    given = variables.get("COPPELIASIM_ROOT")
    if given:
        root = Path(given).expanduser()
        if not (root / LIBRARY).exists():
            raise BadConfig(
                f"COPPELIASIM_ROOT is {given}, where there is no {LIBRARY}. "
                f"Set it to the unpacked folder of CoppeliaSim 4.1.0, or type: {INSTALL}"
            )
        return root
    home = Path(variables.get("HOME", "~")).expanduser()
    for place in USUAL_PLACES:
        root = home / place.removeprefix("~/")
        if (root / LIBRARY).exists():
            return root
    raise BadConfig(
        f"CoppeliaSim 4.1.0 was not found: COPPELIASIM_ROOT is not set. Type: {INSTALL} "
        "(or leave backend='rlbench' out: the tasks run on MuJoCo)."
    )


def check_version(root: Path) -> Version | None:
    """Return the version, which must be 4.1.0; None where the folder does not tell.

    Raises:
        BadConfig: Another version, with which RLBench's scenes do not load.
    """
    found = version_of(root)
    if found is not None and found != WANTED:
        raise BadConfig(
            f"{root} is CoppeliaSim {'.'.join(map(str, found))}; RLBench works with 4.1.0 only "
            "(others end with 'Handle ... does not exist'). Get 4.1.0 from "
            f"{DOWNLOADS}, set COPPELIASIM_ROOT to it, and install PyRep again."
        )
    return found


def version_of(root: Path) -> Version | None:
    """Read the version from the header, the readme or the folder's name."""
    header = _text(root / "programming/include/simConst.h")
    if found := re.search(r"#define\s+SIM_PROGRAM_VERSION_NB\s+(\d+)", header):
        number = int(found[1])
        return number // 10000, number // 100 % 100, number % 100
    parts = [
        re.search(rf"#define\s+SIM_VERSION_{part}\s+(\d+)", header)
        for part in ("MAJOR", "MINOR", "PATCH")
    ]
    if all(parts):
        return _version([part[1] for part in parts if part])
    if found := re.search(r"V(\d+)\.(\d+)(?:\.(\d+))?", _text(root / "readme.txt")):
        return _version(found.groups())
    if found := re.search(r"_V(\d+)_(\d+)_(\d+)", root.resolve().name):
        return _version(found.groups())
    return None


def variables(root: Path, has_cameras: bool, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return what must be in the environment when a process that loads CoppeliaSim starts.

    Without cameras no X server is needed; with them Qt's offscreen platform has no OpenGL.
    """
    libraries = [str(root), *filter(None, inherited.get("LD_LIBRARY_PATH", "").split(":"))]
    found = {
        "COPPELIASIM_ROOT": str(root),
        "LD_LIBRARY_PATH": ":".join(dict.fromkeys(libraries)),
        "QT_QPA_PLATFORM_PLUGIN_PATH": str(root),
    }
    if not has_cameras:
        found["QT_QPA_PLATFORM"] = inherited.get("QT_QPA_PLATFORM") or "offscreen"
    elif inherited.get("QT_QPA_PLATFORM") in ("offscreen", "minimal", "minimalegl"):
        found["QT_QPA_PLATFORM"] = "xcb"
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")[:200_000]
    except OSError:
        return ""


def _version(parts) -> Version:
    major, minor, patch = (int(part or 0) for part in parts)
    return major, minor, patch
