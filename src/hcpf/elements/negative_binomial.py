"""The negative binomial element, for over-dispersed counts whose observed value may be 0."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.conjugate import BetaConjugate, inverse_if_positive
from hcpf.elements.domains import COUNTS, POSITIVE, SMALLEST, UNIT_INTERVAL, inside_unit
from hcpf.elements.special import digamma, log1mexp, log_binomial, log_rising, root

MAX_SUCCESSES = 1e6
"""The estimate for data that are not more dispersed than a Poisson."""


class NegativeBinomialConjugate(BetaConjugate):
    """The probability of going on is Beta(chi, nu + 1)."""

    def trials(self, y: FloatArray, kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y, kappa

    def shapes(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        return chi, nu + 1.0

    def mean_of(self, p: FloatArray) -> FloatArray:
        return p / (1.0 - p)

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        total = digamma(chi + nu + 1.0)
        return digamma(chi) - total, total - digamma(nu + 1.0)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return chi * (chi + nu) / np.square(nu) * inverse_if_positive(nu - 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class NegativeBinomial(Element):
    r"""NegativeBinomial(successes r, probability p), mean r p / (1 - p).

    As in the paper, p is the probability of going on; scipy and NumPy use p for 1 - p. The sum of
    n is NegativeBinomial(n r, p).

    :math:`\theta = \log p,\ \kappa = r,\ \Psi(\theta) = -\log(1 - e^\theta)`
    """

    successes: Parameter = parameter(POSITIVE)
    probability: Parameter = parameter(UNIT_INTERVAL)

    name = "negative_binomial"
    acronym = "NB"
    support = COUNTS
    mean_parameter = "probability"
    kappa_note = ""
    dispersion_parameter = "successes"
    conjugate = NegativeBinomialConjugate()

    @property
    def theta(self) -> Parameter:
        return np.log(self.probability)

    @property
    def kappa(self) -> Parameter:
        return self.successes

    def log_partition(self, theta: Parameter) -> FloatArray:
        return -log1mexp(theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return log_rising(kappa, y) - special.gammaln(y + 1.0)

    @property
    def mean(self) -> Parameter:
        return self.successes * self.probability / (1.0 - self.probability)

    @property
    def variance(self) -> Parameter:
        return self.mean / (1.0 - self.probability)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        total = n * self.successes
        return log_binomial(y, total + y, self.probability) + np.log(total / (total + y))

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        floor = np.floor(np.maximum(y, 0.0))
        inside = special.betainc(n * self.successes, floor + 1.0, 1.0 - self.probability)
        return np.where(y >= 0, inside, 0.0)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        draws = rng.negative_binomial(n * self.successes, 1.0 - self.probability)
        return draws.astype(np.float64)

    def scaled_for_observed(self, expected_count: float) -> Self:
        return self.replace(successes=self.successes / expected_count)

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return inside_unit(mean / (mean + self.successes))

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Return the maximum-likelihood element, with successes from 1e-9 to 1e6 unless p is given.

        Data that are not more dispersed than a Poisson give successes = 1e6. Only zeros give a
        probability of 1e-9 and one success (or 1e-9 successes if p is given).
        """
        given = self.parameters
        successes = float(given.get("successes", 0.0)) or _best_successes(
            y, given.get("probability")
        )
        element = self.replace(successes=successes)
        return element if "probability" in given else element.with_mean(float(y.mean()))


def _best_successes(y: FloatArray, probability: Parameter | None) -> float:
    """Return the root of the score in the successes, profiled over p unless it is given."""
    values, counts = np.unique(y, return_counts=True)
    mean = float(y.mean())

    def gain_of_base_measure(r: float) -> float:
        return float(counts @ (special.psi(values + r) - special.psi(r))) / y.size

    if probability is not None:
        log_fail = float(np.log1p(-probability))
        # psi(y + r) - psi(r) <= y/r bounds the root from above.
        limit = max(mean / -log_fail, SMALLEST)
        return root(lambda r: gain_of_base_measure(r) + log_fail, SMALLEST, limit)
    if mean == 0:
        return 1.0
    # A finite maximum exists if and only if the sample is over-dispersed (Levin & Reeds 1977).
    if float(y.var()) <= mean:
        return MAX_SUCCESSES
    return root(
        lambda r: gain_of_base_measure(r) - float(np.log1p(mean / r)), SMALLEST, MAX_SUCCESSES
    )
