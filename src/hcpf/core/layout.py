"""The training data in the form the kernels read: rows, their transpose, blocks, patterns."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.count_tables import LocalStep, local_step
from hcpf.core.kernels import Entries, Local, Pattern
from hcpf.core.threads import share
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element
from hcpf.elements.conjugate import Sharing

BLOCKS = 128
"""Fixed blocks of rows: the unit of parallel work, whatever the number of threads."""
_WORK = 16
"""Multiply-adds that take as long as a value and the weight of its column."""


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

    def owner(self, entry: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of some entries, given by position."""
        rows = np.flatnonzero(self.degrees)
        rows = rows[np.argsort(self.entries.start[rows])]
        return rows[np.searchsorted(self.entries.start[rows], entry, side="right") - 1]


@dataclass(frozen=True, eq=False)
class Values:
    """The values themselves, for elements that vary; rates are read from coordinates instead."""

    matrix: Csr
    order: NDArray[np.int64] | None

    def by_user(self, weight: FloatArray | None = None) -> FloatArray:
        """Sum of each user's values, each times the weight of its item; rows of the problem."""
        return self._by_user if weight is None else self._weigh(weight)

    def by_item(self) -> FloatArray:
        """Sum of each item's values."""
        return self._by_item

    @cached_property
    def unit(self) -> float:
        """What values are measured in where they are kept as float32: 1 if these are."""
        data = self.matrix.data
        size = 0.0 if data.dtype == np.float32 else float(np.max(np.abs(data), initial=0.0))
        return float(2.0 ** np.floor(np.log2(size))) if size > 0 else 1.0

    def in_units(self) -> NDArray[np.float32]:
        """The values as the kernels weigh them for theta; no copy where these are float32."""
        data: NDArray[Any] = self._arrays[1]
        return data if data.dtype == np.float32 else (data / self.unit).astype(np.float32)

    def count(self, users: bool) -> NDArray[np.int64]:
        """The number of entries of each user (a row of the problem), or of each item."""
        start, stop = self._ends
        return stop - start if users else self._item_count

    def sum_of_products(self, users: FloatArray, items: FloatArray) -> float:
        """Sum over the entries of a number of the user (a row of the problem) times the item's."""
        start, stop = self._ends
        sums, blocks = np.zeros(1), np.array([0, len(start)])
        index, rows, columns = self._arrays[0], users[:, None], items[:, None]
        kernels.pattern_rate(0, 1, start, stop, index, rows, columns, blocks, sums)
        return float(sums[0])

    @cached_property
    def _item_count(self) -> NDArray[np.int64]:
        return np.bincount(self._arrays[0], minlength=self.matrix.shape[1])

    @cached_property
    def _by_user(self) -> FloatArray:
        return self._weigh(np.ones(self.matrix.shape[1]))

    @cached_property
    def _by_item(self) -> FloatArray:
        index, data = self._arrays
        total: Any = np.bincount(index, weights=data, minlength=self.matrix.shape[1])
        return total

    @cached_property
    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of each row of the problem begin and end."""
        pointer = self.matrix.indptr.astype(np.int64)
        start, stop = pointer[:-1], pointer[1:]
        return (start, stop) if self.order is None else (start[self.order], stop[self.order])

    def _weigh(self, weight: FloatArray) -> FloatArray:
        start, stop = self._ends
        out, work = np.empty(len(start)), _WORK * self.matrix.nnz
        share(kernels.weigh_values, len(out), start, stop, *self._arrays, weight, out, work=work)
        return out

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int32], FloatArray]:
        """Columns and values as the kernels want them."""
        index = np.require(self.matrix.indices, np.int32, ["C", "W"])
        return index, np.require(self.matrix.data, None, ["C", "W"])


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a solver needs to know about the data; arrays are never changed."""

    users: Side
    items: Side
    local: LocalStep
    value_model: ValueModel
    n_observed: int
    sum_of_values: float
    values: Values
    weight: float = 1.0
    """How often the data count: the power of the likelihood, 1 for the posterior itself."""
    order: NDArray[np.int64] | None = None
    """Row r of the problem is user order[r] of the data; None where nothing was reordered."""

    @property
    def element(self) -> Element:
        """The element that the tables were made for."""
        return self.value_model.element

    @property
    def train_on(self) -> str:
        """Which pairs train: "full" or "observed"."""
        return self.value_model.train_on

    @property
    def is_dense(self) -> bool:
        """Whether most pairs that take part are observed; never where only observed ones do."""
        excluded = len(self.users.pattern.index) if self.users.pattern.sign < 0 else 0
        shape = self.users.size, self.items.size
        return self.train_on != "observed" and mostly_observed(self.n_observed, shape, excluded)

    @property
    def tables(self) -> Local:
        """The kernels' tables of the local step."""
        return self.local.local


