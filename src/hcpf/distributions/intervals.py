"""Intervals of the values of many pairs, at the cost of solving for a few."""

from dataclasses import dataclass

import numpy as np

from hcpf._types import FloatArray
from hcpf.distributions.compound import Hurdle
from hcpf.distributions.pair import ObservedDistribution, PairDistribution, tail_of
from hcpf.elements.integrated import Integrated

_N_NODES = (64, 10, 10)
"""Nodes of the rate, of the center of theta and of its precision."""
_MIN_RATE = 1e-12  # below this rate a value is a single element to double precision


def value_intervals(
    distribution: PairDistribution, level: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Return the equal-tailed interval of each pair's value if it is observed.

    A quantile costs far more than a rate. The quantiles of all pairs are one smooth function of the
    rate and, with partial pooling, of the center and the precision of theta. Where there are more
    pairs than nodes, it is solved for on a grid and interpolated.

    Parameters
    ----------
    distribution : CompoundPoisson or Hurdle
        The distribution of pairs, as ``predict_distribution`` returns it.
    level : float, default 0.9
        Probability of the interval.

    Returns
    -------
    low, high : ndarray
        Bounds per pair. Those of discrete elements are exact, others are off by at most
        about 1% of the width.
    """
    grid = _Grid.around(distribution)
    if grid is None:
        return distribution.observed.interval(level)
    low, high = map(grid.interpolate, grid.distribution.observed.interval(level))
    if not distribution.element.support.discrete:
        return low, high
    tail, observed = tail_of(level), distribution.observed
    return _exact(observed, np.rint(low), tail), _exact(observed, np.rint(high), 1.0 - tail)


def _exact(observed: ObservedDistribution, guess: FloatArray, tail: float) -> FloatArray:
    """Return quantiles of discrete values, solving for those that the guess misses."""
    hit = (observed.cdf(guess) >= tail) & (observed.cdf(guess - 1.0) < tail)
    wrong = np.flatnonzero(~hit.ravel())
    if wrong.size:
        rate = np.broadcast_to(observed.rate, guess.shape).ravel()[wrong]
        element = observed.element.broadcast_to(guess.shape).at(wrong)
        guess.ravel()[wrong] = type(observed)(rate, element).quantile(tail)
    return guess


@dataclass(frozen=True, eq=False)
class _Grid:
    """Nodes of a regular grid around the pairs, and the distribution at these nodes."""

    nodes: list[FloatArray]
    """Per coordinate, in ascending order."""
    points: FloatArray
    """The coordinates of the pairs, pairs x coordinates."""
    shape: tuple[int, ...]
    """Of the pairs."""
    distribution: PairDistribution

    @classmethod
    def around(cls, distribution: PairDistribution) -> "_Grid | None":
        """Return the grid for these pairs, or None where solving for each pair is cheaper."""
        shape = distribution.shape
        if not np.prod(shape):
            return None
        coordinates = _coordinates(distribution)
        sizes = [
            size if np.ptp(coordinate) > 0 else 1
            for coordinate, size in zip(coordinates, _N_NODES, strict=False)
        ]
        if np.prod(shape) <= np.prod(sizes):
            return None
        nodes = [np.linspace(c.min(), c.max(), n) for c, n in zip(coordinates, sizes, strict=True)]
        mesh = [axis.ravel() for axis in np.meshgrid(*nodes, indexing="ij")]
        points = [np.broadcast_to(coordinate, shape).ravel() for coordinate in coordinates]
        return cls(nodes, np.stack(points, -1), shape, _at_coordinates(distribution, mesh))

    def interpolate(self, values: FloatArray) -> FloatArray:
        """Return the values of the pairs, interpolated between those of the nodes."""
        from scipy.interpolate import RegularGridInterpolator

        values = values.reshape([len(axis) for axis in self.nodes])
        wide = [j for j, axis in enumerate(self.nodes) if len(axis) > 1]
        if not wide:
            return np.full(self.shape, values.ravel()[0])
        # A change of the mean scales positive values, and shifts those of the normal.
        in_logs = self.distribution.element.support.lowest >= 0 and bool(np.all(values > 0))
        values = np.log(values) if in_logs else values
        axes = [self.nodes[j] for j in wide]
        at_points = RegularGridInterpolator(axes, values.squeeze(), "cubic")(self.points[:, wide])
        return (np.exp(at_points) if in_logs else at_points).reshape(self.shape)


def _coordinates(distribution: PairDistribution) -> list[FloatArray]:
    """Return what a pair's value depends on: the log rate, and the center and precision of theta.

    The value of a hurdle does not depend on the rate.
    """
    rate, element = distribution.rate, distribution.element
    if isinstance(distribution, Hurdle):
        rate = np.ones(())
    coordinates = [np.log(np.maximum(rate, _MIN_RATE))]
    if isinstance(element, Integrated):
        center = np.asarray(element.chi / element.nu)
        center = np.log(center) if _is_scale(element) else center
        coordinates += [center, np.log(element.nu)]
    return coordinates


def _at_coordinates(distribution: PairDistribution, mesh: list[FloatArray]) -> PairDistribution:
    element = distribution.element
    if isinstance(element, Integrated):
        nu = np.exp(mesh[2])
        center = np.exp(mesh[1]) if _is_scale(element) else mesh[1]
        element = element.replace(chi=center * nu, nu=nu)
    return type(distribution)(np.exp(mesh[0]), element)


def _is_scale(element: Integrated) -> bool:
    """Return whether the center of theta scales the values; that of the normal shifts them."""
    return element.support.lowest >= 0 and bool(np.all(np.asarray(element.chi) > 0))
