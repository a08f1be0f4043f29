"""Drawing held-out entries and missing pairs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.errors import InputError


def hold_out(matrix: Csr, share: float, rng: np.random.Generator) -> tuple[Csr, Csr]:
    """Split the stored entries at random: the rest, and about ``share`` of them."""
    size = round(share * matrix.nnz)
    if size == 0 or size == matrix.nnz:
        raise InputError(
            f"Holding out a share {share:g} of {matrix.nnz} entries leaves nothing on one side."
        )
    chosen = np.zeros(matrix.nnz, dtype=np.bool_)
    chosen[rng.choice(matrix.nnz, size, replace=False)] = True
    return select(matrix, ~chosen), select(matrix, chosen)


def sample_missing(
    matrix: Csr,
    size: int,
    rng: np.random.Generator,
    *,
    also: Sequence[Csr | None] = (),
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct pairs that no given matrix stores, uniform; fewer where fewer exist."""
    n_rows, n_cols = matrix.shape
    stored = np.sort(np.concatenate([pair_keys(m) for m in (matrix, *also) if m is not None]))
    cells = n_rows * n_cols
    free = cells - len(np.unique(stored))
    size = min(size, free)
    found = np.zeros(0, dtype=np.int64)
    if free < 4 * size or cells < 1_000_000:
        absent = np.setdiff1d(np.arange(cells), stored) if cells <= 1 << 26 else None
        if absent is not None:
            found = rng.choice(absent, size, replace=False)
            return found // n_cols, found % n_cols
    while len(found) < size:
        drawn = rng.integers(0, cells, int(1.2 * (size - len(found))) + 16)
        place = np.minimum(np.searchsorted(stored, drawn), max(len(stored) - 1, 0))
        drawn = drawn[stored[place] != drawn] if len(stored) else drawn
        found = np.unique(np.concatenate([found, drawn]))
    found = rng.permutation(found)[:size]
    return found // n_cols, found % n_cols


def select(matrix: Csr, mask: NDArray[np.bool_]) -> Csr:
    """Keep the stored entries that ``mask`` marks."""
    before = np.concatenate([[0], np.cumsum(mask)])
    parts = (matrix.data[mask], matrix.indices[mask], before[matrix.indptr])
    return sparse.csr_array(parts, shape=matrix.shape)


def row_of_entries(matrix: Csr) -> NDArray[np.int64]:
    """The row of every stored entry."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def pair_keys(matrix: Csr) -> NDArray[np.int64]:
    """One number per stored pair, row * columns + column."""
    return row_of_entries(matrix) * matrix.shape[1] + matrix.indices
