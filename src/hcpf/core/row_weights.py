"""Log weights of n, one row per value: the terms that E[n] and log Z are sums of."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray, IntArray
from hcpf.core.tabulation import chunks
from hcpf.elements.base import Element

_DENSE = 64  # counts from the least on that are all computed
_NODES = 20  # counts computed per block of the others
_MAX_BLOCK = 4096  # counts; blocks double until then


class RowWeights(NamedTuple):
    r"""Rows of :math:`\log p(y \mid n) - \log n!` for n = least, least + 1, ..."""

    series: FloatArray
    start: IntArray
    """Where each row begins in ``series``, and the end of the last."""
    least: FloatArray
    more: NDArray[np.bool_]
    """Whether larger n are possible."""

    @classmethod
    def all_of(
        cls, element: Element, y: FloatArray, least: FloatArray, last: FloatArray, most: FloatArray
    ) -> "RowWeights":
        """Compute the weights of values ``y`` at every n from ``least`` to ``last``."""
        length, start = _extents(least, last)
        series = np.empty(start[-1])
        _fill(series, element, y, least, start[:-1], length)
        return cls(series, start, least, last < most)

    @classmethod
    def smooth(
        cls, element: Element, y: FloatArray, least: FloatArray, last: FloatArray, most: FloatArray
    ) -> "RowWeights":
        """Compute the weights at the smallest n and at some of the others.

        A polynomial in n gives those of a block, n to 2n, from 20 of them. Singularities are no
        nearer than n = 0, so with Chebyshev's nodes its error is below 1e-13 of how much the
        weights change.
        """
        length, start = _extents(least, last)
        series, begin = np.empty(start[-1]), start[:-1]
        _fill(series, element, y, least, begin, np.minimum(length, _DENSE))
        first = _DENSE
        while first < length.max(initial=0):
            width = min(first, _MAX_BLOCK)
            reaches, size = length > first, np.minimum(length - first, width)
            # Next to the largest n that is possible the weights are not as smooth.
            whole = np.flatnonzero(reaches & (least + first + 2 * width <= most))
            found = _log_weights(
                element, y[whole, None], least[whole, None] + first + _nodes(width)
            )
            for j, row in zip(whole, found @ _polynomials(width), strict=True):
                series[begin[j] + first : begin[j] + first + size[j]] = row[: size[j]]
            rest = reaches & (least + first + 2 * width > most)
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
def _polynomials(width: int) -> FloatArray:
    """Values at 0, ..., width - 1 of the polynomials that are 1 at one node and 0 at the others."""
    nodes, x = _nodes(width), np.arange(float(width))
    same = np.eye(len(nodes), dtype=np.bool_)
    gaps = np.where(same, 1.0, nodes[:, None] - nodes)
    factors = np.where(same[:, :, None], 1.0, (x - nodes[:, None]) / gaps[:, :, None])
    return np.prod(factors, axis=1)
