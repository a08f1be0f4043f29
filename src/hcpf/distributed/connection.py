"""The connection to a Ray cluster with a token, or a cluster on this machine alone."""

import os
import secrets
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

from hcpf.errors import ClusterError, MissingDependencyError, ParameterError

_CONNECT_SECONDS = 10.0
_LOCAL_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Despite its name: with 0, Ray listens on the loopback address alone, on all systems."""


@contextmanager
def connected(address: str | None, n_cpus: int | None = None) -> Generator[None]:
    """Connect to a Ray cluster, or start one on this machine, for the time of the block.

    A connection that the caller has made before is used and left open. ``n_cpus`` is the least
    number of CPUs of a cluster on this machine.
    """
    ray = require_ray(address)
    if ray.is_initialized():
        _require_same_cluster(ray, address)
        yield
        return
    with _token_of_its_own(wanted=address is None):
        _init(ray, address, n_cpus)
        try:
            yield
        finally:
            ray.shutdown()


def _check_address(address: Any) -> None:
    if address is None or address == "auto":
        return
    if not isinstance(address, str):
        raise ParameterError(f"address must be 'host:port' or 'auto'; got {address!r}.")
    if address.startswith("ray://"):
        raise ParameterError(
            f"address={address!r} is not supported: it belongs to a Ray Client. Use 'host:port' "
            "or 'auto', and run the fit on a node of the cluster, for example with ray job submit."
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ParameterError(f"address={address!r} must be 'host:port' or 'auto'.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"No Ray cluster answers at {address} ({error.strerror or error}). Check the address "
            "with ray status on the cluster, and that its port is open from here."
        ) from None


def _prepare_variables(*, is_local: bool) -> None:
    """Set what Ray reads when it is imported."""
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A refused token is tried again as often; by default for 20 s.
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "3")
    if is_local and "ray" not in sys.modules:
        os.environ.setdefault(_LOCAL_ONLY, "0")


@cache
def _own_token() -> str:
    """Return a token that stays the same in this process, for Ray reads it only once."""
    return secrets.token_hex(32)


@contextmanager
def _token_of_its_own(*, wanted: bool) -> Generator[None]:
    """Give a cluster on this machine a separate token, unless one is set."""
    if not wanted or any(os.environ.get(f"RAY_AUTH_TOKEN{end}") for end in ("", "_PATH")):
        yield
        return
    os.environ["RAY_AUTH_TOKEN"] = _own_token()
    try:
        yield
    finally:
        os.environ.pop("RAY_AUTH_TOKEN", None)


def require_ray(address: str | None) -> Any:
    """Return Ray, or raise an error if it is not installed or no cluster answers at the address."""
    _check_address(address)
    _prepare_variables(is_local=address is None)
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError.of_extra(
            f"engine='ray' requires Ray ({error})", "ray"
        ) from None
    return ray


def _init(ray: Any, address: str | None, n_cpus: int | None) -> None:
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    if address is None:
        cpus = max(os.cpu_count() or 1, n_cpus or 1)
        ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except Exception as error:
        raise ClusterError(_reason(error, address)) from error


def _reason(error: Exception, address: str) -> str:
    """Return what a failed connection means."""
    texts: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(f"{type(cause).__name__}: {cause}")
        cause = cause.__cause__ or cause.__context__
    if any("AuthenticationError" in text or "InvalidAuthToken" in text for text in texts):
        return (
            f"The Ray cluster at {address} refused the token. Set RAY_AUTH_TOKEN, or "
            "RAY_AUTH_TOKEN_PATH, to the token of the cluster (ray get-auth-token prints it there);"
            " for a cluster without authentication set RAY_AUTH_MODE=disabled."
        )
    if address == "auto":
        return (
            "address='auto' found no Ray cluster on this machine. Give 'host:port', or leave "
            "address out to start one for this fit."
        )
    summary = " ".join(texts[0].split())[:300]
    return f"The connection to the Ray cluster at {address} failed ({summary})."


def _require_same_cluster(ray: Any, address: str | None) -> None:
    current = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", current):
        raise ClusterError(
            f"This process is connected to the Ray cluster at {current}, not to {address}. Call "
            "ray.shutdown() first, or remove address."
        )
