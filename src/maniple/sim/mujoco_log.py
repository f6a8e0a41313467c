"""Keep MuJoCo from writing its log into the working folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import mujoco


@contextmanager
def without_log() -> Iterator[None]:
    """Drop MuJoCo's warnings: states that somebody else recorded may break at any step.

    Otherwise it adds each of them to MUJOCO_LOG.TXT wherever the process stands.
    """
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
