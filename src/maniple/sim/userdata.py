"""Let every row remember a few numbers of its episode, as a part of MuJoCo's own state.

Notes live in `userdata`: a saved state carries them, and a reset clears them.
"""

from __future__ import annotations

import mujoco

PREFIX = "note."


def add_note(spec: mujoco.MjSpec, name: str, size: int = 1) -> None:
    """Give a scene room for `size` numbers under a name."""
    spec.add_numeric(name=PREFIX + name, data=[float(spec.nuserdata), float(size)], size=2)
    spec.nuserdata += size


def find_note(model: mujoco.MjModel, name: str) -> slice | None:
    """Return where a note's numbers are, or nothing."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, PREFIX + name)
    if index < 0:
        return None
    start, size = model.numeric_data[model.numeric_adr[index] :][:2].astype(int)
    return slice(int(start), int(start + size))


def note_names(model: mujoco.MjModel) -> list[str]:
    """Return the names of a model's notes."""
    names = [model.numeric(i).name for i in range(model.nnumeric)]
    return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
