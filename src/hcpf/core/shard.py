"""What one worker holds: its users along both axes, and what all workers share.

A ``Shard`` has the layouts by user and by item, the tables, totals and the values. ``ShardData`` is
its raw matrix, and ``ShardSource`` lays it out for a value model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.axis import NO_EXPOSURE, Axis, Exposure
from hcpf.core.collective import LOCAL, Collective, sum_scalar
from hcpf.core.count_tables import CountTables, make_tables, tabulate_values
from hcpf.core.kernels import Entries, ListedPairs
from hcpf.core.layout import (
    Layout,
    UserOrder,
    entries_of,
    listed_pairs,
    none_listed,
    row_blocks,
    transposed,
)
from hcpf.core.stored_layout import StoredEntries
from hcpf.core.tabulation import AllValues
from hcpf.core.threads import run_in_parallel
from hcpf.core.value_model import ValueModel
from hcpf.data.sampling import row_of
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.elements.base import Element

_CHUNK = 1 << 16  # entries counted at once
_WORK = 16
"""The cost of one entry in ``weighted_by_item``, in multiply-adds."""


@dataclass(frozen=True, eq=False)
class ShardData:
    """The users of one worker: their entries, and their pairs that are excluded."""

    matrix: Csr
    excluded: Csr | None
    numbers: NDArray[np.int64]
    """Their numbers among the users of all workers, ascending."""
    n_users: int
    """The number of users of all workers."""
    exposure: Exposure = NO_EXPOSURE
    """Exposures of the worker's users and of all items."""

    @classmethod
    def whole(
        cls, matrix: Csr, excluded: Csr | None = None, exposure: Exposure = NO_EXPOSURE
    ) -> "ShardData":
        """Return the shard of a single worker."""
        n_users = matrix.shape[0]
        return cls(matrix, excluded, np.arange(n_users), n_users, exposure)

    def sample_entries(
        self, max_entries: int, comm: Collective
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Return the worker's part of a sample of all entries, which are counted by user.

        The sample is spread evenly, and the same whatever the number of workers. Given are the
        users, by their position in the shard, the items and the values.
        """
        first, n_entries = self.entry_numbers(comm)
        sample = np.linspace(0, n_entries - 1, min(n_entries, max_entries)).astype(np.int64)
        entry, matrix = self.own_entries(sample, first), self.matrix
        return row_of(matrix, entry), matrix.indices[entry].astype(np.int64), matrix.data[entry]

    def entry_numbers(self, comm: Collective) -> tuple[NDArray[np.int64], int]:
        """Return the number of each own user's first entry among all, and that of all entries."""
        pointer = self.matrix.indptr.astype(np.int64)
        if comm.size == 1:
            return pointer[:-1], int(pointer[-1])
        # Users with consecutive numbers make a run. Workers exchange runs, which are few where
        # shards are of neighbors, instead of users.
        begins = np.flatnonzero(np.diff(self.numbers, prepend=-2) != 1)
        ends = np.append(pointer[begins], pointer[-1])
        sizes = ends[1:] - ends[:-1]
        starts, sizes = comm.gather(self.numbers[begins]), comm.gather(sizes)
        order = np.argsort(starts)
        before = np.cumsum(sizes[order]) - sizes[order]
        own = before[np.searchsorted(starts[order], self.numbers[begins])]
        run = np.searchsorted(begins, np.arange(len(self.numbers)), side="right") - 1
        return own[run] + pointer[:-1] - pointer[begins][run], int(sizes.sum())

    def own_entries(
        self, numbers: NDArray[np.int64], first: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the positions of those of some entries that are the worker's.

        Entries are given by number among all; ``first`` is that of ``entry_numbers``.
        """
        pointer = self.matrix.indptr.astype(np.int64)
        user = np.searchsorted(first, numbers, side="right") - 1
        entry = pointer[user] + numbers - first[user]
        return entry[(user >= 0) & (entry < pointer[user + 1])]


class Values:
    """The values themselves, for row-specific means; rates are read from coordinates instead."""

    def __init__(self, matrix: Csr, order: NDArray[np.int64] | None, comm: Collective) -> None:
        self._matrix, self._order, self._comm = matrix, order, comm
        # Not cached_property: its lock (until Python 3.11) would stop workers that are threads.
        self._by_item: FloatArray | None = None
        self._item_degrees: NDArray[Any] | None = None
        self._unit: float | None = None

    def sums(self, axis: Axis) -> FloatArray:
        """Return the sum of each row's values."""
        if axis is Axis.USERS:
            return self._by_user
        if self._by_item is None:
            total = np.zeros(self._matrix.shape[1])
            for part in self._chunks():  # one after the other: the same sums as all at once
                np.add.at(total, self._matrix.indices[part], self._matrix.data[part])
            self._by_item = self._comm.sum(total)
        return self._by_item

    def weighted_by_item(self, weight: FloatArray) -> FloatArray:
        """Return the sum of each user's values, each times the weight of its item."""
        sums: list[FloatArray] = []
        for pointer, index, data in _arrays_of(self._matrix):
            out, work = np.empty(len(pointer) - 1), _WORK * len(index)
            arguments = pointer[:-1], pointer[1:], index, data, weight, out
            run_in_parallel(kernels.weigh_values, len(out), *arguments, work=work)
            sums.append(out)
        all_sums = sums[0] if len(sums) == 1 else np.concatenate(sums)
        return all_sums if self._order is None else all_sums[self._order]

    def degrees(self, axis: Axis) -> NDArray[Any]:
        """Return the number of entries of each row."""
        if axis is Axis.USERS:
            degrees = np.diff(self._matrix.indptr)
            return degrees if self._order is None else degrees[self._order]
        if self._item_degrees is None:
            own, index = np.zeros(self._matrix.shape[1], np.int64), self._matrix.indices
            for part in self._chunks():  # bincount copies what it counts to int64
                own += np.bincount(index[part], minlength=len(own))
            self._item_degrees = self._comm.sum(own)
        return self._item_degrees

    @property
    def unit(self) -> float:
        """What values are measured in where they are kept as float32: 1 if they are float32."""
        if self._unit is None:
            data, size = self._matrix.data, 0.0
            if data.dtype != np.float32:
                sizes = (float(np.abs(data[part]).max()) for part in self._chunks())
                size = max(sizes, default=0.0)
            size = float(self._comm.max(np.array([size]))[0])
            self._unit = float(2.0 ** np.floor(np.log2(size))) if size > 0 else 1.0
        return self._unit

    def in_units(self) -> NDArray[np.float32]:
        """Return the values as the kernels weigh them for theta; float32 is not copied."""
        data: NDArray[Any] = np.require(self._matrix.data, None, ["C", "W"])
        return self.as_units(data)

    def as_units(self, data: NDArray[Any]) -> NDArray[np.float32]:
        """Return some values as the kernels weigh them."""
        return data if data.dtype == np.float32 else (data / self.unit).astype(np.float32)

    def sum_of_products(self, users: FloatArray, items: FloatArray) -> float:
        """Return the sum over all entries of a number of the user times one of the item."""
        order, n_before, total = self._order, 0, 0.0
        if order is not None and isinstance(self._matrix, StoredMatrix):
            users, order = users[np.argsort(order)], None  # files are read in their own order
        for pointer, index, _ in _arrays_of(self._matrix):
            start, stop = pointer[:-1], pointer[1:]
            if order is not None:
                start, stop = start[order], stop[order]
            sums, blocks = np.zeros(1), np.array([0, len(start)])
            rows, columns = users[n_before : n_before + len(start), None], items[:, None]
            kernels.listed_rates(0, 1, start, stop, index, rows, columns, blocks, sums)
            n_before, total = n_before + len(start), total + float(sums[0])
        return sum_scalar(self._comm, total)

    @cached_property
    def _by_user(self) -> FloatArray:
        return self.weighted_by_item(np.ones(self._matrix.shape[1]))

    def _chunks(self) -> Iterator[slice]:
        for first in range(0, self._matrix.nnz, _CHUNK):
            yield slice(first, min(first + _CHUNK, self._matrix.nnz))


def _arrays_of(matrix: Csr) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], FloatArray]]:
    """Yield pointers, columns and values as the kernels want them, shard by shard."""
    if isinstance(matrix, StoredMatrix):
        yield from ((shard.pointer, shard.index, shard.value) for shard in matrix.shards)
        return
    index = np.require(matrix.indices, np.int32, ["C", "W"])
    yield matrix.indptr.astype(np.int64), index, np.require(matrix.data, None, ["C", "W"])


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

    def exposure(self, axis: Axis) -> FloatArray | None:
        """Return the exposures of the rows of the layout of one axis."""
        exposure, order = self.data.exposure, self.order.order
        return (exposure if order is None else exposure.of_users(order)).axis(axis)

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
        """Whether most pairs trained on are observed; False if only observed ones are."""
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

    @classmethod
    def alone(
        cls, data: ShardData, max_count: int | None = None, tempering: float = 1.0
    ) -> "ShardSource":
        """Return that of a single worker, with users in the order of the data."""
        return cls(
            data, UserOrder.of(data.numbers, data.n_users, None), LOCAL, max_count, tempering
        )

    def lay_out(self, value_model: ValueModel, max_log2_rate: FloatArray | None = None) -> Shard:
        """Lay out the data for a value model, with tables that serve rates up to a largest."""
        matrix, totals = self.data.matrix, self._totals()
        values = Values(matrix, self.order.order, self.comm)
        if isinstance(matrix, StoredMatrix):
            tables, users, items = self._on_disk(value_model, values, max_log2_rate)
        else:
            tables, users, items = self._in_memory(value_model, values, max_log2_rate)
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

    def _in_memory(
        self, value_model: ValueModel, values: Values, max_log2_rate: FloatArray | None
    ) -> tuple[CountTables, Entries, Entries]:
        """Return the tables, and the entries by user and by item."""
        matrix = self.data.matrix
        tables, coordinate = tabulate_values(
            value_model, matrix.data, self.comm, self.max_count, max_log2_rate
        )
        weighed = values.in_units() if value_model.weighs_values else None
        users = entries_of(matrix, coordinate, self.order.order, weighed)
        return tables, users, transposed(users, matrix.shape[1])

    def _on_disk(
        self, value_model: ValueModel, values: Values, max_log2_rate: FloatArray | None
    ) -> tuple[CountTables, Entries, Entries]:
        """Return the same of entries that stay in files."""
        stored, everything = self._stored, AllValues(self.data.matrix.data, self.comm)
        tables = make_tables(value_model, everything, self.max_count, max_log2_rate)

        def locate(part: NDArray[Any]) -> NDArray[Any]:
            return tables.locate(np.asarray(part, np.float64))

        columns = [locate, values.as_units] if value_model.weighs_values else [locate]
        by_user = [stored.by_user(column) for column in columns]
        by_item = [stored.by_item(*pair) for pair in zip(columns, by_user, strict=True)]
        nothing = [np.zeros(0, np.float32)] * (2 - len(columns))
        users = Entries(*stored.ends, stored.index, *by_user, *nothing)
        items = Entries(*stored.item_ends, stored.item_index, *by_item, *nothing)
        return tables, users, items

    @cached_property
    def _stored(self) -> StoredEntries:
        """The entries in files, whose indices stay the same for all value models."""
        return StoredEntries(self.data.matrix, self.order.order)

    def _totals(self) -> Totals:
        matrix, excluded = self.data.matrix, self.data.excluded
        n_excluded = 0 if excluded is None else excluded.nnz
        total = sum_of_values(matrix)
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
            return listed_pairs(users, 1.0), listed_pairs(items, 1.0)
        if totals.n_excluded and excluded is not None:
            rows = entries_of(excluded, np.zeros(excluded.nnz, np.float32), self.order.order)
            return listed_pairs(rows, -1.0), listed_pairs(transposed(rows, shape[1]), -1.0)
        return none_listed(shape[0]), none_listed(shape[1])


def sum_of_values(matrix: Csr) -> float:
    """Return the sum of the values of all entries."""
    if isinstance(matrix, StoredMatrix):
        return sum(float(values.sum(dtype=np.float64)) for _, _, values in matrix.chunks())
    return float(matrix.data.sum(dtype=np.float64))
