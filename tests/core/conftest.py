"""Kernels on one thread, unless a test asks for more: launching two costs more than such work."""

import pytest

from hcpf.core.threads import kernel_threads


@pytest.fixture(autouse=True)
def _one_thread():
    with kernel_threads(1):
        yield
