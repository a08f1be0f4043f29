r"""Tables of E[n] and log Z in the rate: the local step of every entry.

The optimal q(n) of an entry is proportional to :math:`p(y \mid n)\,\tilde\Lambda^n/n!`. For a fixed
value y both E[n] and log Z are smooth functions of the rate, so they are tabulated once, by direct
summation, on a grid of eight nodes per octave, and read back by cubic Hermite interpolation, which
is as accurate as float32. Five modes cover all elements:

* ``KNOWN``: n follows from y (the degenerate element);
* ``ROWS``: one table row per distinct value (discrete elements, and any with few values);
* ``SHIFT``: phi(n) = n, so g(y) only scales the rate and one row serves all (gamma);
* ``GRID``: rows at some log |g(y)|, interpolated across rows too (normal, inverse Gaussian), or at
  some of the values of a discrete element that has many (then ``sign`` is 0);
* ``DIRECT``: no table. For elements so concentrated that n is all but known: a small change of y
  moves it from one integer to the next, and few terms of the sum count.

A rate outside the table is summed directly by the kernel.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray
from hcpf.core.collective import LOCAL, Collective
from hcpf.core.continuous_tables import tabulate_separable
from hcpf.core.discrete_tables import tabulate_by_value
from hcpf.core.kernels import DIRECT, KNOWN, ROWS, TableArrays
from hcpf.core.tabulation import (
    MAX_WEIGHTS,
    OCTAVES,
    AllValues,
    Tabulated,
    ValueFunction,
    nodes_of,
    octaves_of,
    pack,
    tabulate_rows,
)
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element, Separable
from hcpf.errors import ParameterError

SPARE_OCTAVES = 3.0
"""Octaves to spare when larger rates are served than are now."""
_MAX_OCTAVE = 26.0
_FEW_VALUES = 64  # distinct values up to which a continuous element has a table row each
_MANY_VALUES = 1024  # the same limit where every entry would otherwise be summed directly


@dataclass(frozen=True, eq=False)
class CountTables:
    """The kernels' tables for one value model and one set of values."""

    arrays: TableArrays
    log_normalizer: float
    """:math:`-\\kappa\\Psi(\\theta)` that the tables hold; another one shifts the log rates."""
    constant: float
    """The sum over the worker's entries of what does not depend on n."""
    max_log2_rate: FloatArray
    """Log2 of the largest rate, in the tables' scale, that is served: for each distinct value where
    they have separate weights, otherwise for all."""
    locate: ValueFunction
    """The coordinates of values; NaN for values that the tables were not made for."""
    row_coordinates: NDArray[np.float32] | None = None
    """The coordinates of the distinct values, ascending, where only some have rows."""

    @property
    def is_summed(self) -> bool:
        """Whether each value has weights and no table, so that any rate they reach is served."""
        return self.arrays.mode == ROWS and not np.isfinite(self.arrays.x_low)

    def needed_log2_rate(self, log_rate: FloatArray, coordinate: NDArray[np.float32]) -> FloatArray:
        """Return the ``max_log2_rate`` that serves entries at some log rates with a margin."""
        row = np.zeros(len(log_rate), dtype=np.int64)
        if self.row_coordinates is not None:
            row = np.searchsorted(self.row_coordinates, coordinate)
        elif self.arrays.mode == ROWS:
            row = coordinate.astype(np.int64)
        needed = np.full_like(self.max_log2_rate, OCTAVES[1])
        np.maximum.at(needed, row, log_rate / np.log(2.0))
        above = np.minimum(needed + SPARE_OCTAVES, _MAX_OCTAVE)
        return np.where(needed > OCTAVES[1], above, needed)


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
    *,
    weights_only: bool = False,
) -> tuple[CountTables, NDArray[np.float32]]:
    """Tabulate E[n] and log Z over the values of all workers.

    Returns the tables, the same on every worker, and the coordinate of each of the worker's
    entries. ``max_count`` truncates n as the paper's N_tr does; by default every n that counts is
    summed. With ``weights_only`` every value keeps the weights of its n, from which n can be drawn.
    """
    all_values = AllValues(values, comm)
    tables = make_tables(
        value_model, all_values, max_count, max_log2_rate, weights_only=weights_only
    )
    return tables, all_values.map(tables.locate)


