"""Count tables by value: for discrete elements, and for continuous ones with few values.

Few distinct values have a table row each. Of many, as play counts have, only some do: E[n] and
log Z are smooth in log y where y is large, so the cubic through four rows serves the values
between. Where n follows y in steps there is no such cubic. Each value then keeps its weights, and
has a table row only if entries are many; otherwise they are summed directly.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray, IntArray
from hcpf.core.kernels import GRID, ROWS, TableArrays
from hcpf.core.tabulation import (
    MAX_WEIGHTS,
    OCTAVES,
    AllValues,
    Tabulated,
    chunks,
    cubic_pieces,
    last_count,
    nodes_of,
    number_values,
    octaves_of,
    pack,
    sum_rows,
    tabulate_rows,
)
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element

_DENSE = 64  # counts, from the smallest, that are computed one by one
_NODES = 20  # counts computed per block of larger counts; the others are interpolated
_MAX_BLOCK = 4096  # counts per block; blocks double in size up to it
_SMOOTH_ERROR = 1e-9  # of a polynomial between its nodes, relative to the weights


class RowWeights(NamedTuple):
    r"""Rows of :math:`\log p(y \mid n) - \log n!` for n = least, least + 1, ..."""

    series: FloatArray
    start: IntArray
    """Where each row begins in ``series``, and the end of the last."""
    least: FloatArray
    more: NDArray[np.bool_]
    """Whether larger n are possible."""

    @classmethod
    def smooth(
        cls, element: Element, y: FloatArray, least: FloatArray, last: FloatArray, most: FloatArray
    ) -> "RowWeights":
        """Compute the weights at the smallest n and at some of the others.

        A polynomial in n gives those of a block, n to 2n, from 20 of them. Singularities are no
        nearer than n = 0, so with Chebyshev's nodes its error is below 1e-13 of how much the
        weights change. Rows of an element for which this is not so, because some n are impossible
        for instance, are noticed between the nodes and computed at every n.
        """
        length, start = _extents(least, last)
        series, begin = np.empty(start[-1]), start[:-1]
        _fill(series, element, y, least, begin, np.minimum(length, _DENSE))
        first = _DENSE
        while first < length.max(initial=0):
            width = min(first, _MAX_BLOCK)
            reaches, size = length > first, np.minimum(length - first, width)
            # Near the largest possible n the weights are less smooth.
            is_smooth = reaches & (least + first + 2 * width <= most)
            whole, probes = np.flatnonzero(is_smooth), _probes(width)
            n = least[whole, None] + first + np.append(_nodes(width), probes)
            found = _log_weights(element, y[whole, None], n)
            rows = found[:, : -len(probes)] @ _polynomials(width)
            errors = np.abs(rows[:, probes] - found[:, -len(probes) :]).max(axis=1, initial=0.0)
            is_smooth[whole] = errors <= _SMOOTH_ERROR * (1.0 + np.abs(rows[:, 0]))
            for j, row in zip(whole, rows, strict=True):
                if is_smooth[j]:
                    series[begin[j] + first : begin[j] + first + size[j]] = row[: size[j]]
            rest = reaches & ~is_smooth
            chosen = y[rest], least[rest] + first, begin[rest] + first, size[rest]
            _fill(series, element, *chosen)
            first += width
        return cls(series, start, least, last < most)

    def row(self, j: int) -> FloatArray:
        """Return the weights of one row."""
        return self.series[self.start[j] : self.start[j + 1]]

    @classmethod
    def join(cls, rows: list[FloatArray], most: FloatArray) -> "RowWeights":
        """Put rows together that begin at n = 1."""
        length = np.array([len(row) for row in rows])
        start = np.concatenate([[0], np.cumsum(length)])
        return cls(np.concatenate(rows), start, np.ones(len(rows)), length < most)


def _extents(least: FloatArray, last: FloatArray) -> tuple[IntArray, IntArray]:
    length = (last - least + 1.0).astype(np.int64)
    return length, np.concatenate([[0], np.cumsum(length)])


def _fill(
    series: FloatArray,
    element: Element,
    y: FloatArray,
    first: FloatArray,
    begin: IntArray,
    length: IntArray,
) -> None:
    """Compute ``length`` weights of each row from n = ``first`` on, and put them at ``begin``."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    for part in chunks(total):
        place = np.arange(part.start, min(part.stop, total))
        row = np.searchsorted(ends, place, side="right")
        offset = place - (ends - length)[row]
        series[begin[row] + offset] = _log_weights(element, y[row], first[row] + offset)


