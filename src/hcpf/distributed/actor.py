"""One worker as a Ray actor: it trains in one thread and takes messages in another."""

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._version import __version__
from hcpf.distributed.messages import Key, Mailbox, MessageCollective
from hcpf.distributed.sockets import Address, Connections, is_arrays, listen
from hcpf.errors import ClusterError
from hcpf.training.ensemble import Ensemble, Job, Part, run_fits

_MAIL = "mail"
_STORED_BYTES = 100_000  # an array above this size is stored once, not sent once per reader


@dataclass(frozen=True)
class Place:
    """Where a worker runs, and with what."""

    node: str
    pid: int
    version: str
    python: str
    numpy: str
    address: Address | None
    """Where it takes connections of other workers."""

    def __str__(self) -> str:
        return f"node {self.node}, process {self.pid}"


@dataclass(frozen=True)
class Sign:
    """A worker's sign of life."""

    index: int
    """The number of the current fit."""
    title: str
    iteration: int
    """Passes of the current fit."""
    note: str
    calls: int
    """Collective calls made."""
    waits_for: int | None
    """The worker whose message is missing just now."""
    failures: dict[int, str]
    """Why other workers could not be connected to."""


@dataclass(frozen=True)
class Usage:
    """What a worker has used."""

    calls: int
    bytes_sent: int
    waited_seconds: float
    """For messages of other workers."""
    cpu_seconds: float
    failures: dict[int, str]
    """Why other workers could not be connected to."""


class RayNetwork:
    """Carries arrays over connections between workers, and all else by calls of their actors."""

    def __init__(
        self, rank: int, peers: Sequence[Any], mailbox: Mailbox, connections: Connections
    ) -> None:
        self.rank, self.size = rank, len(peers)
        self._deliver, self._mailbox = [in_mail(peer.deliver) for peer in peers], mailbox
        self._connections = connections

    def send(self, ranks: Sequence[int], key: Key, payload: Any) -> None:
        """Send a message to some workers, without waiting for them."""
        left = ranks
        if is_arrays(payload):
            left = [rank for rank in ranks if not self._connections.send(rank, key, payload)]
            if len(left) > 1 and sum(x.nbytes for x in payload) > _STORED_BYTES:
                import ray

                payload = ray.put(payload)
        for rank in left:
            self._deliver[rank].remote(self.rank, key, payload)

    def receive(self, rank: int, key: Key) -> Any:
        """Wait for the message of another worker and return what it carries."""
        return self._mailbox.take(rank, key)

    def share(self, array: NDArray[Any]) -> Any:
        """Return a reference to an array in the object store."""
        import ray

        return ray.put(array)

    def fetch(self, handle: Any) -> NDArray[Any]:
        """Return the array of a reference, read-only."""
        import ray

        return ray.get(handle)


class RayWorker:
    """The actor. Called ``in_mail``, its other methods answer while ``run`` trains."""

    def __init__(self, rank: int) -> None:
        self._rank, self._mailbox = rank, Mailbox()
        self._comm: MessageCollective | None = None
        self._index, self._title, self._iteration, self._note = 0, "", 0, ""
        self._stopping = threading.Event()
        self._asked_at = time.monotonic()
        self._secret = b""
        self._connections: Connections | None = None

    def place(self, secret: bytes) -> Place:
        """Take connections with the secret of the group, and return where the worker runs."""
        from ray.util import get_node_ip_address

        node, self._secret = get_node_ip_address(), secret
        listener = listen(node, self._rank, secret, self._mailbox)
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        address = None if listener is None else listener.address
        return Place(node, os.getpid(), __version__, python, np.__version__, address)

    def deliver(self, rank: int, key: Key, payload: Any) -> None:
        """Take a message of another worker."""
        self._mailbox.put(rank, key, payload)

    def sign(self) -> Sign:
        """Give a sign of life."""
        self._asked_at = time.monotonic()
        comm = self._comm
        calls, waits_for = (0, None) if comm is None else (comm.calls, comm.waits_for)
        failures = {} if self._connections is None else dict(self._connections.failures)
        passed = self._index, self._title, self._iteration, self._note
        return Sign(*passed, calls, waits_for, failures)

    def stop(self) -> None:
        """End the fit after the current pass."""
        self._stopping.set()

    def run(
        self,
        load: Callable[[], Part],
        job: Job,
        peers: Sequence[Any],
        addresses: Sequence[Address | None],
        silence_seconds: float,
    ) -> tuple[Usage, NDArray[np.int64], Ensemble]:
        """Train on what ``load`` returns, together with the other workers.

        Returned are the usage, the numbers of the worker's users, and their posteriors together
        with those of all items.
        """
        self._end_without_driver(silence_seconds)
        connections = Connections(self._rank, self._secret, addresses, self._mailbox)
        self._connections = connections
        network = RayNetwork(self._rank, peers, self._mailbox, connections)
        comm = self._comm = MessageCollective(network)
        part, began = load(), time.process_time()
        ensemble = run_fits(part, job, comm, self)
        seconds = time.process_time() - began
        failures = connections.failures
        usage = Usage(comm.calls, comm.bytes_sent, comm.waited, seconds, failures)
        return usage, part.data.numbers, ensemble

    def passed(self, title: str, iteration: int, note: str) -> None:
        """Take note of the passes made so far, for the next sign of life."""
        if self._title and title != self._title:
            self._index += 1
        self._title, self._iteration, self._note = title, iteration, note

    def stop_requested(self) -> bool:
        """Return whether the driver asked for the end of the fit."""
        return self._stopping.is_set()

    def _end_without_driver(self, seconds: float) -> None:
        """End the process when the driver has not asked for a sign of life for some time.

        Ray ends actors whose driver is gone, unless it cannot reach them. Then a new group may be
        running already, and this one must not write checkpoints for ever.
        """
        self._asked_at = time.monotonic()

        def watch() -> None:
            while time.monotonic() - self._asked_at < seconds:
                time.sleep(min(1.0, seconds / 4))
            os._exit(1)

        threading.Thread(target=watch, daemon=True, name="hcpf driver watch").start()


def actor_class(n_cpus: float) -> Any:
    """Return the actor class for workers with some CPUs each."""
    import ray

    remote: Any = ray.remote  # its overloads do not know concurrency groups
    made = remote(
        num_cpus=n_cpus,
        max_restarts=0,  # the whole group restarts, from a checkpoint
        max_task_retries=0,
        concurrency_groups={_MAIL: 1},
    )
    return made(RayWorker)


def in_mail(method: Any) -> Any:
    """Return an actor's method that is answered by the thread of its mail."""
    return method.options(concurrency_group=_MAIL)


def require_same_software(places: Sequence[Place]) -> None:
    """Raise an error if a worker has another version of the library, of Python or of NumPy."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for rank, place in enumerate(places):
        for name, theirs, ours in (
            ("hcpf", place.version, __version__),
            ("Python", place.python, python),
            ("NumPy", place.numpy, np.__version__),
        ):
            if theirs != ours:
                raise ClusterError(
                    f"Worker {rank} ({place}) has {name} {theirs}, but this process has {ours}: "
                    "their results would differ. Install the same version on all nodes."
                )
