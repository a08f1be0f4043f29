"""The value of a pair: the sum of a Poisson number of elements, or (hurdle) a single element."""

import numpy as np

from hcpf._types import FloatArray
from hcpf.distributions.pair import (
    TINY,
    Moments,
    ObservedDistribution,
    PairDistribution,
    ValueLaw,
)
from hcpf.distributions.series import single_element, sum_over_n
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
        # As a function of n, the cdf at y falls around n = y / mean; an uncertain theta only
        # smooths it further.
        known = element.at_expected_mean
        smoothness = known.variance / np.maximum(np.square(known.mean), TINY)
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
        if has_zero and element.shares_theta:
            return None
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


# -- hurdle ----------------------------------------------------------------------------------------


class SingleElement(ValueLaw):
    """The value is a single element for every n."""

    def log_density(self, element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
        return single_element(element, y, rate).log_sum

    def cdf(self, element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
        return -np.expm1(-rate) * element.cdf_unchecked(y, np.ones_like(y))

    def summed(self, n: FloatArray) -> FloatArray:
        return np.minimum(n, 1.0)

    def count_moments(self, rate: FloatArray) -> Moments:
        observed = -np.expm1(-rate)
        return observed, observed * np.exp(-rate)

    def count_moments_observed(self, rate: FloatArray) -> Moments:
        return np.ones_like(rate), np.zeros_like(rate)

    def highest(self, element: Element, rate: FloatArray) -> FloatArray:
        return np.asarray(element.highest)

    def log_prob_zero(self, element: Element) -> FloatArray | float | None:
        return -np.inf if np.all(np.isneginf(element.log_prob_zero)) else None


class ObservedHurdle(ObservedDistribution):
    """The value of an observed pair, a single element."""

    law = SingleElement()


class Hurdle(PairDistribution):
    r"""A pair observed with probability :math:`1 - e^{-\Lambda}` whose value is a single element.

    Parameters
    ----------
    rate
        The Poisson rate :math:`\Lambda`, a number or an array; 0 means never observed.
    element
        The distribution of an observed value, with all parameters set.

    Examples
    --------
    >>> from hcpf.elements import Gamma
    >>> spend = Hurdle(np.array([0.1, 3.0]), Gamma(shape=2, rate=0.05))
    >>> spend.prob_observed.round(3), spend.mean_observed
    (array([0.095, 0.95 ]), array([40., 40.]))
    """

    law = SingleElement()
    observed_type = ObservedHurdle
