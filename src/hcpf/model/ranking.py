"""Ranking: the best items for users, and rows or columns with like profiles."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr
from hcpf.core import kernels
from hcpf.core.threads import share

_BLOCK = 1 << 24  # scores held at once

_LEAST_RATE = np.float32(1e-37)  # a product of factors may be 0 in float32, and 0 has no logarithm

Factors = NDArray[np.float32]
Score = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Scores of all items for some rows; the larger the better."""


def side_by_side(parts: list[Factors]) -> Factors:
    """Factors of several fits as those of one: their product is the sum of the rates."""
    return parts[0] if len(parts) == 1 else np.ascontiguousarray(np.concatenate(parts, axis=1))


def rates(users: Factors, items: Factors) -> Score:
    """Score by the product of the factors."""
    return lambda rows: users[rows] @ items.T


def consensus(fits: Sequence[tuple[Factors, Factors]]) -> Score:
    """Score by the geometric mean of the rates of several fits, in logarithms."""
    return rates(*fits[0]) if len(fits) == 1 else _Consensus(fits)


class _Consensus:
    """The sum of the fits' log rates. Scores are good until the next ones are asked for."""

    def __init__(self, fits: Sequence[tuple[Factors, Factors]]) -> None:
        self._fits = fits
        self._room = np.empty((2, 0, len(fits[0][1])), np.float32)  # new memory costs more than use

    def __call__(self, rows: NDArray[np.int64]) -> Factors:
        if self._room.shape[1] < len(rows):
            self._room = np.empty((2, len(rows), self._room.shape[2]), np.float32)
        block, total = self._room[:, : len(rows)]
        total.fill(0.0)
        for users, items in self._fits:
            np.matmul(users[rows], items.T, out=block)
            share(kernels.add_logs, len(rows), block, _LEAST_RATE, total, work=4.0 * block.size)
        return total


def best_items(
    score: Score,
    n_items: int,
    seen: Csr | None,
    rows: NDArray[np.int64],
    n: int,
    denied: NDArray[np.bool_],
) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]]:
    """Block by block: which of ``rows``, their best items, these items' scores, and how many.

    Items that a row of ``seen`` stores are left out, as are those denied to all.
    """
    n = min(n, n_items)
    step = max(1, _BLOCK // n_items)
    nothing = np.zeros(0, np.int32)
    for first in range(0, len(rows), step):
        part = slice(first, min(first + step, len(rows)))
        chosen = rows[part]
        block = score(chosen)
        start = stop = np.zeros(len(chosen), np.int64)
        index = nothing
        if seen is not None:
            start = seen.indptr[chosen].astype(np.int64)
            stop = seen.indptr[chosen + 1].astype(np.int64)
            index = seen.indices
        scores = np.empty((len(chosen), n), np.float32)
        places = np.empty((len(chosen), n), np.int32)
        found = np.empty(len(chosen), np.int64)
        arguments = block, start, stop, index, denied, scores, places, found
        share(kernels.best_columns, len(chosen), *arguments, work=block.size)
        yield part, places, scores, found


def profiles(mine: Factors, others: Factors) -> Factors:
    """Vectors whose cosine is that of the whole rows of rates.

    Row i of the rates is mine_i . others^T, so the product of two rows is mine_i G mine_j with
    G = others^T others: no matter how the components are scaled, and across several fits.
    """
    gram = others.astype(np.float64).T @ others.astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    out = mine.astype(np.float64) @ root
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return (out / np.maximum(length, 1e-300)).astype(np.float32)


def nearest(
    vectors: Factors, rows: NDArray[np.int64], n: int
) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]]:
    """The rows with the largest cosine to each of some rows, itself left out."""
    import scipy.sparse as sparse

    size = len(vectors)
    own = sparse.csr_array(
        (np.ones(size, np.float32), np.arange(size, dtype=np.int32), np.arange(size + 1)),
        shape=(size, size),
    )
    return best_items(rates(vectors, vectors), size, own, rows, n, np.zeros(size, np.bool_))
