"""A summary of data: size, entries per user and item, values, elements that apply, warnings."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.data.interactions import Interactions
from hcpf.elements import ALL

_MAX_BINS = 12
_LOG_BIN_RATIO = 50.0  # largest value over the median, from which bins grow by a factor
_NEARLY_CONSTANT = 0.95  # share of the most frequent value
_DENSE = 0.4  # share of the pairs that are observed
_HEAVY_TAIL = 0.5  # share of the total that 1% of the values hold
_MIN_TAIL_VALUES = 200  # fewer values have no meaningful 1%
_OUTLIER_RATIO = 1000.0  # largest value over the median
_MIN_ROWS = 20  # fewer users or items dominate without being unusual
_DOMINANT = 0.1  # share of the total that belongs to one user or item
_ODD_CODES = 0.05  # share of the items whose ids may lack digits that all others have
_MAX_SHOWN = 5
_MANY_SINGLES = 0.3  # share of rows with one entry


@dataclass(frozen=True)
class RowCounts:
    """Numbers of entries per user or per item."""

    median: float
    max: int
    empty: int
    """Rows without an entry."""
    single: int
    """Rows with one entry."""


@dataclass(frozen=True)
class ValueRange:
    """The distribution of the values of the entries."""

    min: float
    median: float
    mean: float
    percentile_99: float
    max: float
    integer: bool
    """Whether all values are integers."""


@dataclass(frozen=True)
class Bin:
    """A bin of a histogram; ``low`` and ``high`` are equal where it holds a single value."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class DataSummary:
    """What `summarize` returns."""

    users: int
    items: int
    observed: int
    sparsity: float
    repeated_rows: int
    entries_per_user: RowCounts
    entries_per_item: RowCounts
    values: ValueRange
    histogram: list[Bin]
    elements: list[str]
    """Names of the elements whose support contains all values."""
    warnings: list[str]
    """Properties of the data that affect the model, each with what can be done about it."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists and numbers."""
        return asdict(self)


def summarize(data: Interactions, repeated_rows: int = 0) -> DataSummary:
    """Summarize data before a model is fitted to them.

    Parameters
    ----------
    data : Interactions
        At least one entry.
    repeated_rows : int, default 0
        Rows of a file that repeated a pair and were merged.

    Examples
    --------
    >>> data = Interactions.from_arrays(["ann", "bob"], ["tea", "tea"], [2, 2])
    >>> summarize(data).warnings[0]
    "every value is 2: only which pairs are observed can be learned. Use element='presence'."
    """
    values = data.values.astype(np.float64)
    low, median, percentile_99, high = np.quantile(values, [0.0, 0.5, 0.99, 1.0]).tolist()
    return DataSummary(
        users=data.n_users,
        items=data.n_items,
        observed=data.n_observed,
        sparsity=data.sparsity,
        repeated_rows=repeated_rows,
        entries_per_user=_row_counts(_entries_per_user(data)),
        entries_per_item=_row_counts(_entries_per_item(data)),
        values=ValueRange(
            low, median, float(values.mean()), percentile_99, high,
            bool(np.all(values == np.floor(values))),
        ),
        histogram=histogram(values),
        elements=[element.name for element in ALL if np.all(element.support.contains(values))],
        warnings=list(_warnings(data, values, repeated_rows)),
    )  # fmt: skip


def _entries_per_user(data: Interactions) -> NDArray[np.integer[Any]]:
    return np.diff(data.matrix.indptr)


def _entries_per_item(data: Interactions) -> NDArray[np.integer[Any]]:
    return np.bincount(data.matrix.indices, minlength=data.n_items)


def _row_counts(counts: NDArray[np.integer[Any]]) -> RowCounts:
    return RowCounts(
        float(np.median(counts)), int(counts.max()), int(np.sum(counts == 0)),
        int(np.sum(counts == 1)),
    )  # fmt: skip


