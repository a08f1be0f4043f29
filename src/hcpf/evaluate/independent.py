"""Pairs whose value has nothing to do with whether they are observed."""

from dataclasses import dataclass

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.distributions.compound import ObservedCompoundPoisson
from hcpf.elements.base import Element


class OneElement(ObservedCompoundPoisson):
    """The value of a pair as one element: X++ in the limit of rate 0, without a sum over n."""

    def log_density(self, y: ArrayLike) -> FloatArray:
        """Log density (or mass) of the value ``y``."""
        return self.element.log_density(y)

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of a value of at most ``y``."""
        return self.element.cdf(y)


@dataclass(frozen=True, eq=False)
class Independent:
    r"""A pair is observed with probability :math:`1 - e^{-\Lambda}`; its value is one element.

    Examples
    --------
    >>> from hcpf.elements import Gamma
    >>> spend = Independent(np.array([0.1, 3.0]), Gamma(shape=2, rate=0.05))
    >>> spend.prob_observed.round(3), spend.mean_observed
    (array([0.095, 0.95 ]), array([40., 40.]))
    """

    rate: FloatArray
    element: Element

    @property
    def prob_observed(self) -> FloatArray:
        """Probability that the pair is observed."""
        return -np.expm1(-self.rate)

    @property
    def observed(self) -> OneElement:
        """The distribution of the value."""
        return OneElement(np.zeros_like(self.rate), self.element)

    @property
    def mean_observed(self) -> FloatArray:
        """Expected value given that the pair is observed."""
        return np.broadcast_to(self.element.mean, self.rate.shape)

    @property
    def mean(self) -> FloatArray:
        """Expected total, 0 for those that are not observed included."""
        return self.prob_observed * self.mean_observed

    def log_density(self, y: ArrayLike) -> FloatArray:
        """Log density of observing the value ``y``."""
        with np.errstate(divide="ignore"):  # -inf where the pair is never observed
            return np.log(self.prob_observed) + self.element.log_density(y)
