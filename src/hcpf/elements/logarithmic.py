"""The logarithmic element, for counts from 1 with a long tail."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import optimize, special

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.domains import POSITIVE_COUNTS, SMALLEST, UNIT_INTERVAL
from hcpf.elements.sampling import sum_of_draws
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

    @property
    def theta(self) -> Parameter:  # noqa: D102
        return np.log(self.probability)

    @property
    def kappa(self) -> Parameter:  # noqa: D102
        return 1.0

    def log_partition(self, theta: ArrayLike) -> FloatArray:  # noqa: D102
        return np.log(-np.log1p(-np.exp(np.asarray(theta, dtype=np.float64))))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:  # noqa: D102
        y, kappa = np.asarray(y, dtype=np.float64), np.asarray(kappa, dtype=np.float64)
        return special.gammaln(kappa + 1.0) + log_stirling1(y, kappa) - special.gammaln(y + 1.0)

    @property
    def mean(self) -> Parameter:  # noqa: D102
        p = self.probability
        return -p / ((1.0 - p) * np.log1p(-p))

    @property
    def variance(self) -> Parameter:  # noqa: D102
        p = self.probability
        log = np.log1p(-p)
        return -p * (p + log) / np.square((1.0 - p) * log)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: D102
        return sum_of_draws(n, self.probability, lambda p: rng.logseries(p).astype(np.float64))

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:  # noqa: D102
        return np.ones_like(y), y

    def maximise_likelihood(self, y: FloatArray) -> Self:
        """Solve for the sample mean; all values 1 gives the smallest probability, 1e-9."""
        mean = float(y.mean())
        if mean - 1.0 <= SMALLEST:
            return self.replace(probability=SMALLEST)

        def excess(t: float) -> float:
            p, rest = special.expit(t), special.expit(-t)
            return float(np.log(-p / (rest * np.log(rest))) - np.log(mean)) if t > -20 else -1.0

        root = optimize.brentq(excess, -20.5, 34.0, xtol=1e-13, rtol=1e-14)
        return self.replace(probability=float(special.expit(root)))
