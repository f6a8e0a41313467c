"""Keep the memory of one update for the next one."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's settings, from malloc.h."""
_MOST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Tell the C library not to give large arrays back to the system; False: it cannot.

    A batch of pictures is tens of megabytes. Given back and asked for again in every update, its
    pages are cleared by the kernel each time: a third of the CPU time of the latent model.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MOST)) and bool(mallopt(_TRIM_THRESHOLD, _MOST))
