r"""Tables of E[n] and log Z in the rate: the local step of every entry.

The optimal q(n) of an entry is proportional to :math:`p(y \mid n)\,\tilde\Lambda^n/n!`. For a fixed
value y both E[n] and log Z are smooth functions of the rate, so they are tabulated once, by direct
summation, on a grid of eight nodes per octave, and read back by cubic Hermite interpolation, which
is as accurate as float32. Five modes cover all elements:

* ``KNOWN``: n follows from y (the degenerate element);
* ``ROWS``: one table row per distinct value (discrete elements, and any with few values);
* ``SHIFT``: phi(n) = n, so g(y) only scales the rate and one row serves all (gamma);
* ``GRID``: rows at some log |g(y)|, interpolated across rows too (normal, inverse Gaussian);
* ``DIRECT``: no table. For elements so concentrated that n is all but known: a small change of y
  moves it from one integer to the next, and few terms of the sum count.

A rate outside the table is summed directly by the kernel.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray
from hcpf.core.collective import LOCAL, Collective
from hcpf.core.kernels import DIRECT, GRID, KNOWN, ROWS, SHIFT, TableArrays, aligned_zeros
from hcpf.core.tabulation import tabulate_grid, tabulate_rows
from hcpf.core.value_model import ValueModel
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element, Separable
from hcpf.errors import ParameterError

logger = logging.getLogger("hcpf")

PER_OCTAVE = 8
OCTAVES = (-40, 8)
"""The rates tabulated, as powers of two; more where the weights reach further."""
_POOLED_LOW = -80  # row-specific theta moves the rates of a pair further down

_WIDEST = 120  # octaves either way that float32 holds
SPARE_OCTAVES = 3.0
"""Octaves to spare when larger rates are served than are now."""
_MAX_OCTAVE = 26.0
_MOST_WEIGHTS = 1 << 24
_FEW_WEIGHTS = 1 << 22  # that all rows may have, so that the table serves the largest rate
_MOST_NUMBERS = 1 << 24  # that float32 tells apart
_NEGLIGIBLE_G = 1e-10  # of g(y) phi(n)
_LARGEST_SHIFT = 60.0  # of log coordinate, beyond which float32 could overflow
_CHUNK = 1 << 18  # values mapped at once
_FEW_VALUES = 64  # distinct ones that a continuous element gets a table row for each of
_MANY_VALUES = 1024  # the same, where the alternative is to sum every entry directly

Mapping = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class CountTables:
    """The kernels' tables for one value model and one set of values."""

    arrays: TableArrays
    log_normalizer: float
    """:math:`-\\kappa\\Psi(\\theta)` that the tables hold; another one shifts the log rates."""
    constant: float
    """The sum over the worker's entries of what does not depend on n."""
    max_log2_rate: FloatArray
    """Log2 of the largest rate, in the tables' scale, that each row of weights serves."""
    locate: Mapping
    """The coordinates of values; NaN for values that the tables were not made for."""

    def needed_log2_rate(self, log_rate: FloatArray, coordinate: NDArray[np.float32]) -> FloatArray:
        """Return the ``max_log2_rate`` that serves entries at some log rates with a margin."""
        row = np.zeros(len(log_rate), dtype=np.int64)
        if self.arrays.mode == ROWS:
            row = coordinate.astype(np.int64)
        needed = np.full_like(self.max_log2_rate, OCTAVES[1])
        np.maximum.at(needed, row, log_rate / np.log(2.0))
        above = np.minimum(needed + SPARE_OCTAVES, _MAX_OCTAVE)
        return np.where(needed > OCTAVES[1], above, needed)


class _Tabulated(NamedTuple):
    """Tables in the making: arrays, coordinates of values, constant and largest rates."""

    arrays: TableArrays
    locate: Mapping
    constant: float
    max_log2_rate: FloatArray


