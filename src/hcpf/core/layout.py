"""The entries of one worker as the kernels read them: by user, and by item.

A ``Layout`` holds the entries of one axis in CSR form, with the coordinate that finds each entry's
row of the count tables. The *listed pairs* are those whose means enter the rates one by one: the
excluded pairs (subtracted from the sums over all rows), or, when training on observed entries only,
the observed ones. A ``Shard`` is one worker's users along both axes together with what all workers
share: tables, totals and the values. ``ShardData`` is its raw matrix, ``ShardSource`` lays shards
out, and ``UserOrder`` shuffles users for minibatches.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL, Collective, sum_scalar
from hcpf.core.count_tables import CountTables, tabulate_values
from hcpf.core.kernels import Entries, ListedPairs
from hcpf.core.threads import run_in_parallel
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element

MAX_BLOCKS = 128
"""Fixed blocks of rows: the unit of parallel work, whatever the number of threads."""
_CHUNK = 1 << 16  # entries counted at once
_WORK = 16
"""The cost of one entry in ``weighted_by_item``, in multiply-adds."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The entries of the rows of one axis."""

    entries: Entries
    listed: ListedPairs
    blocks: NDArray[np.int64]
    """Boundaries of the blocks of rows that a half-step does: blocks[b] to blocks[b + 1]."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.entries.start)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The number of entries of each row."""
        return self.entries.stop - self.entries.start

    @property
    def work(self) -> float:
        """The size of a half-step over the blocks, in entries; a row counts as four."""
        first, last = self.blocks[0], self.blocks[-1]
        n_entries = int(np.sum(self.entries.stop[first:last] - self.entries.start[first:last]))
        return n_entries + 4.0 * (last - first)

    def owner(self, entry: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each of some entries, given by position."""
        rows = np.flatnonzero(self.degrees)
        rows = rows[np.argsort(self.entries.start[rows])]
        return rows[np.searchsorted(self.entries.start[rows], entry, side="right") - 1]

    def window(self, first: int, last: int) -> "Layout":
        """Return the same layout, of which a half-step does the rows ``first`` to ``last``."""
        return Layout(self.entries, self.listed, row_blocks(self.entries, first, last))

    def select(self, rows: NDArray[np.int64]) -> "Layout":
        """Return the layout of some of the rows."""
        entries = self.entries._replace(
            start=self.entries.start[rows], stop=self.entries.stop[rows]
        )
        listed = self.listed._replace(start=self.listed.start[rows], stop=self.listed.stop[rows])
        return Layout(entries, listed, row_blocks(entries))


@dataclass(frozen=True, eq=False)
class UserOrder:
    """How the users of a shard are ordered in its layout, and where they stand among all users."""

    order: NDArray[np.int64] | None
    """Row r of the layout is user ``order[r]`` of the shard; None keeps them as they are."""
    position: NDArray[np.int64]
    """The place of each row among all workers' users in their common order, ascending."""
    n_users: int
    """The number of users of all workers."""

    @classmethod
    def of(
        cls, numbers: NDArray[np.int64], n_users: int, permutation: NDArray[np.int64] | None
    ) -> "UserOrder":
        """Order users, given by their numbers among all, by a permutation of all of them."""
        if permutation is None:
            return cls(None, numbers, n_users)
        position = np.argsort(permutation)[numbers]
        order = np.argsort(position)
        return cls(order, position[order], n_users)

    def rows_of_users(self) -> NDArray[np.int64]:
        """Return the row of the layout of each user of the shard."""
        return np.arange(len(self.position)) if self.order is None else np.argsort(self.order)


@dataclass(frozen=True, eq=False)
class ShardData:
    """The users of one worker: their entries, and their pairs that are excluded."""

    matrix: Csr
    excluded: Csr | None
    numbers: NDArray[np.int64]
    """Their numbers among the users of all workers, ascending."""
    n_users: int
    """The number of users of all workers."""

    @classmethod
    def whole(cls, matrix: Csr, excluded: Csr | None = None) -> "ShardData":
        """Return the shard of a single worker."""
        n_users = matrix.shape[0]
        return cls(matrix, excluded, np.arange(n_users), n_users)

    def sample_entries(self, max_entries: int, comm: Collective) -> NDArray[np.int64]:
        """Return the worker's part of a sample of all entries, which are counted by user.

        The sample is spread evenly, and the same whatever the number of workers.
        """
        pointer = self.matrix.indptr.astype(np.int64)
        first = pointer[:-1]  # of each of the own users, among the entries of all
        if comm.size > 1:
            degrees = np.zeros(self.n_users, np.int64)
            degrees[comm.gather(self.numbers)] = comm.gather(np.diff(pointer))
            first = (np.cumsum(degrees) - degrees)[self.numbers]
            n_entries = int(degrees.sum())
        else:
            n_entries = int(pointer[-1])
        sample = np.linspace(0, n_entries - 1, min(n_entries, max_entries)).astype(np.int64)
        user = np.searchsorted(first, sample, side="right") - 1
        entry = pointer[user] + sample - first[user]
        return entry[(user >= 0) & (entry < pointer[user + 1])]


class Values:
    """The values themselves, for row-specific means; rates are read from coordinates instead."""

    def __init__(self, matrix: Csr, order: NDArray[np.int64] | None, comm: Collective) -> None:
        self._matrix, self._order, self._comm = matrix, order, comm
        # Not cached_property: its lock (until Python 3.11) would stop workers that are threads.
        self._by_item: FloatArray | None = None
        self._item_degrees: NDArray[Any] | None = None
        self._unit: float | None = None

    def at(self, entry: NDArray[np.int64]) -> FloatArray:
        """Return the values of some entries, given by position."""
        return self._matrix.data[entry]

    def sums(self, axis: Axis) -> FloatArray:
        """Return the sum of each row's values."""
        if axis is Axis.USERS:
            return self._by_user
        if self._by_item is None:
            index, data = self._arrays
            total = np.bincount(index, weights=data, minlength=self._matrix.shape[1])
            self._by_item = self._comm.sum(np.asarray(total, dtype=np.float64))
        return self._by_item

    def weighted_by_item(self, weight: FloatArray) -> FloatArray:
        """Return the sum of each user's values, each times the weight of its item."""
        start, stop = self._ends
        out, work = np.empty(len(start)), _WORK * self._matrix.nnz
        run_in_parallel(
            kernels.weigh_values, len(out), start, stop, *self._arrays, weight, out, work=work
        )
        return out

    def degrees(self, axis: Axis) -> NDArray[Any]:
        """Return the number of entries of each row."""
        if axis is Axis.USERS:
            start, stop = self._ends
            return stop - start
        if self._item_degrees is None:
            own, index = np.zeros(self._matrix.shape[1], np.int64), self._matrix.indices
            for first in range(0, len(index), _CHUNK):  # bincount copies what it counts to int64
                own += np.bincount(index[first : first + _CHUNK], minlength=len(own))
            self._item_degrees = self._comm.sum(own)
        return self._item_degrees

    @property
    def unit(self) -> float:
        """What values are measured in where they are kept as float32: 1 if they are float32."""
        if self._unit is None:
            data = self._matrix.data
            size = 0.0 if data.dtype == np.float32 else float(np.max(np.abs(data), initial=0.0))
            size = float(self._comm.max(np.array([size]))[0])
            self._unit = float(2.0 ** np.floor(np.log2(size))) if size > 0 else 1.0
        return self._unit

    def in_units(self) -> NDArray[np.float32]:
        """Return the values as the kernels weigh them for theta; float32 is not copied."""
        data: NDArray[Any] = self._arrays[1]
        unit = self.unit
        return data if data.dtype == np.float32 else (data / unit).astype(np.float32)

    def sum_of_products(self, users: FloatArray, items: FloatArray) -> float:
        """Return the sum over all entries of a number of the user times one of the item."""
        start, stop = self._ends
        sums, blocks = np.zeros(1), np.array([0, len(start)])
        index, rows, columns = self._arrays[0], users[:, None], items[:, None]
        kernels.listed_rates(0, 1, start, stop, index, rows, columns, blocks, sums)
        return sum_scalar(self._comm, float(sums[0]))

    @cached_property
    def _by_user(self) -> FloatArray:
        return self.weighted_by_item(np.ones(self._matrix.shape[1]))

    @cached_property
    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of each row of the layout begin and end."""
        pointer = self._matrix.indptr.astype(np.int64)
        start, stop = pointer[:-1], pointer[1:]
        return (start, stop) if self._order is None else (start[self._order], stop[self._order])

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int32], FloatArray]:
        """Columns and values as the kernels want them."""
        index = np.require(self._matrix.indices, np.int32, ["C", "W"])
        return index, np.require(self._matrix.data, None, ["C", "W"])


@dataclass(frozen=True)
class Totals:
    """Sizes over all workers."""

    n_users: int
    n_items: int
    n_entries: int
    n_excluded: int
    sum_of_values: float

    @property
    def is_dense(self) -> bool:
        """Whether most pairs that are not excluded are observed."""
        return mostly_observed(self.n_entries, (self.n_users, self.n_items), self.n_excluded)


@dataclass(frozen=True, eq=False)
class Shard:
    """One worker's users along both axes, with what all workers share; nothing here changes."""

    data: ShardData
    users: Layout
    items: Layout
    tables: CountTables
    value_model: ValueModel
    """With the element that the tables were made for."""
    totals: Totals
    values: Values
    order: UserOrder
    tempering: float
    """The power of the likelihood; 1 for the ordinary posterior."""

    def layout(self, axis: Axis) -> Layout:
        """Return the layout of one axis."""
        return self.users if axis is Axis.USERS else self.items

    @property
    def element(self) -> Element:
        """The element that the tables were made for."""
        return self.value_model.element

    @property
    def trains_on_missing(self) -> bool:
        """Whether missing pairs are data."""
        return self.value_model.train_on == "full"

    @property
    def is_dense(self) -> bool:
        """Whether most pairs that take part are observed; never where only observed ones do."""
        return self.trains_on_missing and self.totals.is_dense


def mostly_observed(n_observed: int, shape: tuple[int, int], n_excluded: int) -> bool:
    """Return whether more than half of the pairs that are not excluded are observed."""
    return n_observed > 0.5 * (float(shape[0]) * shape[1] - n_excluded)


@dataclass(frozen=True, eq=False)
class ShardSource:
    """All that a shard is laid out from but for the value model, which training changes."""

    data: ShardData
    order: UserOrder
    comm: Collective = LOCAL
    max_count: int | None = None
    tempering: float = 1.0

    def lay_out(self, value_model: ValueModel, max_log2_rate: FloatArray | None = None) -> Shard:
        """Lay out the data for a value model, with tables that serve rates up to a largest."""
        matrix, order, totals = self.data.matrix, self.order.order, self._totals()
        tables, coordinate = tabulate_values(
            value_model, matrix.data, self.comm, self.max_count, max_log2_rate
        )
        values = Values(matrix, order, self.comm)
        sharing = value_model.sharing
        weighed = values.in_units() if sharing is not None and sharing.weighs else None
        users = _entries(matrix, coordinate, order, weighed)
        items = _transposed(users, totals.n_items)
        listed = self._listed(value_model, totals, users, items)
        return Shard(
            data=self.data,
            users=Layout(users, listed[0], row_blocks(users)),
            items=Layout(items, listed[1], row_blocks(items)),
            tables=tables,
            value_model=value_model,
            totals=totals,
            values=values,
            order=self.order,
            tempering=self.tempering,
        )

    def _totals(self) -> Totals:
        matrix, excluded = self.data.matrix, self.data.excluded
        n_excluded = 0 if excluded is None else excluded.nnz
        total = float(matrix.data.sum(dtype=np.float64))
        sums = self.comm.sum(np.array([matrix.nnz, n_excluded, total], dtype=np.float64))
        return Totals(
            self.data.n_users, matrix.shape[1], int(sums[0]), int(sums[1]), float(sums[2])
        )

    def _listed(
        self, value_model: ValueModel, totals: Totals, users: Entries, items: Entries
    ) -> tuple[ListedPairs, ListedPairs]:
        """Return the pairs whose means enter the rates one by one, along both axes."""
        shape, excluded = self.data.matrix.shape, self.data.excluded
        if value_model.train_on == "observed":
            return _listed(users, 1.0), _listed(items, 1.0)
        if totals.n_excluded and excluded is not None:
            rows = _entries(excluded, np.zeros(excluded.nnz, np.float32), self.order.order)
            return _listed(rows, -1.0), _listed(_transposed(rows, shape[1]), -1.0)
        return _none_listed(shape[0]), _none_listed(shape[1])


def lay_out_rows(
    matrix: Csr,
    coordinate: NDArray[np.float32],
    value: NDArray[np.float32] | None,
    excluded: Csr | None,
    *,
    lists_entries: bool,
) -> Layout:
    """Lay out the rows of a matrix alone.

    The listed pairs are the entries themselves, or else the excluded pairs.
    """
    entries = _entries(matrix, coordinate, None, value)
    listed = _none_listed(matrix.shape[0])
    if lists_entries:
        listed = _listed(entries, 1.0)
    elif excluded is not None and excluded.nnz:
        nothing = np.zeros(excluded.nnz, np.float32)
        listed = _listed(_entries(excluded, nothing, None), -1.0)
    return Layout(entries, listed, row_blocks(entries))


def row_blocks(entries: Entries, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
    """Return boundaries of at most ``MAX_BLOCKS`` blocks of rows of about the same work."""
    last = len(entries.start) if last is None else last
    work = np.cumsum(entries.stop[first:last] - entries.start[first:last] + 4)
    if last <= first:
        return np.array([first, first], dtype=np.int64)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], MAX_BLOCKS + 1)[1:-1], side="right")
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


def _listed(entries: Entries, sign: float) -> ListedPairs:
    return ListedPairs(entries.start, entries.stop, entries.index, sign)


def _none_listed(n_rows: int) -> ListedPairs:
    nothing = np.zeros(n_rows, dtype=np.int64)
    return ListedPairs(nothing, nothing, np.zeros(0, dtype=np.int32), 0.0)