def make_tables(
    value_model: ValueModel,
    all_values: AllValues,
    max_count: int | None = None,
    max_log2_rate: FloatArray | None = None,
    *,
    weights_only: bool = False,
) -> CountTables:
    """Return the tables alone; see ``tabulate_values``."""
    if value_model.hurdle:
        found = _hurdle(value_model, all_values, max_count, max_log2_rate)
    else:
        found = _compound(value_model, all_values, max_count, max_log2_rate, weights_only)
    sharing = value_model.sharing
    sign = 0.0 if sharing is None else sharing.sign
    # In a hurdle model theta has no part in the rates.
    cross = 0.0 if value_model.hurdle else -float(value_model.element.kappa) * sign
    arrays = found.arrays._replace(cross=cross, is_hurdle=value_model.hurdle and sign != 0.0)
    normalizer = rate_normalizer(value_model)
    return CountTables(arrays, normalizer, *found[2:4], found.locate, found.row_coordinates)


def _compound(
    value_model: ValueModel,
    values: AllValues,
    max_count: int | None,
    max_log2_rate: FloatArray | None,
    weights_only: bool,
) -> Tabulated:
    element = value_model.element
    form = None if element.support.discrete else element.form
    distinct = values.distinct(None if form is None else _MANY_VALUES)
    if isinstance(form, Separable) and len(distinct) > _FEW_VALUES:
        found = tabulate_separable(value_model, form, values, max_count, max_log2_rate)
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
    return tabulate_by_value(
        value_model, values, distinct, max_count, max_log2_rate, weights_only=weights_only
    )


def _hurdle(
    value_model: ValueModel,
    values: AllValues,
    max_count: int | None,
    max_log2_rate: FloatArray | None,
) -> Tabulated:
    largest = np.full(1, float(OCTAVES[1])) if max_log2_rate is None else max_log2_rate
    top = 2.0 ** float(largest[0])
    # n is Poisson given n >= 1, with mean and variance top if top is large: no term counts beyond
    # 13 standard deviations. The 24 is for small rates.
    last = min(float(np.ceil(top + 13.0 * np.sqrt(top) + 24.0)), float(MAX_WEIGHTS))
    n = np.arange(1.0, (last if max_count is None else min(last, max_count)) + 1.0)
    series, start, one = -special.gammaln(n + 1.0), np.array([0, len(n)]), np.ones(1)
    octaves = octaves_of(value_model, float(largest[0]))
    tables = tabulate_rows(series, start, one, nodes_of(*octaves))
    more = np.array([max_count is None or last < max_count])
    arrays = pack(ROWS, series, start, one, more, octaves, tables)
    element = value_model.element
    constant = values.total(
        lambda y: element.log_density_unchecked(y, np.ones_like(y)),
        discrete=element.support.discrete,
    )
    return Tabulated(arrays, np.zeros_like, constant, largest)


def _known(element: Element, values: AllValues) -> Tabulated:
    def constant(y: FloatArray) -> FloatArray:
        n = element.n_range(y)[0]
        return element.log_density_unchecked(y, n) - special.gammaln(n + 1.0)

    arrays = pack(KNOWN, np.zeros(1), np.array([0, 1]), np.ones(1), np.zeros(1, np.bool_))

    def locate(y: FloatArray) -> FloatArray:
        least, greatest = element.n_range(y)
        return np.where(least == greatest, least, np.nan)

    total = values.total(constant, discrete=element.support.discrete)
    return Tabulated(arrays, locate, total, np.zeros(1))
