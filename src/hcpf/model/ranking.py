"""The best items for users, and rows with similar profiles of rates; all by position.

Scores are made tile by tile, some users times some items, and the best so far are kept: a tile
stays in the cache of its core, and no matrix of scores is ever in memory. Every thread takes whole
blocks of users, with BLAS on one thread each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.core import kernels
from hcpf.core.axis import NO_EXPOSURE, Exposure
from hcpf.core.posterior import Posterior, scale_rows, unit_rows
from hcpf.core.threads import run_in_parallel, single_blas_thread
from hcpf.data.shards.matrix import StoredMatrix

_USERS_AT_ONCE = 1 << 14  # users whose best items are returned together
MAX_BLOCK, _MIN_BLOCK = 128, 16  # users of a tile
_N_BLOCKS = 8  # smallest number of blocks for all threads together, unless there are few users
TILE = 1 << 18  # scores of a tile; for several fits, of all of them: 1 MB
_FEW_USERS = 4  # users up to which a call of BLAS does not pay off
_FEW_SCORES = 1 << 17  # scores; NumPy ranks fewer faster than Numba can be loaded
_MIN_RATE = np.float32(1e-37)  # as in kernels/topn.py

Factors = NDArray[np.float32]
Rows = NDArray[np.int64]
Tile = NDArray[np.float32]
"""Parts x users x items: the scores, or what they are made of."""
FillTile = Callable[[slice, Tile], None]


class Score(Protocol):
    """Scores of items for users; the larger the better."""

    @property
    def n_parts(self) -> int:
        """1 for scores as such; else how many rates the score is the geometric mean of."""
        ...

    def of(self, rows: Rows) -> FillTile:
        """Return a function that fills in the tile of these users and a range of items."""
        ...


class RankedPairs(NamedTuple):
    """Rows and their best columns, best first: parallel arrays."""

    rows: Rows
    columns: NDArray[np.int64]
    rank: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Rates:
    """Score by the product of the factors, summed over the fits; ``sign`` may turn it around."""

    fits: Sequence[tuple[Factors, Factors]]
    sign: float = 1.0
    n_parts: int = 1
    exposure: Exposure = NO_EXPOSURE

    def of(self, rows: Rows) -> FillTile:
        """Return a function that fills in the tile of these users and a range of items."""
        own = self.exposure.of_users(rows).users
        blocks = [np.float32(self.sign) * scale_rows(users[rows], own) for users, _ in self.fits]

        def fill(columns: slice, tile: Tile) -> None:
            multiply(blocks[0], self.fits[0][1][columns], tile[0])
            more = np.empty_like(tile[0]) if len(blocks) > 1 else tile[0]
            for block, (_, items) in zip(blocks[1:], self.fits[1:], strict=True):
                multiply(block, items[columns], more)
                np.add(tile[0], more, out=tile[0])
            _expose(tile, self.exposure, columns)

        return fill


@dataclass(frozen=True, eq=False)
class Consensus:
    """Score by the geometric mean of the rates of several fits."""

    fits: Sequence[tuple[Factors, Factors]]
    exposure: Exposure = NO_EXPOSURE

    @property
    def n_parts(self) -> int:
        """The number of fits."""
        return len(self.fits)

    def of(self, rows: Rows) -> FillTile:
        """Return a function that fills in the tile of these users and a range of items."""
        blocks = [users[rows] for users, _ in self.fits]

        def fill(columns: slice, tile: Tile) -> None:
            for part, block, (_, items) in zip(tile, blocks, self.fits, strict=True):
                multiply(block, items[columns], part)
            _expose(tile, self.exposure, columns)

        return fill


def consensus(fits: Sequence[Posterior]) -> Score:
    """Score by the geometric mean of the rates of several fits."""
    factors = [(fit.users.mean_, fit.items.mean_) for fit in fits]
    # The exposure of a user has no part in the order of the items.
    exposure = Exposure(items=fits[0].items.exposure)
    if len(factors) == 1:
        return Rates(factors, exposure=exposure)
    return Consensus(factors, exposure)


def _expose(tile: Tile, exposure: Exposure, columns: slice) -> None:
    """Multiply scores by the exposures of their items."""
    if exposure.items is not None:
        tile *= exposure.items[columns].astype(np.float32)


def multiply(users: Factors, items: Factors, out: Factors) -> None:
    """Set ``out`` to the products of users and items; a few users do without BLAS."""
    if len(users) > _FEW_USERS or not kernels.are_loaded():
        np.matmul(users, items.T, out=out)
        return
    out.fill(0.0)
    kernels.add_rates(users, items, out)


def best_items(
    score: Score,
    n_items: int,
    seen: Csr | None,
    rows: Rows,
    n: int,
    denied: NDArray[np.bool_],
) -> Iterator[RankedPairs]:
    """Yield the best items of one block of ``rows`` after the other, at least of one.

    Items that a row of ``seen`` stores are skipped, as are those denied to all.
    """
    n = min(n, n_items)
    if not kernels.are_loaded() and score.n_parts * len(rows) * n_items <= _FEW_SCORES:
        yield _best_of_few(score, seen, rows, n, denied)
        return
    step = max(1, min(_USERS_AT_ONCE, _USERS_AT_ONCE * 16 // max(n, 1)))
    for first in range(0, max(len(rows), 1), step):
        yield _best_of_rows(score, seen, rows[first : first + step], n, denied)


def _best_of_rows(
    score: Score, seen: Csr | None, rows: Rows, n: int, denied: NDArray[np.bool_]
) -> RankedPairs:
    position, stop, index = _listed(seen, rows)
    scores, places = np.empty((len(rows), n), np.float32), np.empty((len(rows), n), np.int32)
    found, n_items = np.zeros(len(rows), np.int64), len(denied)
    block_size = min(MAX_BLOCK, max(_MIN_BLOCK, -(-len(rows) // _N_BLOCKS)))
    select = kernels.best_of_tile if score.n_parts == 1 else kernels.best_of_products

    def rank_blocks(first: int, last: int) -> None:
        for block in range(first, last):
            users = slice(block * block_size, (block + 1) * block_size)
            mine, fill = rows[users], score.of(rows[users])
            state = position[users], stop[users], index, denied, scores[users], places[users]
            width = max(1, TILE // (score.n_parts * len(mine)))
            tile = np.empty(0, np.float32)
            for begin in range(0, n_items, width):
                shape = score.n_parts, len(mine), min(width, n_items - begin)
                tile = tile if tile.shape == shape else np.empty(shape, np.float32)
                fill(slice(begin, begin + shape[2]), tile)
                select(0, len(mine), tile, begin, *state, found[users])

    n_blocks = -(-len(rows) // block_size)
    if len(rows) <= _FEW_USERS:
        rank_blocks(0, n_blocks)
    else:
        with single_blas_thread():
            run_in_parallel(rank_blocks, n_blocks)
    kernels.sort_best(scores, places, found)
    return _ranked_pairs(rows, scores, places, found)


def _best_of_few(
    score: Score, seen: Csr | None, rows: Rows, n: int, denied: NDArray[np.bool_]
) -> RankedPairs:
    """Do what ``_best_of_rows`` does without compiled kernels, up to rounding of the scores."""
    start, stop, index = _listed(seen, rows)
    tile = np.empty((score.n_parts, len(rows), len(denied)), np.float32)
    score.of(rows)(slice(0, len(denied)), tile)
    if score.n_parts > 1:
        tile = np.log2(np.maximum(tile, _MIN_RATE)).sum(axis=0, keepdims=True)
    scores, places = np.empty((len(rows), n), np.float32), np.empty((len(rows), n), np.int32)
    found = np.zeros(len(rows), np.int64)
    for r, row in enumerate(tile[0]):
        row[index[start[r] : stop[r]]] = -np.inf
        row[denied] = -np.inf
        # A stable sort keeps the earlier of two items with the same score before the later one.
        best = np.argsort(-row, kind="stable")[:n]
        best = best[row[best] > -np.inf]
        found[r] = len(best)
        scores[r, : found[r]], places[r, : found[r]] = row[best], best
    return _ranked_pairs(rows, scores, places, found)


def _ranked_pairs(
    rows: Rows, scores: Factors, places: NDArray[np.int32], found: NDArray[np.int64]
) -> RankedPairs:
    """Return the first ``found`` of each row."""
    rank = np.arange(scores.shape[1])
    valid = rank < found[:, None]
    return RankedPairs(
        np.repeat(rows, found),
        places[valid].astype(np.int64),
        np.broadcast_to(rank + 1, valid.shape)[valid],
        scores[valid],
    )


def _listed(seen: Csr | None, rows: Rows) -> tuple[Rows, Rows, NDArray[np.int32]]:
    """Return where the entries of each row begin and end, and their columns."""
    if seen is None:
        nothing = np.zeros(len(rows), np.int64)
        return nothing, nothing.copy(), np.zeros(0, np.int32)
    entries = seen
    if isinstance(seen, StoredMatrix):  # only these rows are read from disk
        entries, rows = seen[rows], np.arange(len(rows))
    start, stop = entries.indptr[rows], entries.indptr[rows + 1]
    return start.astype(np.int64), stop.astype(np.int64), entries.indices


def profiles(mine: Factors, others: Factors) -> Factors:
    """Return vectors whose cosine is that of the whole rows of rates.

    Row i of the rates is mine_i . others^T, so the product of two rows is mine_i G mine_j with
    G = others^T others: no matter how the components are scaled, and across several fits.
    """
    gram = others.astype(np.float64).T @ others.astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return unit_rows(mine.astype(np.float64) @ root).astype(np.float32)


def nearest(vectors: Factors, rows: NDArray[np.int64], n: int) -> Iterator[RankedPairs]:
    """Yield the rows with the largest cosine to each of some rows, itself excluded."""
    size = len(vectors)
    own = sparse.csr_array(
        (np.ones(size, np.float32), np.arange(size, dtype=np.int32), np.arange(size + 1)),
        shape=(size, size),
    )
    score = Rates([(vectors, vectors)])
    return best_items(score, size, own, rows, n, np.zeros(size, np.bool_))
