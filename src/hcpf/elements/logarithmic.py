"""The logarithmic element, for counts from 1 with a long tail."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.by_mode import LogarithmicMode, logarithmic_probability
from hcpf.elements.domains import POSITIVE_COUNTS, UNIT_INTERVAL
from hcpf.elements.lattice import circle, masses_from_characteristic
from hcpf.elements.sampling import sum_of_draws
from hcpf.elements.special import log1mexp, log1p_minus, log_characteristic_logarithmic
from hcpf.elements.stirling import log_stirling1


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
    conjugate = LogarithmicMode()

    @property
    def theta(self) -> Parameter:
        return np.log(self.probability)

    @property
    def kappa(self) -> Parameter:
        return 1.0

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        return np.log(-log1mexp(theta))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        y, kappa = np.asarray(y, dtype=np.float64), np.asarray(kappa, dtype=np.float64)
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

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        """Pr(0 < X+ <= y): X+ is negative binomial with rate / -log(1 - p) successes."""
        p = self.probability
        whole = np.floor(np.maximum(y, 0.0))
        above = special.betainc(whole + 1.0, rate / -np.log1p(-p), p)
        return np.maximum(-np.expm1(-rate) - above, 0.0)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), y

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return logarithmic_probability(np.asarray(mean))

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Solve for the sample mean, with p between 1e-9 (all values 1) and 1 - 1e-15."""
        return self.with_mean(float(y.mean()))
