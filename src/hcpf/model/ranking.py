"""The best items for users, and rows with similar profiles of rates; all by position."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.core import kernels
from hcpf.core.posterior import Posterior
from hcpf.core.threads import run_in_parallel

_BLOCK = 1 << 24  # scores held at once

_MIN_RATE = np.float32(1e-37)  # a product of factors may be 0 in float32, and 0 has no logarithm

Factors = NDArray[np.float32]
Score = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Scores of all items for some rows; the larger the better."""


class RankedPairs(NamedTuple):
    """Rows and their best columns, best first: parallel arrays."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    rank: NDArray[np.int64]
    scores: NDArray[np.float32]


def rates(users: Factors, items: Factors) -> Score:
    """Score by the product of the factors."""
    return lambda rows: users[rows] @ items.T


def consensus(fits: Sequence[Posterior]) -> Score:
    """Score by the geometric mean of the rates of several fits, in logarithms."""
    factors = [(fit.users.mean_, fit.items.mean_) for fit in fits]
    return rates(*factors[0]) if len(factors) == 1 else _Consensus(factors)


class _Consensus:
    """The sum of the fits' log rates; an array returned is reused by the next call."""

    def __init__(self, fits: Sequence[tuple[Factors, Factors]]) -> None:
        self._fits = fits
        self._buffer = np.empty((2, 0, len(fits[0][1])), np.float32)  # allocating costs more

    def __call__(self, rows: NDArray[np.int64]) -> Factors:
        if self._buffer.shape[1] < len(rows):
            self._buffer = np.empty((2, len(rows), self._buffer.shape[2]), np.float32)
        block, total = self._buffer[:, : len(rows)]
        total.fill(0.0)
        for users, items in self._fits:
            np.matmul(users[rows], items.T, out=block)
            run_in_parallel(
                kernels.add_logs, len(rows), block, _MIN_RATE, total, work=4.0 * block.size
            )
        return total


def best_items(
    score: Score,
    n_items: int,
    seen: Csr | None,
    rows: NDArray[np.int64],
    n: int,
    denied: NDArray[np.bool_],
) -> Iterator[RankedPairs]:
    """Yield the best items of one block of ``rows`` after the other, at least of one.

    Items that a row of ``seen`` stores are skipped, as are those denied to all.
    """
    n = min(n, n_items)
    step = max(1, _BLOCK // n_items)
    for first in range(0, max(len(rows), 1), step):
        block = rows[first : first + step]
        columns, scores, found = _best_of_block(score(block), seen, block, n, denied)
        rank = np.arange(n)
        valid = rank < found[:, None]
        yield RankedPairs(
            np.repeat(block, found),
            columns[valid].astype(np.int64),
            np.broadcast_to(rank + 1, valid.shape)[valid],
            scores[valid],
        )


def _best_of_block(
    scores: Factors,
    seen: Csr | None,
    rows: NDArray[np.int64],
    n: int,
    denied: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    """Return the best columns of each row, their scores, and how many there are."""
    start = stop = np.zeros(len(rows), np.int64)
    index = np.zeros(0, np.int32)
    if seen is not None:
        start, stop = seen.indptr[rows].astype(np.int64), seen.indptr[rows + 1].astype(np.int64)
        index = seen.indices
    best = np.empty((len(rows), n), np.float32)
    columns = np.empty((len(rows), n), np.int32)
    found = np.empty(len(rows), np.int64)
    arguments = scores, start, stop, index, denied, best, columns, found
    run_in_parallel(kernels.best_columns, len(rows), *arguments, work=scores.size)
    return columns, best, found


def profiles(mine: Factors, others: Factors) -> Factors:
    """Return vectors whose cosine is that of the whole rows of rates.

    Row i of the rates is mine_i . others^T, so the product of two rows is mine_i G mine_j with
    G = others^T others: no matter how the components are scaled, and across several fits.
    """
    gram = others.astype(np.float64).T @ others.astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    out = mine.astype(np.float64) @ root
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return (out / np.maximum(length, 1e-300)).astype(np.float32)


def nearest(vectors: Factors, rows: NDArray[np.int64], n: int) -> Iterator[RankedPairs]:
    """Yield the rows with the largest cosine to each of some rows, itself excluded."""
    size = len(vectors)
    own = sparse.csr_array(
        (np.ones(size, np.float32), np.arange(size, dtype=np.int32), np.arange(size + 1)),
        shape=(size, size),
    )
    return best_items(rates(vectors, vectors), size, own, rows, n, np.zeros(size, np.bool_))
