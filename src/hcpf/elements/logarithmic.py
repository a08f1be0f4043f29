"""The logarithmic element, for counts from 1 with a long tail."""

from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.conjugate import MeanInverse, ModeConjugate
from hcpf.elements.domains import POSITIVE_COUNTS, SMALLEST, UNIT_INTERVAL
from hcpf.elements.special import log1mexp, log1p_minus, log_characteristic_logarithmic
from hcpf.elements.stirling import log_stirling1
from hcpf.elements.sums import circle, masses_from_characteristic, sum_of_draws

_MIN_TAIL = 60
"""The first value whose tail is summed by an asymptotic series, to an error below 1e-12."""


class LogarithmicConjugate(ModeConjugate):
    """Psi(theta) = log(-log(1 - e^theta)), with theta = log p."""

    def theta_at(self, mean: FloatArray) -> FloatArray:
        return np.log(probability_for_mean(mean))

    def psi(self, theta: FloatArray) -> FloatArray:
        return np.log(-log1mexp(theta))

    def position(self, theta: FloatArray) -> FloatArray:
        return theta - log1mexp(theta)  # logit p

    def theta_of(self, position: FloatArray) -> FloatArray:
        return -np.logaddexp(0.0, -position)

    def slope(self, theta: FloatArray) -> FloatArray:
        return -1.0 / np.expm1(theta)

    def excess_at(self, theta: FloatArray) -> FloatArray:
        p, fail, log_fail = np.exp(theta), -np.expm1(theta), log1mexp(theta)
        return (p * log_fail - _log_fail_plus(p, log_fail)) / (fail * log_fail)

    def curvature(self, theta: FloatArray) -> FloatArray:
        p, log_fail = np.exp(theta), log1mexp(theta)
        return -p * _log_fail_plus(p, log_fail) / np.square(np.expm1(theta) * log_fail)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        # Near theta = 0, E[Psi'^2] is the integral of 1 / (theta^2 log(-1/theta)^(2 + nu)).
        return np.full_like(chi, np.inf)


def _log_fail_plus(p: FloatArray, log_fail: FloatArray) -> FloatArray:
    """Return log(1 - p) + p without cancellation near 0, and with the digits of 1 - p near 1."""
    return np.where(p < 0.5, log1p_minus(-np.minimum(p, 0.5)), log_fail + p)


def probability_for_mean(mean: FloatArray) -> FloatArray:
    """Solve mean = -p / ((1 - p) log(1 - p)) for p, elementwise, inside [1e-9, 1 - 1e-15]."""
    log_mean = np.log(np.maximum(np.asarray(mean, dtype=np.float64), 1.0))
    with np.errstate(divide="ignore"):
        return special.expit(_logit_for_mean()(np.log(log_mean)))


@cache
def _logit_for_mean() -> MeanInverse:
    """Tabulate t = logit p; the log of the mean is t - log log(1 + e^t), about e^t / 2 near 0."""
    t = MeanInverse.nodes(special.logit(SMALLEST), 34.0)
    odds, soft = np.exp(t), np.logaddexp(0.0, t)
    small = t < -12.0
    log_mean = np.where(small, odds * (0.5 - odds * 5.0 / 24.0), t - np.log(soft))
    slope = np.where(small, odds * (0.5 - odds * 5.0 / 12.0), 1.0 - special.expit(t) / soft)
    return MeanInverse(t, log_mean, slope)


def _sum_beyond(y: FloatArray, a: FloatArray) -> FloatArray:
    r"""Return the sum of e^(-a k) / k over all integers k above y, at least 1.

    It is :math:`\int_a^\infty e^{-(y+1)s}/(1 - e^{-s})\,ds`. For large y only small s count, where
    1/(1 - e^-s) is 1/s + 1/2 + s/12 - s^3/720; for small y the first terms are added one by one.
    """
    y, a = np.broadcast_arrays(y, a)
    start = np.maximum(y, _MIN_TAIL)
    total = np.zeros(y.shape)
    for k in range(2, _MIN_TAIL + 1):
        total += np.where(k > y, np.exp(-a * k) / k, 0.0)
    m = start + 1.0
    with np.errstate(under="ignore"):
        r, decay = 1.0 / m, np.exp(-a * m)
        cubic = r * (a**3 + r * (3.0 * a * a + r * (6.0 * a + 6.0 * r)))
        tail = 0.5 * r + r * (a + r) / 12.0 - cubic / 720.0
        return total + special.exp1(a * m) + np.where(decay > 0, decay * tail, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Logarithmic(Element):
    r"""Logarithmic series on 1, 2, ...: mass p^y / (-y log(1 - p)).

    :math:`\theta = \log p,\ \kappa = 1,\ \Psi(\theta) = \log(-\log(1 - e^\theta))`, and the base
    measure of the sum of n is :math:`n!\,|s(y, n)|/y!` with Stirling numbers of the first kind.
    """

    probability: Parameter = parameter(UNIT_INTERVAL)

    name = "logarithmic"
    acronym = "LOG"
    support = POSITIVE_COUNTS
    mean_parameter = "probability"
    conjugate = LogarithmicConjugate()

    @property
    def theta(self) -> Parameter:
        return np.log(self.probability)

    def log_partition(self, theta: Parameter) -> FloatArray:
        return np.log(-log1mexp(theta))

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return special.gammaln(kappa + 1.0) + log_stirling1(y, kappa) - special.gammaln(y + 1.0)

    @property
    def mean(self) -> Parameter:
        p = self.probability
        return -p / ((1.0 - p) * np.log1p(-p))

    @property
    def variance(self) -> Parameter:
        p = self.probability
        return -p * log1p_minus(-p) / np.square((1.0 - p) * np.log1p(-p))

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return sum_of_draws(n, self.probability, lambda p: rng.logseries(p).astype(np.float64))

    def masses(self, values: FloatArray, n: float) -> FloatArray:
        characteristic = log_characteristic_logarithmic(self.probability, circle(values))
        return masses_from_characteristic(characteristic, values, n)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        if np.any(n != 1):
            return super().cdf_unchecked(y, n)
        p = np.asarray(self.probability)
        floor = np.floor(np.clip(y, 1.0, 1e300))
        above = _sum_beyond(floor, -np.log(p)) / -np.log1p(-p)
        return np.where(y >= 1, np.clip(1.0 - above, 0.0, 1.0), 0.0)

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        # A Poisson sum of logarithmic variables is negative binomial (Quenouille 1949), with
        # rate / -log(1 - p) successes.
        p = self.probability
        floor = np.floor(np.maximum(y, 0.0))
        above = special.betainc(floor + 1.0, rate / -np.log1p(-p), p)
        return np.maximum(-np.expm1(-rate) - above, 0.0)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), y

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return probability_for_mean(np.asarray(mean))

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Return the element with the sample mean; p is at least 1e-9 and at most 1 - 1e-15."""
        return self.with_mean(float(y.mean()))