def rate_normalizer(value_model: ValueModel) -> float:
    r"""Return what the element adds to log q(n) per unit of n, :math:`-\kappa\Psi(\theta)`.

    Nothing in a hurdle model, where n has no part in the value.
    """
    return 0.0 if value_model.hurdle else log_normalizer(value_model.element)


def log_normalizer(element: Element) -> float:
    r"""Return what normalizes the density of one element, :math:`-\kappa\Psi(\theta)`."""
    return float(-element.kappa * element.log_partition(element.theta))


def tabulate_values(
    value_model: ValueModel,
    values: FloatArray,
    comm: Collective = LOCAL,
    max_count: int | None = None,
    max_log2_rate: FloatArray | None = None,
) -> tuple[CountTables, NDArray[np.float32]]:
    """Tabulate E[n] and log Z over the values of all workers.

    Returns the tables, the same on every worker, and the coordinate of each of the worker's
    entries. ``max_count`` truncates n as the paper's N_tr does; by default every n that counts is
    summed.
    """
    all_values = _Values(values, comm)
    if value_model.hurdle:
        found = _hurdle(value_model, all_values, max_count, max_log2_rate)
    else:
        found = _compound(value_model, all_values, max_count, max_log2_rate)
    sharing = value_model.sharing
    sign = 0.0 if sharing is None else sharing.sign
    # In a hurdle model theta has no part in the rates.
    cross = 0.0 if value_model.hurdle else -float(value_model.element.kappa) * sign
    arrays = found.arrays._replace(cross=cross, is_hurdle=value_model.hurdle and sign != 0.0)
    normalizer = rate_normalizer(value_model)
    tables = CountTables(arrays, normalizer, found.constant, found.max_log2_rate, found.locate)
    return tables, all_values.map(found.locate)


def _compound(
    value_model: ValueModel,
    values: "_Values",
    max_count: int | None,
    max_log2_rate: FloatArray | None,
) -> _Tabulated:
    element = value_model.element
    form = None if element.support.discrete else element.form
    distinct = values.distinct(None if form is None else _MANY_VALUES)
    if isinstance(form, Separable) and len(distinct) > _FEW_VALUES:
        found = _separable(value_model, form, values, max_count, max_log2_rate)
        if found.arrays.mode != DIRECT or len(distinct) > _MANY_VALUES:
            return found
    least, greatest = element.n_range(distinct)
    if np.array_equal(least, greatest):
        return _known(element, values)
    if max_count is not None and least.max() > max_count:
        raise ParameterError(
            f"max_count={max_count} is too small: the value {distinct[least.argmax()]:g} needs "
            f"at least n = {least.max():g}."
        )
    return _rows(value_model, values, distinct, max_count, max_log2_rate)


class _Values:
    """The values of all workers, of which each has its own at hand."""

    def __init__(self, own: FloatArray, comm: Collective) -> None:
        self._own, self._comm = own, comm

    def map(self, function: Mapping) -> NDArray[np.float32]:
        """Apply a function chunk by chunk, so that no float64 array of all entries is made."""
        out = np.empty(len(self._own), np.float32)
        for part in _chunks(len(self._own)):
            out[part] = function(np.asarray(self._own[part], dtype=np.float64))
        return out

    def total(self, function: Mapping) -> float:
        """Return the sum of a function over the worker's own values."""
        return float(sum(np.sum(function(part)) for part in self._parts()))

    def range(self, function: Mapping) -> FloatArray:
        """Return the least and the largest value of a function over all values."""
        low, high = np.inf, -np.inf
        for part in self._parts():
            mapped = function(part)
            low, high = min(low, mapped.min()), max(high, mapped.max())
        low, high = self._comm.max(np.array([-low, high]))
        return np.array([-low, high])

    def distinct(self, max_values: int | None = None) -> FloatArray:
        """Return the sorted distinct values; only some if there are more than ``max_values``."""
        found = np.zeros(0)
        for part in _chunks(len(self._own)):
            found = np.union1d(found, self._own[part])
            if max_values is not None and len(found) > max_values:
                break
        return np.unique(self._comm.gather(found))

    def _parts(self) -> Iterator[FloatArray]:
        return (np.asarray(self._own[part], np.float64) for part in _chunks(len(self._own)))


