"""Masses of rounded values, by which continuous and discrete elements can be compared."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.evaluate.splits import Split

MIN_MASS = 1e-300
_SMALL_MASS = 1e-8  # a difference of probabilities below it has lost digits
_CENT, _ROUNDING = 0.01, 1e-6
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class ValueGrid:
    """The grid that values were rounded to.

    Parameters
    ----------
    unit
        Distance of two neighboring values.
    first
        The smallest value: all that is below it is rounded to it.
    """

    unit: float
    first: float

    @classmethod
    def of(cls, data: Split) -> "ValueGrid | None":
        """Return the grid of all values of a split: integers or cents; None for other values."""
        parts = data.train.values, data.validation.values, data.test.values
        values = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
        for unit in (1.0, _CENT):
            steps = values / unit
            if np.all(np.abs(steps - np.rint(steps)) <= _ROUNDING * np.maximum(np.abs(steps), 1.0)):
                return cls(unit, float(values.min()))
        return None

    def log_masses(
        self, observed: Any, values: FloatArray, part: Callable[[FloatArray], Any]
    ) -> FloatArray:
        """Return the log probability that a continuous value is rounded to each of ``values``.

        Parameters
        ----------
        observed
            The distributions of the values, given that their pairs are observed.
        values
            One value per distribution.
        part
            Returns the distributions of some of the pairs, given by a mask.
        """
        half, is_first = self.unit / 2.0, values <= self.first + self.unit * _ROUNDING
        below = np.where(is_first, 0.0, observed.cdf(values - half))
        mass = observed.cdf(values + half) - below
        out = np.log(np.maximum(mass, MIN_MASS))
        # In the upper tail both probabilities round to 1: sum the density over the interval.
        small = (mass < _SMALL_MASS) & ~is_first
        if np.any(small):
            points = values[small, None] + half * _NODES
            some = part(small)
            density = np.stack([some.log_density(column) for column in points.T], axis=1)
            with np.errstate(divide="ignore"):
                terms = density + np.log(half * _WEIGHTS)
            out[small] = np.logaddexp.reduce(terms, axis=1)
        return out
