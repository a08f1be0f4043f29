"""Count tables that are kept between calls, for the values of new rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.count_tables import CountTables, tabulate_values
from hcpf.core.kernels import GRID, ROWS, SHIFT, aligned_zeros
from hcpf.core.value_model import ValueModel

_MAX_VALUES = 512  # values whose table rows are kept; a row has about 20 kB
_MAX_WEIGHTS = 1 << 20  # weights of all kept rows together, 8 MB
_N_SPREAD = 128  # values that represent an interval
_SPARE = 4.0  # factor by which an interval extends beyond the values of a call
_SMALLEST, _LARGEST = 1e-200, 1e200  # ends of an interval


class _Kept(NamedTuple):
    """Tables, and where the values are found in them; replaced as a whole, since threads share it.

    ``row`` is the row of each of the ``values`` (ascending) in tables with one row per value; None
    for other tables.
    """

    tables: CountTables
    values: FloatArray
    row: NDArray[np.int64] | None

    def locate(self, values: FloatArray) -> FloatArray:
        """Return the coordinates of values; NaN for those that the tables do not serve."""
        if self.row is None:
            return self.tables.locate(values)
        position = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[position] == values, self.row[position], np.nan)


class TableCache:
    """The count tables of one value model, which grow with the values asked for.

    Where there is one row per distinct value, rows of new values are appended. Where one table
    serves an interval of values, a value beyond it makes a wider one. The tables of too many values
    are made for the call alone.
    """

    def __init__(self, value_model: ValueModel, max_count: int | None) -> None:
        self._value_model, self._max_count = value_model, max_count
        self._kept: _Kept | None = None
        is_spread = not (value_model.element.support.discrete or value_model.hurdle)
        self._ends: FloatArray | None = np.zeros(0) if is_spread else None

    def __reduce__(self) -> Any:
        return TableCache, (self._value_model, self._max_count)

    def tables_for(self, values: FloatArray) -> tuple[CountTables, NDArray[np.float32]]:
        """Return tables that serve the values, and the coordinate of each of them.

        Their ``constant`` is not that of the values.
        """
        kept = self._kept
        if kept is None or np.isnan(coordinate := kept.locate(values)).any():
            distinct = np.unique(values)
            if len(distinct) > _MAX_VALUES:
                return tabulate_values(self._value_model, values, max_count=self._max_count)
            kept = self._extended(kept, distinct)
            coordinate = kept.locate(values)
        return kept.tables, coordinate.astype(np.float32)

    def _extended(self, kept: _Kept | None, distinct: FloatArray) -> _Kept:
        """Return tables that serve the distinct values too, and keep them unless they are large."""
        if self._ends is not None:
            spread = self._spread(self._ends, distinct)
            wider = self._tabulate(np.union1d(spread, distinct))
            if wider.tables.arrays.mode in (SHIFT, GRID):
                self._ends, self._kept = spread[[0, -1]], wider
                return wider
            self._ends = None  # n is all but known: there is a row per value instead
        if kept is None or not _fits(kept, len(distinct)):
            kept = self._tabulate(distinct)
        else:
            new = distinct[np.isnan(kept.locate(distinct))]
            kept = _joined(kept, self._tabulate(new)) or self._tabulate(
                np.union1d(kept.values, new)
            )
        if _fits(kept):
            self._kept = kept
        return kept

    def _tabulate(self, distinct: FloatArray) -> _Kept:
        tables = tabulate_values(self._value_model, distinct, max_count=self._max_count)[0]
        has_rows = tables.arrays.mode == ROWS and not self._value_model.hurdle
        return _Kept(tables, distinct, np.arange(len(distinct)) if has_rows else None)

    def _spread(self, ends: FloatArray, values: FloatArray) -> FloatArray:
        """Return values over an interval that holds the ends and reaches beyond the values."""
        low, high = float(values.min()), float(values.max())
        if self._value_model.element.support.lowest >= 0.0:
            low, high = max(low / _SPARE, _SMALLEST), min(high * _SPARE, _LARGEST)
            return np.geomspace(min([low, *ends]), max([high, *ends]), _N_SPREAD)
        size = min(_SPARE * max(abs(low), abs(high)), _LARGEST)
        return np.linspace(min([-size, *ends]), max([size, *ends]), _N_SPREAD)


def _fits(kept: _Kept, n_more: int = 0) -> bool:
    """Whether tables, with some values more, are small enough to be kept."""
    n_weights = len(kept.tables.arrays.series)
    return len(kept.values) + n_more <= _MAX_VALUES and n_weights <= _MAX_WEIGHTS


def _joined(kept: _Kept, more: _Kept) -> _Kept | None:
    """Return tables with the rows of both; None where there is not one row per value."""
    first, second = kept.tables.arrays, more.tables.arrays
    shapes = first.mean_table.shape[1:], second.mean_table.shape[1:]
    if kept.row is None or more.row is None or shapes[0] != shapes[1]:
        return None
    n_rows = len(first.mean_table)
    mean_table = aligned_zeros(n_rows + len(second.mean_table), *shapes[0])
    mean_table[:n_rows], mean_table[n_rows:] = first.mean_table, second.mean_table
    by_row = ("log_table", "least", "more", "series")
    both = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in by_row}
    start = np.concatenate([first.start, first.start[-1] + second.start[1:]])
    arrays = first._replace(mean_table=mean_table, start=start, **both)
    values = np.concatenate([kept.values, more.values])
    row = np.concatenate([kept.row, len(kept.row) + more.row])
    order = np.argsort(values)
    limits = kept.tables.max_log2_rate, more.tables.max_log2_rate
    tables = CountTables(
        arrays, kept.tables.log_normalizer, 0.0, np.concatenate(limits), kept.tables.locate
    )
    return _Kept(tables, values[order], row[order])
