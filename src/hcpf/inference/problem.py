"""The training data in the form the kernels read: rows, their transpose, blocks, patterns."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.elements.base import Element
from hcpf.inference.kernels import Entries, Local, Pattern
from hcpf.inference.local import LocalStep, local_step

BLOCKS = 128
"""Fixed blocks of rows: the unit of parallel work, whatever the number of threads."""


@dataclass(frozen=True, eq=False)
class Side:
    """The entries seen from one side, with the pairs that enter its rates one by one."""

    entries: Entries
    pattern: Pattern
    blocks: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.entries.start)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of entries in each row."""
        return self.entries.stop - self.entries.start

    @property
    def owner(self) -> NDArray[np.int64]:
        """The row of every entry."""
        return np.repeat(np.arange(self.size), self.degrees)


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a solver needs to know about the data; arrays are never changed."""

    users: Side
    items: Side
    local: LocalStep
    element: Element
    train_on: str
    n_observed: int
    sum_of_values: float
    order: NDArray[np.int64] | None = None
    """Row r of the problem is user order[r] of the data; None where nothing was reordered."""

    @property
    def tables(self) -> Local:
        """The kernels' tables of the local step."""
        return self.local.local


def make_problem(
    matrix: Csr,
    element: Element,
    *,
    train_on: str = "full",
    exclude: Csr | None = None,
    order: NDArray[np.int64] | None = None,
    n_truncation: int | None = None,
    reach: FloatArray | None = None,
) -> Problem:
    """Lay out a canonical CSR matrix for training; ``exclude`` holds pairs to leave out."""
    step = local_step(element, matrix.data, n_truncation, reach)
    working = sparse.csr_array(
        (step.coordinate, matrix.indices.astype(np.int32, copy=False), matrix.indptr),
        shape=matrix.shape,
    )
    if order is not None:
        working = working[order]
        exclude = None if exclude is None else exclude[order]
    transposed = working.tocsc()
    users, items = _entries(working), _entries(transposed)
    if train_on == "observed":
        patterns = _pattern(working, 1.0), _pattern(transposed, 1.0)
    elif exclude is not None and exclude.nnz:
        exclude = sparse.csr_array(exclude)
        patterns = _pattern(exclude, -1.0), _pattern(exclude.tocsc(), -1.0)
    else:
        patterns = _no_pattern(matrix.shape[0]), _no_pattern(matrix.shape[1])
    return Problem(
        users=Side(users, patterns[0], row_blocks(users)),
        items=Side(items, patterns[1], row_blocks(items)),
        local=replace(step, coordinate=users.coordinate),
        element=element,
        train_on=train_on,
        n_observed=matrix.nnz,
        sum_of_values=float(matrix.data.sum(dtype=np.float64)),
        order=order,
    )


def row_blocks(entries: Entries, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
    """Boundaries of at most BLOCKS blocks of rows with about the same work in each."""
    last = len(entries.start) if last is None else last
    work = np.cumsum(entries.stop[first:last] - entries.start[first:last] + 4)
    if last <= first:
        return np.array([first, first], dtype=np.int64)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], BLOCKS + 1)[1:-1], side="right")
    return np.unique(np.concatenate([[first], first + cuts, [last]])).astype(np.int64)


def _entries(matrix: Csr) -> Entries:
    data = np.ascontiguousarray(matrix.data, dtype=np.float32)
    return Entries(*_row_bounds(matrix), _index(matrix), data)


def _pattern(matrix: Csr, sign: float) -> Pattern:
    return Pattern(*_row_bounds(matrix), _index(matrix), sign)


def _row_bounds(matrix: Csr) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pointer = matrix.indptr.astype(np.int64)
    return pointer[:-1], pointer[1:]


def _index(matrix: Csr) -> NDArray[np.int32]:
    # Numba compiles every kernel once more for read-only arrays: a copy is cheaper.
    return np.require(matrix.indices, np.int32, ["C", "W"])


def _no_pattern(rows: int) -> Pattern:
    nothing = np.zeros(rows, dtype=np.int64)
    return Pattern(nothing, nothing, np.zeros(0, dtype=np.int32), 0.0)