# -- values that n has no part in -----------------------------------------------------------------


def _hurdle(
    value_model: ValueModel,
    values: _Values,
    max_count: int | None,
    max_log2_rate: FloatArray | None,
) -> _Tabulated:
    largest = np.full(1, float(OCTAVES[1])) if max_log2_rate is None else max_log2_rate
    top = 2.0 ** float(largest[0])
    last = min(float(np.ceil(top + 13.0 * np.sqrt(top) + 24.0)), float(_MOST_WEIGHTS))
    n = np.arange(1.0, (last if max_count is None else min(last, max_count)) + 1.0)
    series, start, one = -special.gammaln(n + 1.0), np.array([0, len(n)]), np.ones(1)
    octaves = _octaves(value_model, float(largest[0]))
    tables = tabulate_rows(series, start, one, _nodes(*octaves))
    more = np.array([max_count is None or last < max_count])
    arrays = _pack(ROWS, series, start, one, more, octaves, tables)
    element = value_model.element
    constant = values.total(lambda y: element.log_density_unchecked(y, np.ones_like(y)))
    return _Tabulated(arrays, np.zeros_like, constant, largest)


# -- few values, or discrete elements -------------------------------------------------------------


def _known(element: Element, values: _Values) -> _Tabulated:
    def constant(y: FloatArray) -> FloatArray:
        n = element.n_range(y)[0]
        return element.log_density_unchecked(y, n) - special.gammaln(n + 1.0)

    arrays = _pack(KNOWN, np.zeros(1), np.array([0, 1]), np.ones(1), np.zeros(1, np.bool_))

    def locate(y: FloatArray) -> FloatArray:
        least, greatest = element.n_range(y)
        return np.where(least == greatest, least, np.nan)

    return _Tabulated(arrays, locate, values.total(constant), np.zeros(1))


def _rows(
    value_model: ValueModel,
    values: _Values,
    distinct: FloatArray,
    max_count: int | None,
    max_log2_rate: FloatArray | None,
) -> _Tabulated:
    element = value_model.element
    largest = float(OCTAVES[1]) if max_log2_rate is None else max_log2_rate
    largest = np.broadcast_to(largest, distinct.shape).copy()
    top = float(largest.max())
    if top > OCTAVES[1] and len(distinct) * 2.0**top <= _FEW_WEIGHTS:
        largest = np.full(len(distinct), top)
    else:
        top = float(OCTAVES[1])
    least, most = element.n_range(distinct)
    most = most if max_count is None else np.minimum(most, max_count)
    last = np.minimum(_last_count(element, distinct, largest), most)
    allowed = least + _MOST_WEIGHTS // len(distinct)
    if np.any(last > allowed):
        logger.warning("Rates are so large that n is summed up to %d only.", allowed.min())
        last = np.minimum(last, allowed)
    lengths = (last - least + 1.0).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(lengths)])
    n = np.arange(start[-1]) - np.repeat(start[:-1] - least, lengths)
    y = np.repeat(distinct, lengths)
    series = np.empty(len(n))
    for part in _chunks(len(n)):
        density = element.log_density_unchecked(y[part], n[part])
        series[part] = density - special.gammaln(n[part] + 1.0)
    octaves = _octaves(value_model, top)
    tables = tabulate_rows(series, start, least, _nodes(*octaves))
    arrays = _pack(ROWS, series, start, least, last < most, octaves, tables)
    return _Tabulated(arrays, partial(_numbers, distinct), 0.0, largest)


def _numbers(distinct: FloatArray, y: FloatArray) -> FloatArray:
    """Return the positions of values among the distinct ones; NaN for others."""
    position = np.minimum(np.searchsorted(distinct, y), len(distinct) - 1)
    return np.where(distinct[position] == y, position, np.nan)


