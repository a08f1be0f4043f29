"""The hurdle distribution: the value of an observed pair does not depend on its rate."""

import numpy as np

from hcpf._types import FloatArray
from hcpf.distributions.pair import Moments, ObservedDistribution, PairDistribution, ValueLaw
from hcpf.distributions.series import single_element
from hcpf.elements.base import Element


class SingleElement(ValueLaw):
    """The value is a single element, whatever n is."""

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