def mostly_observed(n_observed: int, shape: tuple[int, int], n_excluded: int) -> bool:
    """Whether more than half of the pairs that are not excluded are observed."""
    return n_observed > 0.5 * (float(shape[0]) * shape[1] - n_excluded)


def make_problem(
    matrix: Csr,
    value_model: ValueModel,
    *,
    exclude: Csr | None = None,
    order: NDArray[np.int64] | None = None,
    n_truncation: int | None = None,
    reach: FloatArray | None = None,
    weight: float = 1.0,
) -> Problem:
    """Lay out a canonical CSR matrix for training; ``exclude`` holds pairs to leave out."""
    step = local_step(value_model, matrix.data, n_truncation, reach)
    values, sharing = Values(matrix, order), sharing_of(value_model)
    weighed = values.in_units() if sharing is not None and sharing.weighs else None
    users = _entries(matrix, step.coordinate, order, weighed)
    items = _transposed(users, matrix.shape[1])
    if value_model.train_on == "observed":
        patterns = _pattern(users, 1.0), _pattern(items, 1.0)
    elif exclude is not None and exclude.nnz:
        excluded = _entries(exclude, np.zeros(exclude.nnz, np.float32), order)
        patterns = _pattern(excluded, -1.0), _pattern(_transposed(excluded, matrix.shape[1]), -1.0)
    else:
        patterns = _no_pattern(matrix.shape[0]), _no_pattern(matrix.shape[1])
    sign = 0.0 if sharing is None else sharing.sign
    # In a hurdle model theta has no part in the rates.
    cross = 0.0 if value_model.hurdle else -float(value_model.element.kappa) * sign
    once = value_model.hurdle and sign != 0.0
    step = replace(step, local=step.local._replace(cross=cross, crosses_once=once))
    return Problem(
        users=Side(users, patterns[0], row_blocks(users)),
        items=Side(items, patterns[1], row_blocks(items)),
        local=step,
        value_model=value_model,
        n_observed=matrix.nnz,
        sum_of_values=float(matrix.data.sum(dtype=np.float64)),
        values=values,
        weight=weight,
        order=order,
    )


def sharing_of(value_model: ValueModel) -> Sharing | None:
    """Return how users and items share theta; None where not both have one."""
    conjugate = value_model.element.conjugate
    return conjugate.sharing if value_model.is_crossed and conjugate is not None else None


def row_blocks(entries: Entries, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
    """Boundaries of at most BLOCKS blocks of rows with about the same work in each."""
    last = len(entries.start) if last is None else last
    work = np.cumsum(entries.stop[first:last] - entries.start[first:last] + 4)
    if last <= first:
        return np.array([first, first], dtype=np.int64)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], BLOCKS + 1)[1:-1], side="right")
    return np.unique(np.concatenate([[first], first + cuts, [last]])).astype(np.int64)


def _entries(
    matrix: Csr,
    coordinate: NDArray[np.float32],
    order: NDArray[np.int64] | None,
    value: NDArray[np.float32] | None = None,
) -> Entries:
    """The rows of a matrix, in another order if one is given; the entries stay where they are."""
    pointer = matrix.indptr.astype(np.int64)
    start, stop = pointer[:-1], pointer[1:]
    if order is not None:
        start, stop = start[order], stop[order]
    # Numba compiles every kernel once more for read-only arrays: a copy is cheaper.
    index = np.require(matrix.indices, np.int32, ["C", "W"])
    value = np.zeros(0, np.float32) if value is None else value
    return Entries(start, stop, index, coordinate, value)


def _transposed(rows: Entries, n_columns: int) -> Entries:
    """The same entries by column, each column's in the order of the rows."""
    pointer = np.zeros(n_columns + 1, np.int64)
    np.cumsum(np.bincount(rows.index, minlength=n_columns), out=pointer[1:])
    columns = Entries(pointer[:-1], pointer[1:], *(np.empty_like(column) for column in rows[2:]))
    kernels.transpose(rows, pointer[:-1].copy(), columns)
    return columns


def _pattern(entries: Entries, sign: float) -> Pattern:
    return Pattern(entries.start, entries.stop, entries.index, sign)


def _no_pattern(rows: int) -> Pattern:
    nothing = np.zeros(rows, dtype=np.int64)
    return Pattern(nothing, nothing, np.zeros(0, dtype=np.int32), 0.0)
