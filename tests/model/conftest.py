"""Kernels on one thread, unless a test asks for more: launching two costs more than such work."""

import numba
import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)
