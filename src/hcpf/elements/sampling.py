"""Exact draws that NumPy does not offer."""

from collections.abc import Callable

import numpy as np

from hcpf._types import ArrayLike, FloatArray

_CHUNK = 1 << 22  # draws held at once


def truncated_poisson(rate: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Draw from a Poisson given that it is at least 1, exact for rates down to 1e-300.

    The first arrival of a unit-rate process, given that it comes before ``rate``, is drawn by
    inversion; the arrivals after it are plain Poisson.
    """
    rate = np.asarray(rate, dtype=np.float64)
    first = -np.log1p(rng.random(rate.shape) * np.expm1(-rate))
    return rng.poisson(np.maximum(rate - first, 0.0)).astype(np.float64) + 1.0


def sum_of_draws(
    n: FloatArray, parameter: ArrayLike, draw: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Sum n draws for each entry of ``n``; ``draw`` maps an array of parameters to draws."""
    counts = n.ravel().astype(np.int64)
    parameters = np.broadcast_to(np.asarray(parameter, dtype=np.float64), n.shape).ravel()
    out = np.zeros(counts.shape)
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        offset = ends[start] - counts[start]
        stop = max(start + 1, int(np.searchsorted(ends, offset + _CHUNK, side="right")))
        owner = np.repeat(np.arange(stop - start), counts[start:stop])
        draws = draw(parameters[start:stop][owner])
        out[start:stop] = np.bincount(owner, weights=draws, minlength=stop - start)
        start = stop
    return out.reshape(n.shape)
