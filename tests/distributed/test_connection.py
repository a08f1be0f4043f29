"""Connections that cannot be made, and the arguments of fit: one clear error each."""

import os
import socket
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest

from hcpf import HCPF, RayEngine
from hcpf.distributed import engine_of
from hcpf.errors import ClusterError, MissingDependencyError, ParameterError
from hcpf.training.engine import LOCAL_ENGINE, balanced_block

MATRIX = np.eye(4)


def closed_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def test_an_unreachable_address_is_told_before_training():
    address = f"127.0.0.1:{closed_port()}"
    with pytest.raises(ClusterError, match=f"No Ray cluster answers at {address}"):
        HCPF(2).fit(MATRIX, engine="ray", address=address)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("somewhere", "'host:port'"),
        ("host:port", "'host:port'"),
        ("host:70000", "'host:port'"),
        (6379, "'host:port'"),
        ("ray://127.0.0.1:10001", "belongs to a Ray Client"),
    ],
)
def test_bad_addresses(address, message):
    with pytest.raises(ParameterError, match=message):
        HCPF(2).fit(MATRIX, engine="ray", address=address)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.\[ray\]'"):
        HCPF(2).fit(MATRIX, engine="ray")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "spark"}, "engine must be one of local, ray"),
        ({"workers": 2}, "workers=2 requires engine='ray'"),
        ({"address": "auto"}, "address='auto' requires engine='ray'"),
        ({"engine": "ray", "workers": 0}, "workers"),
        ({"engine": RayEngine(), "workers": 2}, "parameters of RayEngine"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ParameterError, match=message):
        HCPF(2).fit(MATRIX, **arguments)


@pytest.mark.parametrize(
    "settings",
    [{"silence_seconds": 0}, {"max_restarts": -1}, {"cpus_per_worker": 0}, {"start_seconds": "1"}],
)
def test_bad_settings_of_the_engine(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        RayEngine(**settings)


def test_engines_by_name():
    assert engine_of("local", 1) is LOCAL_ENGINE
    assert engine_of("ray", 3, "auto") == RayEngine(workers=3, address="auto")
    assert engine_of(RayEngine(workers=2)) == RayEngine(workers=2)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_blocks_of_users_have_about_equally_many_entries(size):
    degrees = np.random.default_rng(0).pareto(1.5, 500).astype(int)
    degrees[0] = 2_000  # more than a block's share
    pointer = np.concatenate([[0], np.cumsum(degrees)])
    blocks = [balanced_block(pointer, rank, size) for rank in range(size)]
    assert blocks[0].start == 0
    assert blocks[-1].stop == 500
    assert all(one.stop == two.start for one, two in pairwise(blocks))
    entries = [degrees[block].sum() for block in blocks]
    assert max(entries) <= degrees.sum() / size + degrees.max()


def test_every_worker_has_a_user():
    pointer = np.array([0, 9, 9, 9, 9])
    assert [balanced_block(pointer, rank, 4) for rank in range(4)] == [
        slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 4),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_not_reachable_from_others(ray_environment):
    script = """
        import os, socket
        from hcpf.distributed.connection import connected
        with connected(None, 1):
            pass
        with connected(None, 1):  # a second time in the same process
            import ray
            host, port = ray.get_runtime_context().gcs_address.rsplit(":", 1)
            print(host, len(os.environ["RAY_AUTH_TOKEN"]), os.environ["RAY_AUTH_MODE"])
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(("192.0.2.1", 9))  # sends nothing: asks for the outward address
                outward = probe.getsockname()[0]
            try:
                socket.create_connection((outward, int(port)), 5).close()
                print("reachable at", outward)
            except OSError:
                print("refused")
        print("RAY_AUTH_TOKEN" in os.environ)
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("RAY_AUTH_TOKEN",)}
    environment.pop("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment, capture_output=True, text=True, timeout=200, check=True,
    )  # fmt: skip
    assert done.stdout.split("\n")[:3] == ["127.0.0.1 64 token", "refused", "False"]
