"""A `Collective` over messages between workers, for any `Network` that carries them.

Rows are summed where they are needed: worker r receives its block of rows from every worker and
adds the blocks up in rank order, so that no worker adds up everything. Small arrays are exchanged
directly within a small group. In a large one they go up and down a tree, whose root combines them
in rank order, and large arrays leave only a handle in the tree and are fetched by their readers.
Either way the result has the same bits.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.collective import row_block
from hcpf.errors import ClusterError

Array = TypeVar("Array", bound=np.ndarray)
Key = tuple[int, str]
"""The number of a call, the same on all workers, and its name."""

MAX_DIRECT = 16
"""Workers up to which each writes to all others; a tree takes two hops per level."""
_BRANCHES = 16  # of the tree: 1,000 workers are three levels deep
_SMALL_BYTES = 1 << 16  # up to here an array travels inside the message
_LOST_SECONDS = 120.0  # Ray reports a lost worker sooner, and then starts none on a lost node


class ConnectionLostError(Exception):
    """Messages to or from another worker cannot arrive any more.

    Not an OSError, which a worker that writes a checkpoint would take for an error of its disk.
    """

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(rank, reason)
        self.rank, self.reason = rank, reason

    def __str__(self) -> str:
        return f"the connection with worker {self.rank} has ended: {self.reason}"


class Network(Protocol):
    """How one worker reaches the others; every message arrives once, in any order."""

    rank: int
    size: int

    def send(self, ranks: Sequence[int], key: Key, payload: Any) -> None:
        """Send a message to some workers, without waiting for them."""
        ...

    def receive(self, rank: int, key: Key) -> Any:
        """Wait for the message of another worker and return what it carries."""
        ...

    def share(self, array: NDArray[Any]) -> Any:
        """Return a small handle of an array, which any worker can fetch."""
        ...

    def fetch(self, handle: Any) -> NDArray[Any]:
        """Return the array of a handle, read-only."""
        ...


class MessageCollective:
    """The four calls of a `Collective`, and a count of the bytes they move."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.rank, self.size = network.rank, network.size
        self.calls = 0
        """Calls made so far; the sign that a worker goes on."""
        self.bytes_sent = 0
        """Bytes of arrays sent to other workers."""
        self.waited = 0.0
        """Seconds spent in waiting for messages."""
        self.waits_for: int | None = None
        """The worker whose message is missing just now."""

    def sum(self, x: Array) -> Array:
        """Return the sum of all workers' arrays, taken in rank order."""
        return self._reduce("sum", x, _sum)

    def max(self, x: FloatArray) -> FloatArray:
        """Return the elementwise maximum of all workers' arrays."""
        return self._reduce("max", x, _maximum)

    def gather(self, x: Array) -> Array:
        """Return all workers' arrays (of any length) joined along the first axis."""
        return self._exchange("gather", x, np.concatenate)

    def sum_rows(self, *arrays: FloatArray) -> tuple[FloatArray, ...]:
        """Return the sums of all workers' arrays in this worker's ``row_block``."""
        return self._reduce_rows("sum_rows", arrays, _sum)

    def _reduce(
        self, name: str, x: NDArray[Any], combine: Callable[[Sequence[NDArray[Any]]], NDArray[Any]]
    ) -> Any:
        if x.nbytes <= _SMALL_BYTES:
            return self._exchange(name, x, combine)
        (rows,) = self._reduce_rows(name, (x.reshape(-1),), combine)
        return self._exchange(name, rows, np.concatenate).reshape(x.shape)

    def _reduce_rows(
        self,
        name: str,
        arrays: tuple[NDArray[Any], ...],
        combine: Callable[[Sequence[NDArray[Any]]], NDArray[Any]],
    ) -> tuple[NDArray[Any], ...]:
        """Send every worker its block of rows, and combine the blocks of the own rows."""
        key = self._next(name)

        def rows_of(rank: int) -> tuple[NDArray[Any], ...]:
            return tuple(x[row_block(rank, self.size, len(x))] for x in arrays)

        for step in range(1, self.size):  # everyone begins with another, so that nobody is flooded
            other = (self.rank + step) % self.size
            self._send([other], key, rows_of(other))
        parts = [rows_of(j) if j == self.rank else self._receive(j, key) for j in self._ranks]
        return tuple(combine(same) for same in zip(*parts, strict=True))

    def _exchange(
        self,
        name: str,
        x: NDArray[Any],
        combine: Callable[[Sequence[NDArray[Any]]], NDArray[Any]],
    ) -> Any:
        """Combine the arrays of all workers, and return the result on all of them."""
        key = self._next(name)
        if self.size <= MAX_DIRECT:
            self._send([j for j in self._ranks if j != self.rank], key, (x,))
            parts = [x if j == self.rank else self._receive(j, key)[0] for j in self._ranks]
            return combine(parts)
        parent, children = parent_of(self.rank), children_of(self.rank, self.size)
        parts = [(self.rank, self._packed(x))]
        for child in children:
            parts += self._receive(child, key)
        if self.rank > 0:
            self._network.send([parent], key, parts)
            result = self._receive(parent, key)
        else:
            found = [self._unpacked(part) for _, part in sorted(parts, key=lambda part: part[0])]
            result = self._packed(combine(found))
        if children:
            self._network.send(children, key, result)
        return np.array(self._unpacked(result))  # what was received is read-only

    def _next(self, name: str) -> Key:
        self.calls += 1
        return self.calls, name

    def _send(self, ranks: Sequence[int], key: Key, arrays: tuple[NDArray[Any], ...]) -> None:
        if ranks:
            self.bytes_sent += sum(x.nbytes for x in arrays) * len(ranks)
            self._network.send(ranks, key, arrays)

    def _receive(self, rank: int, key: Key) -> Any:
        began, self.waits_for = time.perf_counter(), rank
        found = self._network.receive(rank, key)
        self.waits_for = None
        self.waited += time.perf_counter() - began
        return found

    def _packed(self, x: NDArray[Any]) -> Any:
        """Return what goes into a tree: the array, or a handle where it is large."""
        self.bytes_sent += x.nbytes
        return x if x.nbytes <= _SMALL_BYTES else _Handle(self._network.share(x))

    def _unpacked(self, part: Any) -> NDArray[Any]:
        return self._network.fetch(part.value) if isinstance(part, _Handle) else part

    @property
    def _ranks(self) -> range:
        return range(self.size)