def histogram(values: FloatArray) -> list[Bin]:
    """Return counts per value if there are few values; else in equal or in growing bins."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _MAX_BINS:
        pairs = zip(distinct.tolist(), counts.tolist(), strict=True)
        return [Bin(value, value, count) for value, count in pairs]
    low, high = float(distinct[0]), float(distinct[-1])
    if low > 0 and high > _LOG_BIN_RATIO * float(np.median(values)):
        edges = np.unique(_round_to_two_digits(np.geomspace(low, high, _MAX_BINS + 1)))
    else:
        edges = np.linspace(low, high, _MAX_BINS + 1)
    edges[0], edges[-1] = low, high  # rounding must not lose any value
    counts, _ = np.histogram(values, edges)
    bounds = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [Bin(*ends, count) for ends, count in zip(bounds, counts.tolist(), strict=True)]


def _round_to_two_digits(edges: FloatArray) -> FloatArray:
    scale = 10.0 ** (np.floor(np.log10(edges)) - 1)
    return np.round(edges / scale) * scale


def _warnings(data: Interactions, values: FloatArray, repeated_rows: int) -> Iterator[str]:
    if repeated_rows:
        rows = "row repeats" if repeated_rows == 1 else "rows repeat"
        yield f"{repeated_rows:,} {rows} a pair: pass duplicates='sum', 'mean' or 'last'."
    yield from _value_warnings(values)
    if data.density > _DENSE and np.ptp(values):
        yield (
            f"dense: {data.density:.1%} of all pairs are observed, which makes a value a sum of "
            "many elements. Try hurdle=True, a single element; element='auto' compares both."
        )
    yield from _row_warnings(data)
    yield from _code_warnings(data)


def _value_warnings(values: FloatArray) -> Iterator[str]:
    distinct, counts = np.unique(values, return_counts=True)
    mode, share = distinct[np.argmax(counts)], counts.max() / len(values)
    if len(distinct) == 1:
        yield (
            f"every value is {mode:g}: only which pairs are observed can be learned. Use "
            "element='presence'."
        )
    elif share > _NEARLY_CONSTANT:
        yield (
            f"nearly constant: {share:.1%} of the values are {mode:g}. element='presence' may "
            "predict as well."
        )
    if values.min() < 0 or values.sum() <= 0:
        return
    ratio = float(values.max() / max(float(np.median(values)), 1e-300))
    top = np.sort(values)[-max(1, len(values) // 100) :]
    share = float(top.sum() / values.sum())
    if ratio >= _OUTLIER_RATIO or (share > _HEAVY_TAIL and len(values) >= _MIN_TAIL_VALUES):
        yield (
            f"heavy tail: 1% of the values hold {share:.1%} of the total, and the largest is "
            f"{ratio:,.0f} times the median. Try inverse_gaussian, or cap the largest values."
        )


def _row_warnings(data: Interactions) -> Iterator[str]:
    for word, other, n_rows in (("user", "items", data.n_users), ("item", "users", data.n_items)):
        if n_rows == 1:
            yield f"there is one {word} only: nothing tells which {other} go together."
    for word, axis, ids in (("user", 1, data.users), ("item", 0, data.items)):
        totals = np.abs(data.matrix).sum(axis=axis)
        largest = int(np.argmax(totals))
        share = float(totals[largest] / max(totals.sum(), 1e-300))
        if len(ids) >= _MIN_ROWS and share > _DOMINANT:
            yield f"one {word}, {ids[largest]}, has {share:.1%} of the total."
    for word, counts in (("users", _entries_per_user(data)), ("items", _entries_per_item(data))):
        empty, single = int(np.sum(counts == 0)), float(np.mean(counts == 1))
        if empty:
            yield f"{empty:,} {word} have no entry: nothing can be learned about them."
        if single > _MANY_SINGLES:
            yield f"{single:.1%} of the {word} have one entry: little can be learned about them."


def _code_warnings(data: Interactions) -> Iterator[str]:
    """Warn of ids such as POSTAGE among the codes of products."""
    if data.items.dtype.kind != "O" or data.n_items < _MIN_ROWS:
        return
    counts = _entries_per_item(data)
    odd = [i for i, code in enumerate(data.items) if not any(map(str.isdigit, str(code)))]
    if 0 < len(odd) <= _ODD_CODES * data.n_items:
        shown = [str(data.items[i]) for i in sorted(odd, key=lambda i: -counts[i])[:_MAX_SHOWN]]
        more = f" (of {len(odd)})" if len(odd) > _MAX_SHOWN else ""
        options = ", ".join(f"exclude_items={code!r}" for code in shown)
        yield (
            f"ids without a digit, unlike all other items: {', '.join(shown)}{more}. If these are "
            f"not products, exclude them: {options}."
        )
