"""Held-out pairs, observed and missing, and how they are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.data.sampling import locate, pair_keys, row_of, select
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.errors import InputError

_MAX_PERMUTED = 1 << 28  # numbers, of which some are drawn by a permutation of all
_MAX_LISTED_PAIRS = 1 << 22  # of a matrix whose missing pairs are listed one by one

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOutPairs:
    """Observed pairs with their values, and a sample of missing pairs, by position.

    Attributes
    ----------
    users, items : ndarray of int64
        Rows and columns of the observed pairs.
    values : ndarray of float64
        The values of the observed pairs.
    missing_users, missing_items : ndarray of int64
        Rows and columns of the missing pairs.
    missing_weight : float
        Number of missing pairs of the data that each held-out missing pair stands for, when each
        held-out observed pair stands for itself.
    """

    users: Positions
    items: Positions
    values: FloatArray
    missing_users: Positions
    missing_items: Positions
    missing_weight: float

    def __len__(self) -> int:
        """Return the number of observed pairs."""
        return len(self.values)

    @property
    def n_missing(self) -> int:
        """Number of missing pairs held out."""
        return len(self.missing_users)

    @classmethod
    def of_entries(
        cls, matrix: Csr, entries: Positions, missing: tuple[Positions, Positions], n_missing: float
    ) -> "HeldOutPairs":
        """Hold out stored entries of a matrix, given by position, and missing pairs.

        ``n_missing`` is the number of missing pairs that those held out stand for.
        """
        return cls(
            users=row_of(matrix, entries),
            items=matrix.indices[entries].astype(np.int64),
            values=matrix.data[entries].astype(np.float64),
            missing_users=missing[0],
            missing_items=missing[1],
            missing_weight=n_missing / max(len(missing[0]), 1),
        )


def mark_pairs(shape: tuple[int, int], held_out: Sequence[HeldOutPairs]) -> Csr:
    """Return a matrix whose stored entries mark all held-out pairs, observed and missing."""
    rows = np.concatenate([x for pairs in held_out for x in (pairs.users, pairs.missing_users)])
    cols = np.concatenate([x for pairs in held_out for x in (pairs.items, pairs.missing_items)])
    return sparse.csr_array((np.ones(len(rows), np.float32), (rows, cols)), shape=shape)


def hold_out(matrix: Csr, share: float, rng: np.random.Generator) -> tuple[Csr, Csr]:
    """Split the stored entries at random: the rest, and about ``share`` of them."""
    size = round(share * matrix.nnz)
    if size == 0 or size == matrix.nnz:
        raise InputError(
            f"validation={share:g} of {matrix.nnz} entries leaves none for training or for "
            "validation. Use another share or more data."
        )
    drawn = _draw_distinct(matrix.nnz, size, rng)
    if isinstance(matrix, StoredMatrix):
        drawn.sort()
        return matrix.without(drawn), matrix.take(drawn)
    chosen = np.zeros(matrix.nnz, dtype=np.bool_)
    chosen[drawn] = True
    return select(matrix, ~chosen), select(matrix, chosen)


def _draw_distinct(n: int, size: int, rng: np.random.Generator) -> Positions:
    """Draw distinct numbers below ``n``."""
    if n <= _MAX_PERMUTED or 50 * size < n:
        return rng.choice(n, size, replace=False)
    drawn = np.zeros(0, dtype=np.int64)  # choice() would permute all numbers, 8 bytes each
    while len(drawn) < size:
        more = rng.integers(0, n, int(1.1 * (size - len(drawn))) + 16)
        drawn = np.unique(np.concatenate([drawn, more]))
    return rng.permutation(drawn)[:size]


def sample_missing(
    matrix: Csr,
    size: int,
    rng: np.random.Generator,
    *,
    also: Sequence[Csr | None] = (),
) -> tuple[Positions, Positions]:
    """Draw distinct pairs that no given matrix stores, uniformly and in random order.

    Fewer than ``size`` are returned where fewer exist.
    """
    n_rows, n_cols = matrix.shape
    stored = [matrix, *(other for other in also if other is not None)]
    n_pairs = n_rows * n_cols
    if n_pairs <= _MAX_LISTED_PAIRS:
        # np.setdiff1d gives the same, but takes a hundred times as long.
        is_missing = np.ones(n_pairs, dtype=np.bool_)
        for other in stored:
            is_missing[pair_keys(other)] = False
        missing = np.flatnonzero(is_missing)
        drawn = rng.choice(missing, min(size, len(missing)), replace=False)
        return drawn // n_cols, drawn % n_cols
    size = min(size, n_pairs - sum(other.nnz for other in stored))  # at least that many exist
    accepted = np.zeros(0, dtype=np.int64)
    while len(accepted) < size:
        drawn = rng.integers(0, n_pairs, int(1.2 * (size - len(accepted))) + 16)
        for other in stored:
            drawn = drawn[locate(other, drawn // n_cols, drawn % n_cols) < 0]
        accepted = np.unique(np.concatenate([accepted, drawn]))
    accepted = rng.permutation(accepted)[:size]
    return accepted // n_cols, accepted % n_cols
