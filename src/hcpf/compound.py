"""The compound Poisson distribution: a Poisson number of elements, summed.

Throughout, ``X+`` is the sum of N ~ Poisson(rate) elements, N = 0 meaning that the entry is
missing, and ``X++`` is X+ given N >= 1: the value of an entry that is observed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hcpf._quantile import invert_cdf
from hcpf._series import sum_over_n
from hcpf._special import log_poisson
from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element
from hcpf.elements.domains import Domain, as_float_array
from hcpf.elements.sampling import truncated_poisson
from hcpf.errors import InputError

_RATE = Domain("finite and 0 or more", lambda x: x >= 0)
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class _Compound:
    """What X+ and X++ share: a mixture over n of sums of n elements."""

    rate: FloatArray
    element: Element

    def __init__(self, rate: ArrayLike, element: Element) -> None:
        if not isinstance(element, Element):
            raise InputError(f"element must be an Element such as Gamma(2, 1), got {element!r}.")
        if not element.is_complete:
            raise InputError(f"{element!r} has parameters left out: give them or estimate them.")
        object.__setattr__(self, "rate", np.asarray(_RATE.check(type(self).__name__, "rate", rate)))
        object.__setattr__(self, "element", element)

    @property
    def _missing(self) -> FloatArray:
        """The probability of N = 0 in this distribution."""
        raise NotImplementedError

    @property
    def _log_normaliser(self) -> FloatArray:
        """The log of the mass of Poisson(rate) that this distribution covers."""
        raise NotImplementedError

    @property
    def _count_moments(self) -> tuple[FloatArray, FloatArray]:
        """The mean and the variance of N."""
        raise NotImplementedError

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        raise NotImplementedError

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rates and parameters, broadcast."""
        return np.broadcast_shapes(
            self.rate.shape, *(np.shape(value) for value in self.element.parameters.values())
        )

    @property
    def mean(self) -> FloatArray:
        """The expected value."""
        return np.asarray(self._count_moments[0] * self.element.mean)

    @property
    def variance(self) -> FloatArray:
        """The variance."""
        mean, variance = self._count_moments
        return np.asarray(mean * self.element.variance + variance * np.square(self.element.mean))

    def log_density(self, y: ArrayLike) -> FloatArray:
        """Log density of observing the value ``y``, summed over n >= 1."""
        values = self.element.support.check(type(self.element).__name__, y)
        rate = np.maximum(self.rate, _TINY)
        found = sum_over_n(self.element, values, rate).log_sum - self._log_normaliser
        return np.where(self.rate > 0, found, self._log_density_at_zero_rate(values))

    def _log_density_at_zero_rate(self, y: FloatArray) -> FloatArray:
        raise NotImplementedError

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of a value of at most ``y``."""
        points = as_float_array(y, "y")
        if np.any(np.isnan(points)):
            raise InputError("cdf: y must not be NaN.")
        return np.minimum(self._missing * (points >= 0) + self._observed_cdf(points), 1.0)

    def _observed_cdf(self, y: FloatArray) -> FloatArray:
        """Pr(N >= 1 and value <= y), as a sum over the n that matter."""
        rate = np.maximum(self.rate, _TINY)
        reach = 9.0 * np.sqrt(rate) + 20.0
        first = np.maximum(1.0, np.floor(rate - reach))
        total = np.zeros(np.broadcast_shapes(y.shape, self.shape))
        for step in range(int(np.ceil(2.0 * np.max(reach, initial=0.0))) + 1):
            n = first + step
            weight = np.exp(log_poisson(n, rate) - self._log_normaliser)
            total = total + weight * self.element.cdf_unchecked(y, n)
            if np.all((weight < 1e-18) & (n > rate)):
                break
        return total

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The smallest value whose cdf is at least ``q``."""
        levels = as_float_array(q, "q")
        if not np.all((levels >= 0) & (levels <= 1)):
            raise InputError(f"quantile: q must lie between 0 and 1, got {q!r}.")
        shape = np.broadcast_shapes(levels.shape, self.shape)
        return invert_cdf(
            self.cdf,
            np.broadcast_to(levels, shape),
            mean=np.broadcast_to(self.mean, shape),
            spread=np.broadcast_to(np.sqrt(self.variance), shape),
            support=self.element.support,
            mass_at_zero=np.broadcast_to(self._missing, shape),
        )

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """The equal-tailed interval that holds a share ``level`` of the distribution."""
        if not 0 < level < 1:
            raise InputError(f"interval: level must lie strictly between 0 and 1, got {level!r}.")
        tail = 0.5 * (1.0 - level)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def sample(
        self, size: int | tuple[int, ...] | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """Draw values; ``size`` comes before the shape of the rates."""
        lead = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        return self.element.sample(self._draw_counts(lead + self.shape, rng), rng)


class CompoundPoisson(_Compound):
    r"""X+: the sum of N ~ Poisson(rate) elements, 0 (missing) where N = 0.

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
    >>> round(float(spend.mean_observed), 2)    # of those who buy
    42.03
    >>> [round(float(x), 1) for x in spend.observed.interval(0.9)]
    [7.3, 99.6]
    """

    @property
    def prob_observed(self) -> FloatArray:
        r"""Pr(N >= 1) = :math:`1 - e^{-\Lambda}`: the probability that the entry is observed."""
        return -np.expm1(-self.rate)

    @property
    def prob_zero(self) -> FloatArray:
        r"""Pr(X+ = 0) = :math:`e^{-\Lambda(1 - p_0)}`, with p0 the element's own mass at 0."""
        return np.exp(self.rate * np.expm1(self.element.log_prob_zero))

    @property
    def observed(self) -> "ObservedCompoundPoisson":
        """X++: the same distribution given N >= 1."""
        return ObservedCompoundPoisson(self.rate, self.element)

    @property
    def mean_observed(self) -> FloatArray:
        r"""E[X++] = :math:`\frac{\Lambda}{1 - e^{-\Lambda}} E[X]`."""
        return self.observed.mean

    def log_density_observed(self, y: ArrayLike) -> FloatArray:
        """Log density of X++ at ``y``."""
        return self.observed.log_density(y)

    @property
    def _missing(self) -> FloatArray:
        return np.exp(-self.rate)

    @property
    def _log_normaliser(self) -> FloatArray:
        return np.zeros(())

    @property
    def _count_moments(self) -> tuple[FloatArray, FloatArray]:
        return self.rate, self.rate

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return rng.poisson(np.broadcast_to(self.rate, shape)).astype(np.float64)

    def _log_density_at_zero_rate(self, y: FloatArray) -> FloatArray:
        return np.full(y.shape, -np.inf)


class ObservedCompoundPoisson(_Compound):
    """X++: the value of an entry given that it is observed (N >= 1).

    A rate of 0 is the limit of extreme sparsity, where X++ is one element.
    """

    @property
    def _missing(self) -> FloatArray:
        return np.zeros(())

    @property
    def _log_normaliser(self) -> FloatArray:
        return np.log(-np.expm1(-np.maximum(self.rate, _TINY)))

    @property
    def _count_moments(self) -> tuple[FloatArray, FloatArray]:
        rate = np.maximum(self.rate, _TINY)
        mean = rate / -np.expm1(-rate)
        return mean, np.maximum(mean * (1.0 + rate - mean), 0.0)

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return truncated_poisson(np.broadcast_to(np.maximum(self.rate, _TINY), shape), rng)

    def _log_density_at_zero_rate(self, y: FloatArray) -> FloatArray:
        return self.element.log_density_unchecked(y, np.ones(()))
