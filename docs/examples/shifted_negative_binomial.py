"""A user-defined element: counts from 1 with a free variance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hcpf.elements import POSITIVE, POSITIVE_COUNTS, UNIT_INTERVAL, Element, parameter

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ShiftedNegativeBinomial(Element):
    """1 + NegativeBinomial(successes r, probability p), with mean 1 + r p / (1 - p)."""

    successes: float = parameter(POSITIVE)
    probability: float = parameter(UNIT_INTERVAL)

    name, acronym, support = "shifted_negative_binomial", "SNB", POSITIVE_COUNTS
    theta = property(lambda self: np.log(self.probability))
    kappa = property(lambda self: 1.0)
    mean = property(lambda self: 1 + self.successes * self.probability / (1 - self.probability))
    variance = property(lambda self: (self.mean - 1) / (1 - self.probability))

    def log_partition(self, theta: Array) -> Array:
        """Psi(theta) = theta - r log(1 - e^theta)."""
        return theta - self.successes * np.log(-np.expm1(theta))

    def log_base_measure(self, y: Array, kappa: Array) -> Array:
        """Log of C(y - n + n r - 1, y - n), where n is kappa: 0 beyond n = y."""
        rest, total = np.maximum(np.subtract(y, kappa), 0), np.multiply(kappa, self.successes)
        inside = gammaln(rest + total) - gammaln(total) - gammaln(rest + 1)
        return np.where(np.greater_equal(y, kappa), inside, -np.inf)

    def draw(self, n: Array, rng: np.random.Generator) -> Array:
        """Draw one sum of n elements for each n."""
        return n + rng.negative_binomial(n * self.successes, 1 - self.probability)

    def n_range(self, y: Array) -> tuple[Array, Array]:
        """Each element is at least 1, so n is at most y."""
        return np.ones_like(y), y
