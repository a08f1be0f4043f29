"""How workers exchange sums: the only way in which training talks to other workers.

Every worker runs the same loop on the entries of some users and keeps all items. What depends
on all users is exchanged through the four calls of a ``Collective``. All workers make the same
calls in the same order, and every result is the same to the bit on all of them. All workers
therefore take the same decisions (when to stop, whether to retabulate) without a coordinator.
"""

from typing import Protocol, TypeVar

import numpy as np

from hcpf._types import FloatArray

Array = TypeVar("Array", bound=np.ndarray)


class Collective(Protocol):
    """A group of workers; ``rank`` numbers them from 0."""

    @property
    def rank(self) -> int:
        """The number of this worker."""
        ...

    @property
    def size(self) -> int:
        """The number of workers."""
        ...

    def sum(self, x: Array) -> Array:
        """Return the sum of all workers' arrays, taken in rank order."""
        ...

    def max(self, x: FloatArray) -> FloatArray:
        """Return the elementwise maximum of all workers' arrays."""
        ...

    def gather(self, x: Array) -> Array:
        """Return all workers' arrays (of any length) joined along the first axis."""
        ...

    def sum_rows(self, *arrays: FloatArray) -> tuple[FloatArray, ...]:
        """Return the sums of all workers' arrays in this worker's ``row_block``."""
        ...


class LocalCollective:
    """The collective of a single worker: every call returns its argument."""

    rank = 0
    size = 1

    def sum(self, x: Array) -> Array:
        """Return ``x``."""
        return x

    def max(self, x: FloatArray) -> FloatArray:
        """Return ``x``."""
        return x

    def gather(self, x: Array) -> Array:
        """Return ``x``."""
        return x

    def sum_rows(self, *arrays: FloatArray) -> tuple[FloatArray, ...]:
        """Return the arrays."""
        return arrays


LOCAL = LocalCollective()


def row_block(rank: int, size: int, n_rows: int) -> slice:
    """Return the rows that one of ``size`` workers updates on behalf of all."""
    return slice(rank * n_rows // size, (rank + 1) * n_rows // size)


def sum_scalar(comm: Collective, x: float) -> float:
    """Return the sum of one number per worker."""
    return float(comm.sum(np.array([x]))[0])


def any_worker(comm: Collective, flag: bool) -> bool:
    """Return whether the flag is set on any worker."""
    return bool(comm.max(np.array([float(flag)]))[0] > 0)
