"""Small networks on a shared machine are quickest, and the same everywhere, on one thread."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Run torch on one thread."""
    torch.set_num_threads(1)
