"""Running sums of masses for discrete elements whose sums have no closed cdf."""

from typing import TYPE_CHECKING

import numpy as np

from hcpf._types import FloatArray

if TYPE_CHECKING:
    from hcpf.elements.base import Element

_NEGLIGIBLE = -50.0  # log of a mass that no longer changes a double-precision probability


def summed_cdf(element: "Element", y: FloatArray, n: FloatArray) -> FloatArray:
    """Pr(sum of n elements <= y), from one table of masses per distinct n and parameters."""
    names = list(element.parameters)
    columns = np.broadcast_arrays(y, n, *(element.parameters[name] for name in names))
    flat = np.stack([column.ravel() for column in columns[1:]])
    keys, group = np.unique(flat, axis=1, return_inverse=True)
    values = columns[0].ravel()
    out = np.empty(values.shape)
    for index in range(keys.shape[1]):
        member = group.ravel() == index
        single = element.replace(**dict(zip(names, map(float, keys[1:, index]), strict=True)))
        first, cumulative = _cumulative(single, keys[0, index])
        position = np.floor(np.minimum(values[member], 2.0**53)) - first
        inside = np.clip(position, 0, len(cumulative) - 1).astype(np.intp)
        out[member] = np.where(position < 0, 0.0, cumulative[inside])
    return out.reshape(columns[0].shape)


def _cumulative(element: "Element", n: float) -> tuple[float, FloatArray]:
    """Return the first value that counts, and the running sum of masses from there on."""
    mean, spread = float(n * element.mean), float(np.sqrt(n * element.variance))
    lowest = element.support.lowest
    width = 10.0 * spread + 50.0
    while True:
        first = max(lowest, np.floor(mean - width))
        last = np.ceil(mean + width)
        ends = element.log_density_unchecked(np.array([first, last]), np.full(2, n))
        if (first == lowest or ends[0] < _NEGLIGIBLE) and ends[1] < _NEGLIGIBLE:
            break
        width *= 2.0
    values = np.arange(first, last + 1.0)
    masses = np.exp(element.log_density_unchecked(values, np.full(values.shape, n)))
    return first, np.minimum(np.cumsum(masses), 1.0)