def _last_count(element: Element, y: FloatArray, log2_rate: FloatArray) -> FloatArray:
    """Return the n beyond which no term counts at a rate."""
    top = sum_over_n(element, y, 2.0**log2_rate)
    return np.ceil(top.mean + 13.0 * np.sqrt(np.maximum(top.second - top.mean**2, 0.0)) + 24.0)


# -- continuous elements with many values ---------------------------------------------------------


def _separable(
    value_model: ValueModel,
    form: Separable,
    values: _Values,
    max_count: int | None,
    max_log2_rate: FloatArray | None,
) -> _Tabulated:
    element = value_model.element
    largest = np.full(1, float(OCTAVES[1])) if max_log2_rate is None else max_log2_rate
    extremes = values.range(lambda y: y)
    n, more = _counts(element, extremes, max_count, float(largest[0]))
    weights = form.f(n) - special.gammaln(n + 1.0)
    # The term of n = 1 goes into the constant, in float64: what g multiplies is then small.
    phi, first = form.phi(n) - form.phi(n[:1]), float(form.phi(n[:1])[0])
    g_range = values.range(form.g)
    proportional = np.array_equal(phi, n - 1.0)
    octaves = _octaves(value_model, float(largest[0]))
    found = None
    if proportional and np.ptp(g_range) < 2.0 * _LARGEST_SHIFT:
        found = _shift(form, n, weights, g_range, octaves)
    elif not proportional and g_range[0] * g_range[1] >= 0.0:
        found = _grid(form, values, weights, phi, float(np.sign(g_range.sum())), octaves)
    arrays, locate = _direct(form, values, weights) if found is None else found
    arrays = arrays._replace(phi=phi, more=np.array([more]))
    offset = 0.0 if arrays.mode == SHIFT else first
    constant = values.total(lambda y: form.c(y) + offset * form.g(y))
    return _Tabulated(arrays, locate, constant, largest)


def _counts(
    element: Element, extremes: FloatArray, max_count: int | None, log2_rate: float
) -> tuple[FloatArray, bool]:
    """N = 1, 2, ... up to where no term counts at the top rate, and whether more could follow."""
    # Two octaves more, because the last node of a shifted table lies up to that far beyond.
    last = float(_last_count(element, extremes, np.full(2, log2_rate + 2.0)).max())
    if last > _MOST_WEIGHTS:
        logger.warning("Rates are so large that n is summed up to %d only.", _MOST_WEIGHTS)
    last = min(last, float(_MOST_WEIGHTS))
    if max_count is not None and max_count <= last:
        return np.arange(1.0, max_count + 1.0), False
    return np.arange(1.0, last + 1.0), True


def _shift(
    form: Separable,
    n: FloatArray,
    weights: FloatArray,
    g_range: FloatArray,
    octaves: tuple[int, int],
) -> tuple[TableArrays, Mapping]:
    center = 0.5 * float(g_range.sum())
    margin = int(np.ceil(0.5 * np.ptp(g_range) / np.log(2.0))) + 1
    octaves = octaves[0] - margin, octaves[1] + margin
    series, start, one = weights + n * center, np.array([0, len(n)]), np.ones(1)
    tables = tabulate_rows(series, start, one, _nodes(*octaves))
    arrays = _pack(SHIFT, series, start, one, np.ones(1, np.bool_), octaves, tables)

    def locate(y: FloatArray) -> FloatArray:
        return np.exp(_inside(form.g(y), g_range) - center)

    return arrays, locate


