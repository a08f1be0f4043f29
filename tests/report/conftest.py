"""Small models, and kernels on one thread: launching two costs more than such work."""

import pytest

from hcpf.core.threads import kernel_threads
from hcpf.elements import Gamma
from report.reporting import drawn, fitted


@pytest.fixture(autouse=True)
def _one_thread():
    with kernel_threads(1):
        yield


@pytest.fixture(scope="session")
def data():
    return drawn(Gamma(2, 0.05))


@pytest.fixture(scope="session")
def model(data):
    return fitted(data, element="gamma")
