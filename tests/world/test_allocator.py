"""Large arrays that come and go cost no page faults."""

import resource
import sys

import numpy as np
import pytest

from maniple.world.allocator import keep_freed_memory


def faults(times=6):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        np.ones(40_000_000, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_freed_memory_is_used_again():
    if not keep_freed_memory():
        pytest.skip("not glibc")
    faults()
    assert faults() < 50