def parent_of(rank: int) -> int:
    """Return the worker above another one in the tree, whose root is worker 0."""
    return (rank - 1) // _BRANCHES


def children_of(rank: int, size: int) -> list[int]:
    """Return the workers right below another one in the tree."""
    first = rank * _BRANCHES + 1
    return list(range(first, min(first + _BRANCHES, size)))


class _Handle:
    """Stands for a large array in a tree."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Mailbox:
    """The messages that have arrived at one worker."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._messages: dict[tuple[int, Key], Any] = {}
        self._lost: dict[int, tuple[float, str]] = {}

    def put(self, rank: int, key: Key, payload: Any) -> None:
        """Keep the message of a worker until it is taken."""
        with self._arrived:
            self._messages[rank, key] = payload
            self._arrived.notify_all()

    def lose(self, rank: int, reason: str) -> None:
        """Take note that a connection with a worker has ended."""
        with self._arrived:
            self._lost.setdefault(rank, (time.monotonic(), reason))
            self._arrived.notify_all()

    def take(self, rank: int, key: Key) -> Any:
        """Wait for the message of a worker and remove it."""
        with self._arrived:
            while (rank, key) not in self._messages:
                self._refuse_other_calls(rank, key)
                self._arrived.wait(self._patience(rank))
            return self._messages.pop((rank, key))

    def _patience(self, rank: int) -> float | None:
        """Return how long to wait for a worker; raise an error if that time is over.

        Without limit while it is connected: the driver sees to that it lives.
        """
        if rank not in self._lost:
            return None
        lost_at, reason = self._lost[rank]
        seconds = lost_at + _LOST_SECONDS - time.monotonic()
        if seconds <= 0:
            raise ConnectionLostError(rank, reason)
        return seconds

    def _refuse_other_calls(self, rank: int, key: Key) -> None:
        """Raise an error if the worker is in another call, instead of waiting forever."""
        for sender, (number, name) in self._messages:
            if sender == rank and number == key[0] and name != key[1]:
                raise ClusterError(
                    f"Worker {rank} is at call {number} in {name}, not in {key[1]}: the workers do "
                    "not run the same code. Install the same version of hcpf on all nodes."
                )


def _sum(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    total = np.array(parts[0])
    for other in parts[1:]:
        total += other
    return total


def _maximum(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.max(np.stack(parts), axis=0)
