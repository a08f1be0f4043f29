"""The binomial element, for ratings and other bounded counts."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._special import log_rising
from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.domains import COUNTS, POSITIVE_INTEGER, SMALLEST, UNIT_INTERVAL
from hcpf.elements.search import maximise_over_integers
from hcpf.errors import ParameterError


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

    @property
    def theta(self) -> Parameter:  # noqa: D102
        return special.logit(self.probability)

    @property
    def kappa(self) -> Parameter:  # noqa: D102
        return self.trials

    def log_partition(self, theta: ArrayLike) -> FloatArray:  # noqa: D102
        return np.logaddexp(0.0, np.asarray(theta, dtype=np.float64))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:  # noqa: D102
        return log_choose(np.asarray(kappa, dtype=np.float64), np.asarray(y, dtype=np.float64))

    @property
    def mean(self) -> Parameter:  # noqa: D102
        return self.trials * self.probability

    @property
    def variance(self) -> Parameter:  # noqa: D102
        return self.trials * self.probability * (1.0 - self.probability)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:  # noqa: D102
        total, p = n * self.trials, self.probability
        fails = np.maximum(total - y, 0.0)
        return log_choose(total, y) + y * np.log(p) + fails * np.log1p(-p)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:  # noqa: D102
        total = n * self.trials
        whole = np.clip(np.floor(y), 0.0, total - 1.0)
        inside = special.betainc(total - whole, whole + 1.0, 1.0 - self.probability)
        return np.where(y < 0, 0.0, np.where(y >= total, 1.0, inside))

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: D102
        return rng.binomial((n * self.trials).astype(np.int64), self.probability).astype(np.float64)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:  # noqa: D102
        return np.maximum(1.0, np.ceil(y / self.trials)), np.full_like(y, np.inf)

    def maximise_likelihood(self, y: FloatArray) -> Self:
        """Maximum likelihood with at least as many trials as the largest value.

        Values at least as dispersed as a Poisson's have no best finite number of trials; the
        limit is then 1,000 times the largest value. A probability of 0 or 1 is moved to 1e-9
        from the edge.
        """
        given = self.parameters
        largest, mean = max(float(y.max()), 1.0), float(y.mean())
        if "trials" in given:
            trials = float(given["trials"])
            if trials < largest:
                raise ParameterError(
                    f"Binomial: trials={trials:g} is below the largest value {largest:g}; give at "
                    f"least {largest:g}, or leave trials out."
                )
        else:
            values, counts = np.unique(y, return_counts=True)

            def likelihood(trials: int) -> float:
                p = given.get("probability", _inside_unit(mean / trials))
                element = Binomial(trials=trials, probability=p)
                return float(counts @ element.log_density_unchecked(values, np.ones_like(values)))

            trials = maximise_over_integers(likelihood, int(largest), 1000 * int(largest))
        return self.replace(
            trials=trials, probability=given.get("probability", _inside_unit(mean / trials))
        )


def log_choose(total: FloatArray, y: FloatArray) -> FloatArray:
    """log C(total, y), -inf where y exceeds the total."""
    rest = np.maximum(total - y, 0.0)
    return np.where(y <= total, log_rising(rest + 1.0, y) - special.gammaln(y + 1.0), -np.inf)


def _inside_unit(p: float) -> float:
    return min(max(p, SMALLEST), 1.0 - SMALLEST)
