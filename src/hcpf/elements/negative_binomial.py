"""The negative binomial element, for over-dispersed counts whose observed value may be 0."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._special import log_rising
from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.domains import COUNTS, POSITIVE, SMALLEST, UNIT_INTERVAL
from hcpf.elements.search import maximise_over_log

LARGEST_SUCCESSES = 1e6
"""The documented limit for data no more dispersed than a Poisson's."""


@dataclass(frozen=True, eq=False, repr=False)
class NegativeBinomial(Element):
    r"""NegativeBinomial(successes r, probability p), mean r p / (1 - p).

    As in the paper p is the probability of going on: scipy and NumPy call 1 - p by that letter.
    The sum of n is NegativeBinomial(n r, p).

    :math:`\theta = \log p,\ \kappa = r,\ \Psi(\theta) = -\log(1 - e^\theta)`
    """

    successes: Parameter = parameter(POSITIVE)
    probability: Parameter = parameter(UNIT_INTERVAL)

    name = "negative_binomial"
    acronym = "NB"
    support = COUNTS

    @property
    def theta(self) -> Parameter:  # noqa: D102
        return np.log(self.probability)

    @property
    def kappa(self) -> Parameter:  # noqa: D102
        return self.successes

    def log_partition(self, theta: ArrayLike) -> FloatArray:  # noqa: D102
        return -np.log(-np.expm1(np.asarray(theta, dtype=np.float64)))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:  # noqa: D102
        y = np.asarray(y, dtype=np.float64)
        return log_rising(kappa, y) - special.gammaln(y + 1.0)

    @property
    def mean(self) -> Parameter:  # noqa: D102
        return self.successes * self.probability / (1.0 - self.probability)

    @property
    def variance(self) -> Parameter:  # noqa: D102
        return self.mean / (1.0 - self.probability)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:  # noqa: D102
        whole = np.floor(np.maximum(y, 0.0))
        inside = special.betainc(n * self.successes, whole + 1.0, 1.0 - self.probability)
        return np.where(y >= 0, inside, 0.0)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: D102
        draws = rng.negative_binomial(n * self.successes, 1.0 - self.probability)
        return draws.astype(np.float64)

    def maximise_likelihood(self, y: FloatArray) -> Self:
        """Maximum likelihood; data no more dispersed than a Poisson's give successes = 1e6."""
        given = self.parameters
        mean = float(y.mean())
        values, counts = np.unique(y, return_counts=True)

        def at(successes: float) -> Self:
            best = max(mean / (mean + successes), SMALLEST)
            return self.replace(successes=successes, probability=given.get("probability", best))

        def likelihood(successes: float) -> float:
            density = at(successes).log_density_unchecked(values, np.ones_like(values))
            return float(counts @ density)

        if "successes" in given:
            return at(float(given["successes"]))
        # A finite maximum exists if and only if the sample is over-dispersed (Levin & Reeds 1977).
        if "probability" not in given and float(y.var()) <= mean:
            return at(LARGEST_SUCCESSES)
        return at(maximise_over_log(likelihood, 1e-9, LARGEST_SUCCESSES))