def _log_weights(element: Element, y: FloatArray, n: FloatArray) -> FloatArray:
    return element.log_density_unchecked(y, n) - special.gammaln(n + 1.0)


@cache
def _nodes(width: int) -> FloatArray:
    """Integers from 0 to width - 1, next to Chebyshev's nodes."""
    cosines = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    return np.unique(np.rint(0.5 * (width - 1) * (1.0 + cosines)))


@cache
def _probes(width: int) -> IntArray:
    """Two neighboring integers in the middle that are not among the nodes."""
    others = np.setdiff1d(np.arange(width), _nodes(width).astype(np.int64))
    pairs = others[:-1][np.diff(others) == 1]
    first = pairs[np.argmin(np.abs(pairs - width // 2))]
    return np.array([first, first + 1])


@cache
def _polynomials(width: int) -> FloatArray:
    """Values at 0, ..., width - 1 of the polynomials that are 1 at one node and 0 at the others."""
    nodes, x = _nodes(width), np.arange(float(width))
    same = np.eye(len(nodes), dtype=np.bool_)
    gaps = np.where(same, 1.0, nodes[:, None] - nodes)
    factors = np.where(same[:, :, None], 1.0, (x - nodes[:, None]) / gaps[:, :, None])
    return np.prod(factors, axis=1)


logger = logging.getLogger("hcpf")

_FEW_WEIGHTS = 1 << 22  # weights of all rows together up to which the table serves the largest rate
_FEW_ROWS = 256  # distinct values up to which each has a table row
_MAX_GRID_ROWS = 512
_NODES_PER_ENTRY = 10.0  # table nodes per entry above which summing the entries directly is cheaper
_GROUP_STEP = 0.05  # width in log(1 + y) of a group of values with one largest n (no tables)
_SPARE_COUNT = 1.5
"""Factor of the largest n where nothing is tabulated, so that larger rates find their weights."""


def tabulate_by_value(
    value_model: ValueModel,
    values: AllValues,
    distinct: FloatArray,
    max_count: int | None,
    max_log2_rate: FloatArray | None,
    *,
    weights_only: bool = False,
) -> Tabulated:
    """Tabulate the distinct values of all workers, sorted; or only collect their weights."""
    largest = float(OCTAVES[1]) if max_log2_rate is None else max_log2_rate
    least, most = value_model.element.n_range(distinct)
    most = most if max_count is None else np.minimum(most, max_count)
    largest = np.broadcast_to(largest, distinct.shape).copy()
    rows = _Rows(value_model, values, distinct, least, most, largest)
    if len(distinct) <= _FEW_ROWS or not value_model.element.support.discrete:
        return rows.one_per_value()
    if weights_only:
        return rows.directly()
    return rows.some() or (rows.directly() if rows.are_many else rows.one_per_value())


@dataclass(frozen=True, eq=False)
class _Rows:
    """The distinct values with the n that they can have, and what the rows are to serve."""

    value_model: ValueModel
    values: AllValues
    distinct: FloatArray
    least: FloatArray
    most: FloatArray
    max_log2_rate: FloatArray

    def one_per_value(self) -> Tabulated:
        """Return tables with a row per value."""
        served, top = self._served(len(self.distinct))
        last = np.minimum(last_count(self.value_model.element, self.distinct, served), self.most)
        weights = self._weights(last, RowWeights.smooth)
        octaves = octaves_of(self.value_model, top)
        tables = tabulate_rows(weights.series, weights.start, weights.least, nodes_of(*octaves))
        return self._tabulated(pack(ROWS, *weights, octaves, tables), served)

    @property
    def are_many(self) -> bool:
        """Whether the values are so many, compared with the entries, that no table pays."""
        n_nodes = len(nodes_of(*octaves_of(self.value_model, OCTAVES[1])))
        return len(self.distinct) * n_nodes >= _NODES_PER_ENTRY * self.values.n_all

    def directly(self) -> Tabulated:
        """Return weights without a table."""
        last = np.minimum(_SPARE_COUNT * self._last_of_groups(), self.most)
        weights = self._weights(np.floor(last), RowWeights.smooth)
        return self._tabulated(pack(ROWS, *weights), self.max_log2_rate)

    def some(self) -> Tabulated | None:
        """Return tables with rows of some values; None if they would be too many."""
        if np.any(self.least != 1.0):
            return None  # of a grid, the kernels add 1 log x to what is tabulated
        served, top = self._served(_MAX_GRID_ROWS)
        # A row is read for values up to ``upper``: its weights must reach the rates of all of them.
        served = np.maximum.accumulate(served)
        octaves = octaves_of(self.value_model, top)
        nodes, kept = nodes_of(*octaves), dict[int, FloatArray]()
        element, most = self.value_model.element, self.most

        def rows_at(chosen: IntArray, upper: IntArray) -> FloatArray | None:
            y, one = self.distinct[chosen], np.ones(len(chosen))
            last = np.minimum(last_count(element, y, served[upper]), most[chosen])
            if sum(map(len, kept.values())) + last.sum() > MAX_WEIGHTS:
                return None
            weights = RowWeights.smooth(element, y, one, last, most[chosen])
            kept.update((int(c), weights.row(j)) for j, c in enumerate(chosen))
            return sum_rows(weights.series, weights.start, one, nodes)[:, :2]

        found = choose_rows(self.distinct, rows_at, min(_MAX_GRID_ROWS, len(self.distinct) // 4))
        if found is None:
            return None
        chosen, rows = found
        place = np.log1p(self.distinct)
        weights = RowWeights.join([kept[int(c)] for c in chosen], most[chosen])
        mean, log_sum = (
            pieces_between_rows(place[chosen], cubic_pieces(nodes, both)) for both in rows
        )
        arrays = pack(GRID, *weights, octaves, (mean, log_sum))._replace(places=place[chosen])
        coordinates = np.interp(place, place[chosen], np.arange(float(len(chosen))))
        return self._tabulated(arrays, served, coordinates)

    def _served(self, n_rows: int) -> tuple[FloatArray, float]:
        """Return the log2 rates that the weights serve, and that at which the table ends."""
        top = float(self.max_log2_rate.max())
        # A row has about as many weights as the largest rate. If they are few, the table goes up to
        # it. Otherwise rates beyond 2^8 are summed directly, and a value's weights reach its own.
        if top > OCTAVES[1] and n_rows * 2.0**top <= _FEW_WEIGHTS:
            return np.full(len(self.distinct), top), top
        return self.max_log2_rate, float(OCTAVES[1])

    def _last_of_groups(self) -> FloatArray:
        """Return the n beyond which no term counts, that of the largest value in its group.

        The larger a value, the larger its n.
        """
        group = np.floor(np.log1p(self.distinct) / _GROUP_STEP)
        first = np.flatnonzero(np.diff(group, prepend=-1.0))
        end = np.append(first[1:], len(group))
        rate = np.maximum.reduceat(self.max_log2_rate, first)
        last = last_count(self.value_model.element, self.distinct[end - 1], rate)
        return np.repeat(last, end - first)

    def _weights(self, last: FloatArray, compute: "_Compute") -> RowWeights:
        """Return the weights of all values, as many as memory allows."""
        if np.sum(last - self.least + 1.0) > MAX_WEIGHTS:
            allowed = self.least + MAX_WEIGHTS // len(self.distinct)
            logger.warning("Rates are so large that n is summed up to %d only.", allowed.min())
            last = np.minimum(last, allowed)
        return compute(self.value_model.element, self.distinct, self.least, last, self.most)

    def _tabulated(
        self, arrays: TableArrays, served: FloatArray, coordinates: FloatArray | None = None
    ) -> Tabulated:
        """Return the tables with the coordinates of the values, by default their numbers."""
        number = partial(number_values, self.distinct)
        if coordinates is None:
            return Tabulated(arrays, number, 0.0, served)

        def locate(y: FloatArray) -> FloatArray:
            position = number(y)
            is_known = np.isfinite(position)
            found = coordinates[np.where(is_known, position, 0.0).astype(np.int64)]
            return np.where(is_known, found, np.nan)

        return Tabulated(arrays, locate, 0.0, served, coordinates.astype(np.float32))


_Compute = Callable[[Element, FloatArray, FloatArray, FloatArray, FloatArray], RowWeights]


# -- rows of some of the values --------------------------------------------------------------------

_STEP = 0.5  # distance in log(1 + y) of the first rows
_TOLERANCE = 2e-6  # error between rows of E[n] (relative) and log Z (relative to 1 + |log Z|)
# Halving an interval divides the error of a cubic by 16, and by less where rows are not even.
_KEPT_ERROR = 0.2
"""The error between rows after the one in the middle was added, in terms of that before."""


def choose_rows(
    values: FloatArray,
    rows_at: Callable[[IntArray, IntArray], FloatArray | None],
    max_rows: int,
) -> tuple[IntArray, FloatArray] | None:
    """Return which of the sorted values have rows, and their rows; None if they would be too many.

    ``rows_at(chosen, upper)`` gives E[n] and log Z and their slopes, in an array of shape (2, 2,
    rows, nodes), of chosen values, or None to give up; ``upper`` are the largest values that these
    rows serve. An interval with values inside is halved until the cubic through four rows meets the
    row in its middle at all nodes.
    """
    place = np.log1p(values)
    even = np.arange(place[0], place[-1], _STEP)
    chosen = np.unique([*np.searchsorted(place, even), len(values) - 1])
    if len(chosen) < 4:
        return None
    rows = rows_at(chosen, _upper(chosen, np.arange(len(chosen))))
    if rows is None:
        return None
    rough = np.flatnonzero(np.diff(chosen) > 1)
    while len(rough):
        if len(chosen) + len(rough) > max_rows:
            return None
        ends = chosen[rough], chosen[rough + 1]
        middle = np.searchsorted(place, 0.5 * (place[ends[0]] + place[ends[1]]))
        middle = np.clip(middle, ends[0] + 1, ends[1] - 1)
        found = rows_at(middle, _upper(chosen, rough))
        if found is None:
            return None
        four, weights = stencils(place[chosen], rough, place[middle])
        guess = np.einsum("qj,aqjn->aqn", weights, rows[:, 0][:, four])
        size = np.stack([found[0, 0], 1.0 + np.abs(found[1, 0])])
        error = np.max(np.abs(guess - found[:, 0]) / size, axis=(0, 2))
        bad = _KEPT_ERROR * error > _TOLERANCE
        left = rough + np.arange(len(rough))  # where the halved intervals are now
        chosen = np.insert(chosen, rough + 1, middle)
        rows = np.insert(rows, rough + 1, found, axis=2)
        halves = np.sort(np.concatenate([left[bad], left[bad] + 1]))
        rough = halves[np.diff(chosen)[halves] > 1]
    return chosen, rows


def _upper(chosen: IntArray, position: IntArray) -> IntArray:
    """The largest value between which and its neighbor a row at some position is used."""
    return chosen[np.minimum(position + 2, len(chosen) - 1)]


def stencils(place: FloatArray, interval: IntArray, x: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the four rows next to each interval, and their weights at a place in it."""
    four = np.clip(interval - 1, 0, len(place) - 4)[:, None] + np.arange(4)
    nodes = place[four]
    weights = np.ones_like(nodes)
    for j in range(4):
        for k in range(4):
            if k != j:
                weights[:, j] *= (x - nodes[:, k]) / (nodes[:, j] - nodes[:, k])
    return four, weights


def pieces_between_rows(place: FloatArray, pieces: FloatArray) -> FloatArray:
    """Return bicubic pieces, from each row to the next, from the cubic pieces of the rows."""
    n_rows, n_segments, _ = pieces.shape
    four = np.clip(np.arange(n_rows) - 1, 0, n_rows - 4)[:, None] + np.arange(4)
    # The cubic through the four rows at s_0, ..., s_3 has the coefficients V^-1 f, V[j, p] = s_j^p.
    # Its s is 0 at the row and 1 at the next: values are located linearly in log(1 + y) (``some``).
    width = np.append(np.diff(place), 1.0)  # nothing lies beyond the last row
    s = (place[four] - place[:, None]) / width[:, None]
    powers = np.linalg.inv(s[:, :, None] ** np.arange(4.0))  # of s, per row of the four
    out = np.einsum("rpj,rjnq->rnpq", powers, pieces[four], optimize=True)
    return out.reshape(n_rows, n_segments, 16)
