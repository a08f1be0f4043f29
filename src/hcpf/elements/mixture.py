"""Averages over a Poisson number, from below its mean upward."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.special import log_poisson

_SMALLEST_BLOCK, _LARGEST_BLOCK = 8, 256  # numbers taken at once


def poisson_mixture(
    rate: FloatArray, part: Callable[[Any, FloatArray], FloatArray], smoothness: ArrayLike = 0.0
) -> FloatArray:
    r"""Sum :math:`\mathrm{Po}(n \mid \Lambda)` part(n) over n >= 1 for each of a row of rates.

    Parameters
    ----------
    rate
        The rates, a flat array.
    part
        ``part(pick, n)`` gives the parts, between 0 and 1, of the entries ``pick`` (an index of
        shape (entries, 1)) for a matrix ``n`` with one row for each.
    smoothness
        How slowly a part changes with n: the squared ratio of the width of that change to the
        spread of n, at most 1. A sum over many smooth terms needs only some of them.
    """
    total = np.zeros(rate.shape)
    spread = np.sqrt(rate)
    first = np.maximum(1.0, np.floor(rate - 9.0 * spread - 20.0))
    # Both ends of such a sum are negligible, so that the trapezoid rule converges exponentially.
    stride = np.floor(0.25 * spread * np.minimum(smoothness, 1.0))
    stride = np.where(first > 1.0, np.maximum(stride, 1.0), 1.0)
    least = 1e-18 * np.minimum(rate, 1.0)
    active, reached, block = np.arange(rate.size), 0, _SMALLEST_BLOCK
    while active.size:
        pick = active[:, None]
        steps = np.arange(reached, reached + block, dtype=np.float64)
        n = first[pick] + stride[pick] * steps
        weight = stride[pick] * _weights(n, rate[pick], plain=bool(np.all(stride[active] == 1)))
        total[active] += np.sum(weight * part(pick, n), axis=1)
        active = active[(weight[:, -1] > least[active]) | (n[:, -1] < rate[active])]
        reached += block
        block = min(reached, _LARGEST_BLOCK)
    return total


def _weights(n: FloatArray, rate: FloatArray, *, plain: bool) -> FloatArray:
    """Poisson masses along rows of n; those of consecutive numbers follow from the first."""
    if not plain:
        return np.exp(log_poisson(n, rate))
    ratio, start = rate / n, n[:, :1]
    # The mass at 1 needs no logarithm, which would cost a tiny rate some digits.
    ratio[:, :1] = np.where(start == 1, rate * np.exp(-rate), np.exp(log_poisson(start, rate)))
    return np.cumprod(ratio, axis=1, dtype=np.float64)
