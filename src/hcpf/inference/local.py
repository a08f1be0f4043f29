r"""The local step: E[n] and log Z of every entry, as tables in the rate.

The optimal q(n) of an entry is proportional to :math:`p(y \mid n)\,\tilde\Lambda^n/n!`. For a fixed
value y both E[n] and log Z are smooth functions of the rate, so they are tabulated once, by direct
summation, on a grid of eight nodes per octave, and read back by cubic Hermite interpolation: the
relative error is below the rounding of float32. Four modes cover all elements:

* ``KNOWN``: n = y (the degenerate element);
* ``ROWS``: one table row per distinct value (discrete elements);
* ``SHIFT``: phi(n) = n, so g(y) only scales the rate and one row serves all (gamma);
* ``GRID``: rows on a grid of log |g(y)|, interpolated across rows too (normal, inverse Gaussian).

A rate outside the grid is summed directly by the kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._series import sum_over_n
from hcpf._types import FloatArray
from hcpf.elements.base import Element, Separable
from hcpf.errors import ParameterError
from hcpf.inference.kernels import GRID, KNOWN, ROWS, SHIFT, Local
from hcpf.inference.tables import hermite_coefficients, tabulate

PER_OCTAVE = 8
FIRST_OCTAVES = (-40, 8)
"""The rates tabulated at first, as powers of two; the kernel sums directly beyond."""

_WIDEST_TABLE, _WIDEST = (
    120,
    1000,
)  # octaves either way that float32 tables and the windows of n take

_ROW_STEP = 0.125  # of log |g| between the rows of a GRID
_SMALLEST_LOG_G = -23.0  # below, g(y) phi(n) no longer counts
_CHUNK = 1 << 22  # values mapped at once
_LARGEST_SHIFT = 60.0  # of log coordinate, beyond which float32 could overflow


@dataclass(frozen=True)
class LocalStep:
    """The kernels' tables for one element and one set of values."""

    local: Local
    coordinate: np.ndarray  # float32, one per entry
    slope: float  # the element's slope_of that the tables hold; another one shifts the log rates
    constant: float  # sum over the entries of what does not depend on n
    octaves: tuple[int, int]  # powers of two between which the stored windows of n suffice

    def wider(self) -> tuple[int, int]:
        """Octaves for the next tabulation, after entries were found outside these."""
        low, high = self.octaves
        return max(4 * low, -_WIDEST), min(high + 8, 64)


def slope_of(element: Element) -> float:
    r"""What the element adds to log q(n) per unit of n, :math:`-\kappa\Psi(\theta)`."""
    return float(-element.kappa * element.log_partition(element.theta))


def local_step(
    element: Element,
    values: FloatArray,
    most: int | None = None,
    octaves: tuple[int, int] = FIRST_OCTAVES,
) -> LocalStep:
    """Tabulate E[n] and log Z for ``element`` over the given values.

    ``most`` truncates n as the paper's N_tr does; by default every n that counts is summed.
    """
    if values.size == 0:
        return _known(element, values)
    distinct = _distinct(values)
    least, greatest = element.n_range(distinct)
    if np.array_equal(least, greatest):
        return _known(element, values)
    if most is not None and least.max() > most:
        raise ParameterError(
            f"n_truncation={most} is too small: the value {distinct[least.argmax()]:g} needs at "
            f"least n = {least.max():g}."
        )
    form = element.form
    if element.support.discrete or not isinstance(form, Separable):
        return _rows(element, values, distinct, most, octaves)
    if _is_shift(form) and np.ptp(form.g(distinct)) < 2 * _LARGEST_SHIFT:
        return _shift(element, form, values, distinct, most, octaves)
    return _grid(element, form, values, distinct, most, octaves)


