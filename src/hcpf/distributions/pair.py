"""Distributions of a pair: missing with probability exp(-rate), otherwise a value.

Throughout, N ~ Poisson(rate) and N = 0 means that the pair is missing. ``X+`` is the value of a
pair, 0 where it is missing, and ``X++`` is X+ given N >= 1. How the N elements of an observed pair
make up its value is a ``ValueLaw``: their sum (compound Poisson) or a single one (hurdle).
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.distributions.quantile import invert_cdf
from hcpf.elements.base import Element
from hcpf.elements.domains import Domain, as_float_array, check_not_nan, check_rng
from hcpf.elements.sums import truncated_poisson
from hcpf.errors import IncompleteElementError, InputError

Moments = tuple[FloatArray, FloatArray]
"""Mean and variance of the number of elements that make up a value."""

_RATE = Domain("finite and 0 or more", lambda x: x >= 0)
TINY = 1e-300
"""Replaces a rate of 0, whose limit is meant."""
_CHUNK = 1 << 14  # pairs whose cdf is summed at once


class ValueLaw(ABC):
    """How the n >= 1 elements of an observed pair make up its value."""

    @abstractmethod
    def log_density(self, element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the log density of N >= 1 and the value y."""

    @abstractmethod
    def cdf(self, element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
        """Return Pr(N >= 1 and the value <= y), for flat arrays."""

    @abstractmethod
    def summed(self, n: FloatArray) -> FloatArray:
        """Return how many elements make up the value of a pair that has n."""

    @abstractmethod
    def count_moments(self, rate: FloatArray) -> Moments:
        """Return the moments of ``summed(N)``, 0 for a missing pair."""

    @abstractmethod
    def count_moments_observed(self, rate: FloatArray) -> Moments:
        """Return the moments of ``summed(N)`` given N >= 1."""

    @abstractmethod
    def highest(self, element: Element, rate: FloatArray) -> FloatArray:
        """Return the largest value that an observed pair can have."""

    @abstractmethod
    def log_prob_zero(self, element: Element) -> FloatArray | float | None:
        """Return log Pr(one element is 0) where elements count independently, else None."""


@dataclass(frozen=True, eq=False)
class Distribution(ABC):
    """What X+ and X++ share."""

    law: ClassVar[ValueLaw]

    rate: FloatArray
    element: Element

    def __init__(self, rate: ArrayLike, element: Element) -> None:
        if not isinstance(element, Element):
            raise InputError(f"element must be an Element such as Gamma(2, 1), got {element!r}.")
        if not element.is_complete:
            raise IncompleteElementError(
                f"{element!r} has parameters that are not set. Pass them, or estimate them with "
                "complete(y)."
            )
        object.__setattr__(self, "rate", np.asarray(_RATE.check(type(self).__name__, "rate", rate)))
        object.__setattr__(self, "element", element)

    # X+ and X++ differ in these.

    @property
    @abstractmethod
    def _log_mass(self) -> FloatArray:
        """Log of the probability to divide by; infinite if the pair is never observed."""

    @property
    @abstractmethod
    def _count_moments(self) -> Moments:
        """Mean and variance of the number of elements in a value."""

    @abstractmethod
    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw N."""

    @abstractmethod
    def _from_observed(self, probability: FloatArray, y: FloatArray) -> FloatArray:
        """Return the cdf at y, from Pr(N >= 1 and the value <= y)."""

    @property
    @abstractmethod
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest value."""

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
        """The variance, infinite where it does not exist: see ``Integrated.variance``."""
        mean, variance = self._count_moments
        with np.errstate(invalid="ignore"):  # no elements of infinite variance
            within = mean * self.element.variance + variance * np.square(self.element.mean)
            shared = (variance + np.square(mean)) * self.element.variance_of_mean
        return np.where(mean > 0, within + shared, 0.0)

    def log_density(self, y: ArrayLike) -> FloatArray:
        r"""Return the log density of observing the value ``y``.

        Compound Poisson: :math:`\log \sum_{n \ge 1} \mathrm{Po}(n \mid \Lambda)\, p(y \mid n)`.
        Hurdle: :math:`\log(1 - e^{-\Lambda}) + \log p(y)`. For X++ less
        :math:`\log(1 - e^{-\Lambda})`.
        """
        values = self.element.support.check(type(self.element).__name__, y)
        total = self.law.log_density(self.element, values, np.maximum(self.rate, TINY))
        return np.where(self.rate > 0, total, self.element.log_density(values)) - self._log_mass

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Return the probability of a value of at most ``y`` (any real ``y``)."""
        points = check_not_nan(y, "cdf: y")
        shape = np.broadcast_shapes(points.shape, self.shape)
        flat, points = self._flattened(shape), np.broadcast_to(points, shape).ravel()
        out = np.empty(points.shape)
        for start in range(0, points.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            with np.errstate(over="ignore"):
                out[part] = flat._cdf_chunk(points[part], part)
        return out.reshape(shape)

    def _cdf_chunk(self, y: FloatArray, index: Any) -> FloatArray:
        """Return the cdf of the pairs of a flat distribution that ``index`` selects."""
        chosen = self.at(index)
        observed = self.law.cdf(chosen.element, y, np.maximum(chosen.rate, TINY))
        return np.clip(chosen._from_observed(observed, y), 0.0, 1.0)

    def _flattened(self, shape: tuple[int, ...]) -> Self:
        """Broadcast the rates and the array parameters to ``shape``, and flatten them."""
        rate = np.broadcast_to(self.rate, shape).ravel()
        return self._like(rate, self.element.broadcast_to(shape))

    def at(self, index: Any) -> Self:
        """Select pairs as NumPy would."""
        return self._like(self.rate[index], self.element.at(index))

    def _like(self, rate: FloatArray, element: Element) -> Self:
        """Return a distribution of checked parts, without checking them again."""
        other = object.__new__(type(self))
        object.__setattr__(other, "rate", rate)
        object.__setattr__(other, "element", element)
        return other

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Return the smallest value whose cdf is at least ``q``; the ends of the range at 0, 1."""
        levels = as_float_array(q, "q")
        if not np.all((levels >= 0) & (levels <= 1)):
            raise InputError(f"quantile: q must lie between 0 and 1, got {q!r}.")
        shape = np.broadcast_shapes(levels.shape, self.shape)
        flat, levels = self._flattened(shape), np.broadcast_to(levels, shape)
        lowest, highest = self._ends
        quantiles = invert_cdf(
            lambda y, index: flat.at(index).cdf(y),
            np.clip(levels, TINY, np.nextafter(1.0, 0.0)).ravel(),
            mean=np.broadcast_to(self.mean, shape).ravel(),
            spread=np.broadcast_to(np.sqrt(self.variance), shape).ravel(),
            discrete=self.element.support.discrete,
        )
        inside = np.where(levels >= 1, highest, quantiles.reshape(shape))
        return np.where(levels <= 0, lowest, inside)

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the equal-tailed interval of probability ``level``."""
        tail = tail_of(level)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def sample(
        self, size: int | Sequence[int] | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """Draw values; ``size`` comes before the shape of the rates."""
        counts = self._draw_counts(_as_shape(size) + self.shape, check_rng(rng))
        return self.element.sample(self.law.summed(counts), rng)


class ObservedDistribution(Distribution):
    """X++: the value of a pair given that it is observed (N >= 1).

    A rate of 0 is the limit of extreme sparsity, where X++ is one element.
    """

    @property
    def _log_mass(self) -> FloatArray:
        return np.where(self.rate > 0, np.log(-np.expm1(-np.maximum(self.rate, TINY))), 0.0)

    @property
    def _count_moments(self) -> Moments:
        return self.law.count_moments_observed(np.maximum(self.rate, TINY))

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return truncated_poisson(np.broadcast_to(np.maximum(self.rate, TINY), shape), rng)

    def _from_observed(self, probability: FloatArray, y: FloatArray) -> FloatArray:
        return probability / -np.expm1(-np.maximum(self.rate, TINY))

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        return np.asarray(self.element.support.lowest), self.law.highest(self.element, self.rate)


class PairDistribution(Distribution):
    """X+: the value of a pair, 0 where it is missing."""

    observed_type: ClassVar[type[ObservedDistribution]]

    @property
    def prob_observed(self) -> FloatArray:
        r"""Pr(N >= 1) = :math:`1 - e^{-\Lambda}`: the probability that the pair is observed."""
        return -np.expm1(-self.rate)

    @property
    def prob_zero(self) -> FloatArray:
        r"""Pr(X+ = 0).

        :math:`e^{-\Lambda(1 - p_0)}` with p0 the element's own mass at 0, where the value is a sum
        of independent elements; otherwise :math:`e^{-\Lambda}` plus the mass of an observed 0.
        """
        log_prob_zero = self.law.log_prob_zero(self.element)
        if log_prob_zero is None:
            return np.exp(-self.rate) + np.exp(self.log_density(np.zeros(self.shape)))
        return np.exp(self.rate * np.expm1(log_prob_zero))

    @property
    def observed(self) -> ObservedDistribution:
        """X++: the same distribution given N >= 1."""
        return self.observed_type(self.rate, self.element)

    @property
    def mean_observed(self) -> FloatArray:
        """E[X++], the expected value of a pair that is observed."""
        return self.observed.mean

    def log_density_observed(self, y: ArrayLike) -> FloatArray:
        """Return the log density of X++ at ``y``."""
        return self.observed.log_density(y)

    @property
    def _log_mass(self) -> FloatArray:
        return np.where(self.rate > 0, 0.0, np.inf)

    @property
    def _count_moments(self) -> Moments:
        return self.law.count_moments(self.rate)

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return rng.poisson(np.broadcast_to(self.rate, shape)).astype(np.float64)

    def _from_observed(self, probability: FloatArray, y: FloatArray) -> FloatArray:
        return np.exp(-self.rate) * (y >= 0) + np.where(self.rate > 0, probability, 0.0)

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        is_possible = self.rate > 0
        lowest = min(self.element.support.lowest, 0.0)
        highest = np.maximum(self.law.highest(self.element, self.rate), 0.0)
        return np.where(is_possible, lowest, 0.0), np.where(is_possible, highest, 0.0)


def tail_of(level: float) -> float:
    """Return the probability on either side of a central interval, or raise an InputError."""
    share = as_float_array(level, "level")
    if share.ndim or not 0 < share < 1:
        raise InputError(f"interval: level must lie strictly between 0 and 1, got {level!r}.")
    return 0.5 * (1.0 - float(share))


def _as_shape(size: int | Sequence[int] | None) -> tuple[int, ...]:
    try:
        shape = () if size is None else tuple(size) if isinstance(size, Sequence) else (size,)
        shape = tuple(map(operator.index, shape))
    except TypeError:
        shape = (-1,)
    if any(length < 0 for length in shape):
        raise InputError(f"sample: size must be integers, 0 or more, got {size!r}.")
    return shape
