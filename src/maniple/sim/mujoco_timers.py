"""Keep MuJoCo from reading the clock at every stage of every physics step."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from pathlib import Path

import mujoco


def stop_timers() -> None:
    """Leave `MjData.timer` of this process at zero; a clock that somebody has set stays.

    The clock is asked some forty times in a physics step, a twentieth of the time of a whole
    environment. `mujoco.set_mjcb_time(None)` brings the timers back
    until the next environment is made.
    """
    if mujoco.get_mjcb_time() is None and (clock := _clock()) is not None:
        clock.value = None


@functools.cache
def _clock() -> ctypes.c_void_p | None:
    """Return MuJoCo's pointer to the function that tells the time, or None: not to be found."""
    for path in sorted(Path(mujoco.__file__).parent.glob("libmujoco.*")):
        with contextlib.suppress(OSError, ValueError):
            return ctypes.c_void_p.in_dll(ctypes.CDLL(str(path)), "mjcb_time")
    return None
