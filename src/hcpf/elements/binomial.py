"""The binomial element, for ratings and other bounded counts."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.conjugate import BetaConjugate
from hcpf.elements.domains import COUNTS, POSITIVE_INTEGER, SMALLEST, UNIT_INTERVAL
from hcpf.elements.special import digamma, last_rise, log1p_minus, log_binomial, log_rising
from hcpf.errors import ParameterError


class BinomialConjugate(BetaConjugate):
    """The probability is Beta(chi, nu - chi)."""

    max_center = 1.0

    def trials(self, y: FloatArray, kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y, kappa - y

    def shapes(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        return chi, nu - chi

    def mean_of(self, p: FloatArray) -> FloatArray:
        return p

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_fail = digamma(nu - chi)
        return digamma(chi) - log_fail, digamma(nu) - log_fail

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return chi / nu * (1.0 - chi / nu) / (nu + 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Binomial(Element):
    r"""Binomial(trials r, probability p); the sum of n is Binomial(n r, p).

    :math:`\theta = \log\frac{p}{1-p},\ \kappa = r,\ \Psi(\theta) = \log(1 + e^\theta)`
    """

    trials: Parameter = parameter(POSITIVE_INTEGER)
    probability: Parameter = parameter(UNIT_INTERVAL)

    name = "binomial"
    acronym = "BI"
    support = COUNTS
    mean_parameter = "probability"
    count_parameter = "trials"
    kappa_note = "its kappa, the trials, is an integer, so the probability is divided instead"
    conjugate = BinomialConjugate()

    @property
    def theta(self) -> Parameter:
        return special.logit(self.probability)

    @property
    def kappa(self) -> Parameter:
        return self.trials

    def log_partition(self, theta: Parameter) -> FloatArray:
        return np.logaddexp(0.0, theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return log_choose(kappa, y)

    @property
    def mean(self) -> Parameter:
        return self.trials * self.probability

    @property
    def variance(self) -> Parameter:
        return self.trials * self.probability * (1.0 - self.probability)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        total = n * self.trials
        inside = log_binomial(np.minimum(y, total), total, self.probability)
        return np.where(y <= total, inside, -np.inf)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        total = n * self.trials
        floor = np.clip(np.floor(y), 0.0, total - 1.0)
        inside = special.betainc(total - floor, floor + 1.0, 1.0 - self.probability)
        return np.where(y < 0, 0.0, np.where(y >= total, 1.0, inside))

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.binomial((n * self.trials).astype(np.int64), self.probability).astype(np.float64)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.maximum(1.0, np.ceil(y / self.trials)), np.full_like(y, np.inf)

    @property
    def highest(self) -> Parameter:
        return self.trials

    def scaled_for_observed(self, expected_count: float) -> Self:
        # Trials must stay an integer, so divide the mean through the probability instead.
        return self.replace(probability=self.probability / expected_count)

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return np.clip(mean / self.trials, SMALLEST, 1.0 - SMALLEST)

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Return the maximum-likelihood element, with trials of at least the largest value.

        For values at least as dispersed as a Poisson's the likelihood rises with the trials
        without end; they are then 1,000 times the largest value. Probabilities of 0 and 1 are
        moved by 1e-9.
        """
        given = self.parameters
        largest = max(float(y.max()), 1.0)
        trials = float(given.get("trials", 0.0)) or _best_trials(y, given.get("probability"))
        if trials < largest:
            raise ParameterError(
                f"Binomial: trials={trials:g} is below the largest value {largest:g}. Pass "
                f"trials={largest:g} or more, or remove trials= to estimate it."
            )
        element = self.replace(trials=trials)
        return element if "probability" in given else element.with_mean(float(y.mean()))


def log_choose(total: Parameter, y: Parameter) -> FloatArray:
    """Return log C(total, y), -inf where y exceeds the total."""
    rest = np.maximum(total - y, 0.0)
    return np.where(y <= total, log_rising(rest + 1.0, y) - special.gammaln(y + 1.0), -np.inf)


def _best_trials(y: FloatArray, probability: Parameter | None) -> int:
    """Return the trials with the largest likelihood, profiled over p unless it is given.

    The likelihood is unimodal in the trials (Levin & Reeds 1977). For many trials it is so flat
    that the gain of one more trial is computed directly: a difference of likelihoods would cancel.
    """
    values, counts = np.unique(y, return_counts=True)
    mean, largest = float(y.mean()), max(int(y.max()), 1)

    def profile_rises(trials: int) -> bool:
        spread = log1p_minus((mean - values) / (trials + 1.0 - mean))
        return _curvature(trials - mean) - _curvature(trials) > float(counts @ spread) / y.size

    if probability is None:
        return last_rise(profile_rises, largest, 1000 * largest)
    log_fail = float(np.log1p(-probability))

    def rises(trials: int) -> bool:
        return float(counts @ np.log1p(-values / (trials + 1.0))) / y.size < log_fail

    # Above largest / p, one more trial lowers the likelihood of every value.
    return last_rise(rises, largest, int(np.ceil(largest / probability)))


def _curvature(x: float) -> float:
    """Return x log(1 + 1/x) - 1, which approaches -1/(2x)."""
    return x * float(log1p_minus(1.0 / x)) if x > 0 else -1.0
