"""Running sums of masses for discrete elements whose sums have no closed cdf."""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from hcpf._types import ComplexArray, FloatArray
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.elements.base import Element

_NEGLIGIBLE = -50.0  # log of a mass that no longer changes a double-precision probability
_LONGEST = 1 << 25  # entries of a table (256 MB)
_KEPT = 1 << 12  # entries of a table worth keeping


def summed_cdf(element: "Element", y: FloatArray, n: FloatArray) -> FloatArray:
    """Pr(sum of n elements <= y), from one table of masses per distinct n and parameters."""
    names = list(element.parameters)
    columns = np.broadcast_arrays(y, n, *(element.parameters[name] for name in names))
    flat = np.stack([column.ravel() for column in columns[1:]])
    keys, group = np.unique(flat, axis=1, return_inverse=True)
    values, group = columns[0].ravel(), group.ravel()
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(keys.shape[1] + 1))
    out = np.empty(values.shape)
    for index in range(keys.shape[1]):
        member = order[edges[index] : edges[index + 1]]
        single = element.replace(**dict(zip(names, map(float, keys[1:, index]), strict=True)))
        first, cumulative = _cumulative(single, float(keys[0, index]))
        position = np.floor(np.minimum(values[member], 2.0**53)) - first
        inside = np.clip(position, 0, len(cumulative) - 1).astype(np.intp)
        out[member] = np.where(position < 0, 0.0, cumulative[inside])
    return out.reshape(columns[0].shape)


def _cumulative(element: "Element", n: float) -> tuple[float, FloatArray]:
    """Return the first value that counts, and the running sum of masses from there on."""
    first, last = _range(element, n)
    make = _kept_table if last - first < _KEPT else _table
    return first, make(element, n, first, last)


@lru_cache(maxsize=4096)
def _range(element: "Element", n: float) -> tuple[float, float]:
    """Find the values outside which the sum of n elements has no mass that counts."""
    mean, spread = float(n * element.mean), float(np.sqrt(n * element.variance))
    lowest = element.support.lowest
    width = 10.0 * spread + 50.0
    while True:
        first = max(lowest, float(np.floor(mean - width)))
        last = float(np.ceil(mean + width))
        ends = element.log_density_unchecked(np.array([first, last]), np.full(2, n))
        if (first == lowest or ends[0] < _NEGLIGIBLE) and ends[1] < _NEGLIGIBLE:
            return first, last
        width *= 2.0


def _table(element: "Element", n: float, first: float, last: float) -> FloatArray:
    if last - first > _LONGEST:
        raise InputError(f"The cdf of {n:g} times {element!r} is spread over too many values.")
    cumulative = np.cumsum(element.masses(np.arange(first, last + 1.0), n))
    return cumulative / cumulative[-1]


_kept_table = lru_cache(maxsize=4096)(_table)


def masses_from_characteristic(
    log_characteristic: ComplexArray, values: FloatArray, n: float
) -> FloatArray:
    r"""Masses of a sum of n elements on 1, 2, ... at consecutive ``values`` that hold all of it.

    ``log_characteristic`` is the logarithm of :math:`E[e^{it(X-1)}]` at ``circle(values)``. Its
    n-fold is that of the sum, and a discrete Fourier transform gives all masses at once.
    """
    exponent = n * log_characteristic - 1j * circle(values) * (values[0] - n)
    return np.maximum(np.fft.irfft(np.conj(np.exp(exponent)), len(values)), 0.0)


def circle(values: FloatArray) -> FloatArray:
    """Return the angles from 0 to π at which the masses at ``values`` need their characteristic."""
    return 2.0 * np.pi / len(values) * np.arange(len(values) // 2 + 1, dtype=np.float64)