def _distinct(values: FloatArray) -> FloatArray:
    """Sorted distinct values; of continuous data only enough to know their range."""
    found = np.unique(values[:_CHUNK])
    for start in range(_CHUNK, len(values), _CHUNK):
        found = np.unique(np.concatenate([found, np.unique(values[start : start + _CHUNK])]))
        if len(found) > _CHUNK:
            found = np.concatenate([found[:: len(found) // 1000], found[-1:]])
    return found


def _map(values: FloatArray, function: Callable[[FloatArray], FloatArray]) -> NDArray[np.float32]:
    """Apply a function piece by piece, so that no float64 array of all entries is made."""
    out = np.empty(len(values), np.float32)
    for start in range(0, len(values), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = function(np.asarray(values[part], dtype=np.float64))
    return out


def _total(values: FloatArray, function: Callable[[FloatArray], FloatArray]) -> float:
    """Sum a function of the values, piece by piece."""
    parts = range(0, len(values), _CHUNK)
    return float(
        sum(np.sum(function(np.asarray(values[i : i + _CHUNK], np.float64))) for i in parts)
    )


def _is_shift(form: Separable) -> bool:
    n = np.arange(1.0, 6.0)
    return bool(np.array_equal(form.phi(n), n))


def _known(element: Element, values: FloatArray) -> LocalStep:
    def constant(y: FloatArray) -> FloatArray:
        n = element.n_range(y)[0]
        return element.log_density_unchecked(y, n) - special.gammaln(n + 1.0)

    empty = np.zeros((1, 1, 4))
    local = _pack(KNOWN, FIRST_OCTAVES, empty, empty, np.ones(1), [np.zeros(1)], [1.0], [0])
    coordinate = _map(values, lambda y: element.n_range(y)[0])
    return LocalStep(local, coordinate, 0.0, _total(values, constant), FIRST_OCTAVES)


def _rows(
    element: Element,
    values: FloatArray,
    distinct: FloatArray,
    truncate: int | None,
    octaves: tuple[int, int],
) -> LocalStep:
    slope = slope_of(element)
    least, most = element.n_range(distinct)
    # The window of n that matters anywhere on the grid, from the posteriors at its two ends.
    ends = [sum_over_n(element, distinct, np.full_like(distinct, 2.0**e)) for e in octaves]
    reach = [13.0 * np.sqrt(np.maximum(end.second - end.mean**2, 0.0)) + 24.0 for end in ends]
    first = np.maximum(least, np.floor(ends[0].mean - reach[0]))
    most = np.minimum(most, np.inf if truncate is None else truncate)
    last = np.minimum(most, np.ceil(ends[1].mean + reach[1]))
    series: list[FloatArray] = []
    for y, start, stop in zip(distinct, first, last, strict=True):
        n = np.arange(start, stop + 1.0)
        density = element.log_density_unchecked(np.full(n.shape, y), n)
        series.append(density - special.gammaln(n + 1.0))
    opened = (first > least).astype(np.int64) + 2 * (last < most)
    coordinate = _map(values, lambda y: np.searchsorted(distinct, y).astype(np.float64))
    return _tabulated(ROWS, octaves, series, first, opened, least, slope, coordinate, 0.0)


def _shift(
    element: Element,
    form: Separable,
    values: FloatArray,
    distinct: FloatArray,
    truncate: int | None,
    octaves: tuple[int, int],
) -> LocalStep:
    spread = form.g(distinct)
    centre = 0.5 * float(spread.min() + spread.max())
    margin = int(np.ceil(0.5 * np.ptp(spread) / np.log(2.0))) + 1
    n, opened = _counts(element, distinct, truncate, octaves[1])
    series = [form.f(n) + n * centre - special.gammaln(n + 1.0)]
    coordinate = _map(values, lambda y: np.exp(form.g(y) - centre))
    one = np.ones(1)
    reach = octaves[0] - margin, octaves[1] + margin
    constant = _total(values, form.c)
    step = _tabulated(
        SHIFT, reach, series, one, np.array([opened]), one, slope_of(element), coordinate, constant
    )
    return replace(step, octaves=octaves)


def _counts(
    element: Element, distinct: FloatArray, truncate: int | None, top_octave: int
) -> tuple[FloatArray, int]:
    """N = 1, 2, ... up to where no term counts at the top rate; 2 if more could follow, else 0."""
    extremes = np.array([distinct[0], distinct[-1]])
    top = sum_over_n(element, extremes, np.full(2, 2.0**top_octave))
    spread = np.sqrt(np.maximum(top.second - top.mean**2, 0.0))
    largest = float(np.ceil(np.max(top.mean + 13.0 * spread + 24.0)))
    if truncate is not None and truncate <= largest:
        return np.arange(1.0, truncate + 1.0), 0
    return np.arange(1.0, largest + 1.0), 2


def _grid(
    element: Element,
    form: Separable,
    values: FloatArray,
    distinct: FloatArray,
    truncate: int | None,
    octaves: tuple[int, int],
) -> LocalStep:
    def log_size(y: FloatArray) -> FloatArray:
        return np.log(np.maximum(np.abs(form.g(y)), np.exp(_SMALLEST_LOG_G)))

    sizes = log_size(distinct)
    sign = 1.0 if np.any(form.g(distinct) > 0) else -1.0
    origin = float(np.floor(sizes.min() / _ROW_STEP) * _ROW_STEP)
    rows = int(np.ceil((sizes.max() - origin) / _ROW_STEP)) + 2
    n, opened = _counts(element, distinct, truncate, octaves[1])
    weights, phi = form.f(n) - special.gammaln(n + 1.0), form.phi(n)
    nodes = _nodes(*octaves)
    row_g = sign * np.exp(origin + _ROW_STEP * np.arange(rows))
    mean, log_sum = np.empty((4, rows, nodes.size)), np.empty((4, rows, nodes.size))
    tabulate(weights, phi, row_g, np.log(nodes), 1.0, mean, log_sum)
    local = _pack(
        GRID,
        octaves,
        hermite_coefficients(nodes, mean, _ROW_STEP),
        hermite_coefficients(nodes, log_sum, _ROW_STEP),
        np.ones(rows),
        [weights],
        [1.0],
        [opened],
    )
    local = local._replace(phi=phi, log_g0=origin, log_g_step=_ROW_STEP, sign=sign)
    top = np.nextafter(np.float32(rows - 1), np.float32(0))
    coordinate = _map(values, lambda y: np.clip((log_size(y) - origin) / _ROW_STEP, 0.0, top))
    return LocalStep(local, coordinate, slope_of(element), _total(values, form.c), octaves)


def _table_octaves(octaves: tuple[int, int]) -> tuple[int, int]:
    return max(octaves[0], -_WIDEST_TABLE), min(octaves[1], _WIDEST_TABLE)


def _nodes(low: int, high: int) -> FloatArray:
    low, high = _table_octaves((low, high))
    mantissa = 1.0 + np.arange(PER_OCTAVE) / PER_OCTAVE
    octaves = 2.0 ** np.arange(low, high)
    return np.append((octaves[:, None] * mantissa).ravel(), 2.0**high)


def _tabulated(
    mode: int,
    octaves: tuple[int, int],
    series: list[FloatArray],
    first: FloatArray,
    opened: np.ndarray,
    least: FloatArray,
    slope: float,
    coordinate: np.ndarray,
    constant: float,
) -> LocalStep:
    nodes = _nodes(*octaves)
    mean = np.empty((4, len(series), nodes.size))
    log_sum = np.empty((4, len(series), nodes.size))
    for row, weights in enumerate(series):
        part = mean[:, row : row + 1], log_sum[:, row : row + 1]
        tabulate(weights, np.zeros(1), np.zeros(1), np.log(nodes), first[row], *part)
        log_sum[0, row] -= (least[row] - 1.0) * np.log(nodes)
        log_sum[1, row] -= least[row] - 1.0
    local = _pack(
        mode,
        octaves,
        hermite_coefficients(nodes, mean, None),
        hermite_coefficients(nodes, log_sum, None),
        least,
        series,
        list(first),
        list(opened),
    )
    saturated = mean[0, :, 0] - least < 1e-8 * least
    local = local._replace(saturated=saturated)
    return LocalStep(local, coordinate, slope, constant, octaves)


def _pack(
    mode: int,
    octaves: tuple[int, int],
    mean_table: FloatArray,
    log_table: FloatArray,
    least: FloatArray,
    series: list[FloatArray],
    first: list[float],
    opened: list[int],
) -> Local:
    octaves = _table_octaves(octaves)
    lengths = np.array([0, *(len(row) for row in series)])
    return Local(
        mode=mode,
        first_code=(octaves[0] + 127) * PER_OCTAVE,
        x_low=np.float32(2.0 ** octaves[0]),
        x_high=np.float32(2.0 ** octaves[1]),
        mean_table=mean_table.astype(np.float32),
        log_table=log_table,
        least=np.asarray(least, dtype=np.float64),
        saturated=np.zeros(len(least), dtype=np.bool_),
        series_start=np.cumsum(lengths),
        series_first=np.asarray(first, dtype=np.float64),
        series_open=np.asarray(opened, dtype=np.int64),
        series=np.concatenate(series),
        phi=np.zeros(1),
        log_g0=0.0,
        log_g_step=1.0,
        sign=0.0,
    )
