"""The compound Poisson distribution: the sum of a Poisson number of elements."""

import numpy as np

from hcpf._types import FloatArray
from hcpf.distributions.pair import (
    TINY,
    Moments,
    ObservedDistribution,
    PairDistribution,
    ValueLaw,
)
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element
from hcpf.elements.special import truncated_poisson_moments
from hcpf.elements.sums import poisson_mixture


class SumOfElements(ValueLaw):
    """The value is the sum of all n elements."""

    def log_density(self, element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
        return sum_over_n(element, y, rate).log_sum

    def cdf(self, element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
        closed = element.compound_cdf(y, rate)
        if closed is not None:
            return closed
        # As a function of n, the cdf at y falls around n = y / mean.
        smoothness = element.variance / np.maximum(np.square(element.mean), TINY)
        return poisson_mixture(
            rate, lambda index, n: element.at(index).cdf_unchecked(y[index], n), smoothness
        )

    def summed(self, n: FloatArray) -> FloatArray:
        return n

    def count_moments(self, rate: FloatArray) -> Moments:
        return rate, rate

    def count_moments_observed(self, rate: FloatArray) -> Moments:
        return truncated_poisson_moments(rate)

    def highest(self, element: Element, rate: FloatArray) -> FloatArray:
        return np.where(rate > 0, np.inf, element.highest)

    def log_prob_zero(self, element: Element) -> FloatArray | float | None:
        has_zero = element.support.discrete and element.support.has_zero
        if has_zero and np.any(element.variance_of_mean):
            return None  # elements that share an uncertain theta are not independent
        return element.log_prob_zero


class ObservedCompoundPoisson(ObservedDistribution):
    """The sum of N elements given N >= 1: the value of an observed pair."""

    law = SumOfElements()


class CompoundPoisson(PairDistribution):
    r"""The sum of N ~ Poisson(rate) elements, 0 (missing) where N = 0.

    Parameters
    ----------
    rate
        The Poisson rate :math:`\Lambda`, a number or an array; 0 means never observed.
    element
        The element distribution, with all parameters set.

    Examples
    --------
    >>> from hcpf.elements import Gamma
    >>> spend = CompoundPoisson(rate=0.1, element=Gamma(shape=2, rate=0.05))
    >>> round(float(spend.prob_observed), 4)
    0.0952
    >>> round(float(spend.mean_observed), 2)  # spend of those who buy
    42.03
    >>> [round(float(x), 1) for x in spend.observed.interval(0.9)]
    [7.3, 101.1]
    """

    law = SumOfElements()
    observed_type = ObservedCompoundPoisson
