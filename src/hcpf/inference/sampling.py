"""Drawing held-out entries and missing pairs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.errors import InputError

_FEW = 1 << 22  # cells that are listed one by one


def hold_out(matrix: Csr, share: float, rng: np.random.Generator) -> tuple[Csr, Csr]:
    """Split the stored entries at random: the rest, and about ``share`` of them."""
    size = round(share * matrix.nnz)
    if size == 0 or size == matrix.nnz:
        raise InputError(
            f"validation_fraction={share:g} of {matrix.nnz} entries leaves nothing on one side."
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
    """Distinct pairs that no given matrix stores, uniform and in random order.

    Fewer than ``size`` are returned where fewer exist.
    """
    n_rows, n_cols = matrix.shape
    taken = stored_keys(matrix, *also)
    cells = n_rows * n_cols
    size = min(size, cells - len(taken))
    if cells <= _FEW:
        absent = np.setdiff1d(np.arange(cells), taken, assume_unique=True)
        found = rng.choice(absent, size, replace=False)
        return found // n_cols, found % n_cols
    found = np.zeros(0, dtype=np.int64)
    while len(found) < size:
        drawn = rng.integers(0, cells, int(1.2 * (size - len(found))) + 16)
        place = np.minimum(np.searchsorted(taken, drawn), max(len(taken) - 1, 0))
        drawn = drawn[taken[place] != drawn] if len(taken) else drawn
        found = np.unique(np.concatenate([found, drawn]))
    found = rng.permutation(found)[:size]
    return found // n_cols, found % n_cols


def stored_keys(*matrices: Csr | None) -> NDArray[np.int64]:
    """The keys of all pairs that some matrix stores, sorted."""
    return np.unique(np.concatenate([pair_keys(m) for m in matrices if m is not None]))


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
