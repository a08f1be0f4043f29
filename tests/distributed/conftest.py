"""A Ray cluster of two nodes on this machine, shared by the tests of a module."""

import logging
import os
import secrets
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from hcpf import RayEngine, elements, simulate

TESTS = Path(__file__).parents[1]
TOKEN = secrets.token_hex(32)


class TwoNodes:
    """A head node and another one, which can be lost and replaced."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self._node = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
        self._node |= {"node_ip_address": "127.0.0.1"}
        head = {**self._node, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.cluster.add_node(**self._node)

    @property
    def address(self):
        return self.cluster.address

    def replace_lost_node(self):
        for node in list(self.cluster.worker_nodes):
            if not node.live_processes():
                self.cluster.worker_nodes.remove(node)
        if not self.cluster.worker_nodes:
            self.cluster.add_node(**self._node)

    def shutdown(self):
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def ray_environment():
    """Environment variables that Ray reads when it is imported; its files go to a short path.

    Neither they nor what Ray does to logging is left to other tests.
    """
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    folder = tempfile.mkdtemp(prefix="hcpf-ray-", dir="/tmp")
    values = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": folder,
        "RAY_DISABLE_IMPORT_WARNING": "1",
        # A lost node is noticed within seconds instead of half a minute.
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_timeout_ms": "2000",
        "RAY_health_check_failure_threshold": "3",
        "RAY_worker_niceness": "0",  # with Ray's 15, workers starve next to other tests
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
    }
    before, factory = {name: os.environ.get(name) for name in values}, logging.getLogRecordFactory()
    os.environ.update(values)
    yield values
    logging.setLogRecordFactory(factory)
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def two_nodes(ray_environment):
    nodes = TwoNodes()
    yield nodes
    import ray

    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def engine(two_nodes):
    two_nodes.replace_lost_node()
    return RayEngine(workers=2, address=two_nodes.address, silence_seconds=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Simulated interactions in four shards."""
    element = elements.Gamma(2.0, 0.1)
    data = simulate(120, 40, n_components=3, density=0.1, element=element, random_state=0)
    path = tmp_path_factory.mktemp("data") / "shards"
    data.interactions.to_shards(path, n_shards=4)
    return path