def _grid(
    form: Separable,
    values: _Values,
    weights: FloatArray,
    phi: FloatArray,
    sign: float,
    octaves: tuple[int, int],
) -> tuple[TableArrays, Mapping] | None:
    smallest = _NEGLIGIBLE_G / max(float(np.abs(phi).max()), 1.0)

    def log_size(y: FloatArray) -> FloatArray:
        return np.log(np.maximum(np.abs(form.g(y)), smallest))

    ends = values.range(log_size)
    found = tabulate_grid(weights, phi, sign, (float(ends[0]), float(ends[1])), _nodes(*octaves))
    if found is None:
        return None
    log_g, *tables = found
    rows, start = len(log_g), np.array([0, len(weights)])
    arrays = _pack(
        GRID, weights, start, np.ones(1), np.ones(1, np.bool_), octaves, (tables[0], tables[1])
    )
    top = np.nextafter(np.float32(rows - 1), np.float32(0))

    def locate(y: FloatArray) -> FloatArray:
        size = np.where(sign * form.g(y) >= 0.0, _inside(log_size(y), ends), np.nan)
        return np.minimum(np.interp(size, log_g, np.arange(rows)), top)

    return arrays._replace(places=log_g, sign=sign), locate


def _direct(form: Separable, values: _Values, weights: FloatArray) -> tuple[TableArrays, Mapping]:
    # Values are known by their number, since g itself may need more digits than float32 has.
    distinct = values.distinct()
    step = -(-len(distinct) // _MOST_NUMBERS)
    distinct = distinct[::step]
    start = np.array([0, len(weights)])
    arrays = _pack(DIRECT, weights, start, np.ones(1), np.ones(1, np.bool_))

    def locate(y: FloatArray) -> FloatArray:
        if step == 1:
            return _numbers(distinct, y)
        return np.searchsorted(distinct, y, side="right").astype(np.float64) - 1.0

    return arrays._replace(places=form.g(distinct)), locate


def _inside(numbers: FloatArray, ends: FloatArray) -> FloatArray:
    """Return numbers, NaN for those that lie beyond the ends by more than rounding."""
    spare = 1e-9 * (1.0 + np.abs(ends).max())
    is_inside = (numbers >= ends[0] - spare) & (numbers <= ends[1] + spare)
    return np.where(is_inside, numbers, np.nan)


# -- pieces ---------------------------------------------------------------------------------------


def _chunks(size: int) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, size, _CHUNK)]


def _octaves(value_model: ValueModel, log2_rate: float) -> tuple[int, int]:
    """The powers of two that the table runs over."""
    low = OCTAVES[0] if value_model.vary_by is None else _POOLED_LOW
    return low, max(OCTAVES[1], int(np.ceil(log2_rate)))


def _nodes(low: int, high: int) -> FloatArray:
    low, high = max(low, -_WIDEST), min(high, _WIDEST)
    mantissa = 1.0 + np.arange(PER_OCTAVE) / PER_OCTAVE
    octaves = 2.0 ** np.arange(low, high)
    return np.append((octaves[:, None] * mantissa).ravel(), 2.0**high)


def _pack(
    mode: int,
    series: FloatArray,
    start: np.ndarray,
    least: FloatArray,
    more: NDArray[np.bool_],
    octaves: tuple[int, int] | None = None,
    tables: tuple[FloatArray, FloatArray] | None = None,
) -> TableArrays:
    """Put together the kernels' arrays; without tables no rate lies inside them."""
    low, high = np.inf, np.inf
    first = 0
    if octaves is not None:
        first = max(octaves[0], -_WIDEST)
        low, high = 2.0**first, 2.0 ** min(octaves[1], _WIDEST)
    means, log_table = tables or (np.zeros((1, 1, 4)), np.zeros((1, 1, 4)))
    mean_table = aligned_zeros(*means.shape)  # so that no piece lies on two cache lines
    mean_table[:] = means
    return TableArrays(
        mode=mode,
        first_code=(first + 127) * PER_OCTAVE,
        x_low=np.float32(low),
        x_high=np.float32(high),
        mean_table=mean_table,
        log_table=log_table,
        least=np.asarray(least, dtype=np.float64),
        start=start,
        more=np.asarray(more, dtype=np.bool_),
        series=series,
        phi=np.zeros(1),
        places=np.zeros(1),
        sign=0.0,
    )
