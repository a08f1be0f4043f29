"""Small models, and kernels on one thread: launching two costs more than such work."""

import numba
import pytest

from hcpf.elements import Gamma
from report.reporting import drawn, fitted


@pytest.fixture(autouse=True)
def _one_thread():
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def data():
    return drawn(Gamma(2, 0.05))


@pytest.fixture(scope="session")
def model(data):
    return fitted(data, element="gamma")
