"""Small models, and kernels on one thread: launching two costs more than such work."""

import pytest

from hcpf.core.threads import kernel_threads
from hcpf.elements import Gamma
from hcpf.evaluate import evaluate_model, split
from report.reporting import drawn, fitted, unfitted


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


@pytest.fixture(scope="session")
def parts(data):
    return split(data, validation=0.0, random_state=0)


@pytest.fixture(scope="session")
def evaluation(parts):
    return evaluate_model(unfitted(element="gamma"), parts)
