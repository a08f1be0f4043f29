"""The compound Poisson distribution: a Poisson number of elements, summed.

Throughout, ``X+`` is the sum of N ~ Poisson(rate) elements, N = 0 meaning that the entry is
missing, and ``X++`` is X+ given N >= 1: the value of an entry that is observed.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.distributions.quantile import invert_cdf
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element
from hcpf.elements.domains import Domain, as_float_array, check_not_nan, check_rng
from hcpf.elements.mixture import poisson_mixture
from hcpf.elements.sampling import truncated_poisson
from hcpf.elements.special import truncated_poisson_moments
from hcpf.errors import IncompleteElementError, InputError

_RATE = Domain("finite and 0 or more", lambda x: x >= 0)
_TINY = 1e-300  # stands in for a rate of 0 where the limit is meant
_CHUNK = 1 << 14  # entries whose cdf is summed at once


@dataclass(frozen=True, eq=False)
class _Compound:
    """What X+ and X++ share: a mixture over n of sums of n elements."""

    rate: FloatArray
    element: Element

    def __init__(self, rate: ArrayLike, element: Element) -> None:
        if not isinstance(element, Element):
            raise InputError(f"element must be an Element such as Gamma(2, 1), got {element!r}.")
        if not element.is_complete:
            raise IncompleteElementError(
                f"{element!r} has parameters left out: give them, or call complete(y) to "
                "estimate them."
            )
        object.__setattr__(self, "rate", np.asarray(_RATE.check(type(self).__name__, "rate", rate)))
        object.__setattr__(self, "element", element)

    # X+ and X++ differ in these: the number N of elements, and what N = 0 means.

    @property
    def _log_mass(self) -> FloatArray:
        """What to take off the log of the sum over n >= 1; infinite where none is ever observed."""
        raise NotImplementedError

    @property
    def _count_moments(self) -> tuple[FloatArray, FloatArray]:
        """The mean and the variance of how many elements are summed: N, or whether N >= 1."""
        raise NotImplementedError

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        raise NotImplementedError

    def _from_observed(self, probability: FloatArray, y: FloatArray) -> FloatArray:
        """Return the cdf at y, from Pr(N >= 1 and X+ <= y)."""
        raise NotImplementedError

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest value."""
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
        within = mean * self.element.variance + variance * np.square(self.element.mean)
        return np.asarray(within + (variance + np.square(mean)) * self.element.spread_of_mean)

    def log_density(self, y: ArrayLike) -> FloatArray:
        r"""Log density of observing the value ``y``, summed over n >= 1.

        :math:`\log \sum_{n \ge 1} \mathrm{Po}(n \mid \Lambda)\, p(y \mid n)`, for X++ less
        :math:`\log(1 - e^{-\Lambda})`
        """
        values = self.element.support.check(type(self.element).__name__, y)
        total = sum_over_n(self.element, values, np.maximum(self.rate, _TINY)).log_sum
        return np.where(self.rate > 0, total, self.element.log_density(values)) - self._log_mass

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of a value of at most ``y`` (any real ``y``)."""
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
        """Return the cdf of the entries of a flat distribution that ``index`` selects."""
        chosen = self._at(index)
        element, rate = chosen.element, np.maximum(chosen.rate, _TINY)
        if element.once:
            observed = -np.expm1(-rate) * element.cdf_unchecked(y, np.ones_like(y))
        else:
            observed = element.compound_cdf(y, rate)
        if observed is None:
            # The cdf at y falls with n over a width of its spread, n being about y / mean.
            smoothness = element.variance / np.maximum(np.square(element.mean), _TINY)
            observed = poisson_mixture(
                rate, lambda pick, n: element.at(pick).cdf_unchecked(y[pick], n), smoothness
            )
        return np.clip(chosen._from_observed(observed, y), 0.0, 1.0)

    def _flattened(self, shape: tuple[int, ...]) -> Self:
        """Broadcast the rates and the array parameters to ``shape``, and flatten them."""
        return self._like(
            np.broadcast_to(self.rate, shape).ravel(), self.element.broadcast_to(shape)
        )

    def _at(self, index: Any) -> Self:
        return self._like(self.rate[index], self.element.at(index))

    def _like(self, rate: FloatArray, element: Element) -> Self:
        """Put together checked parts, without a second check."""
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
        found = invert_cdf(
            lambda y, index: flat._at(index).cdf(y),
            np.clip(levels, 1e-300, np.nextafter(1.0, 0.0)).ravel(),
            mean=np.broadcast_to(self.mean, shape).ravel(),
            spread=np.broadcast_to(_finite(np.sqrt(self.variance), self.mean), shape).ravel(),
            discrete=self.element.support.discrete,
        )
        return np.where(levels <= 0, lowest, np.where(levels >= 1, highest, found.reshape(shape)))

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the equal-tailed interval that holds a share ``level`` of the distribution."""
        share = as_float_array(level, "level")
        if share.ndim or not 0 < share < 1:
            raise InputError(f"interval: level must lie strictly between 0 and 1, got {level!r}.")
        tail = 0.5 * (1.0 - float(share))
        return self.quantile(tail), self.quantile(1.0 - tail)

    def sample(
        self, size: int | Sequence[int] | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """Draw values; ``size`` comes before the shape of the rates."""
        shape = _as_shape(size) + self.shape
        return self.element.sample(self._draw_counts(shape, check_rng(rng)), rng)


def _as_shape(size: int | Sequence[int] | None) -> tuple[int, ...]:
    try:
        shape = () if size is None else tuple(size) if isinstance(size, Sequence) else (size,)
        shape = tuple(map(operator.index, shape))
    except TypeError:
        shape = (-1,)
    if any(length < 0 for length in shape):
        raise InputError(f"sample: size must be whole numbers, 0 or more, got {size!r}.")
    return shape


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
    [7.3, 101.1]
    """

    @property
    def prob_observed(self) -> FloatArray:
        r"""Pr(N >= 1) = :math:`1 - e^{-\Lambda}`: the probability that the entry is observed."""
        return -np.expm1(-self.rate)

    @property
    def prob_zero(self) -> FloatArray:
        r"""Pr(X+ = 0) = :math:`e^{-\Lambda(1 - p_0)}`, with p0 the element's own mass at 0."""
        support = self.element.support
        is_sum = not self.element.once and not np.any(self.element.spread_of_mean)
        if not is_sum and support.discrete and support.has_zero:
            # One element, or several that share an uncertain theta and are not independent.
            return np.exp(-self.rate) + np.exp(self.log_density(np.zeros(self.shape)))
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
    def _log_mass(self) -> FloatArray:
        return np.where(self.rate > 0, 0.0, np.inf)

    @property
    def _count_moments(self) -> tuple[FloatArray, FloatArray]:
        if self.element.once:
            return self.prob_observed, self.prob_observed * np.exp(-self.rate)
        return self.rate, self.rate

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return rng.poisson(np.broadcast_to(self.rate, shape)).astype(np.float64)

    def _from_observed(self, probability: FloatArray, y: FloatArray) -> FloatArray:
        return np.exp(-self.rate) * (y >= 0) + np.where(self.rate > 0, probability, 0.0)

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        ever = self.rate > 0
        lowest = min(self.element.support.lowest, 0.0)
        highest = np.maximum(self.element.highest, 0.0) if self.element.once else np.inf
        return np.where(ever, lowest, 0.0), np.where(ever, highest, 0.0)


class ObservedCompoundPoisson(_Compound):
    """X++: the value of an entry given that it is observed (N >= 1).

    A rate of 0 is the limit of extreme sparsity, where X++ is one element.
    """

    @property
    def _log_mass(self) -> FloatArray:
        return np.where(self.rate > 0, np.log(-np.expm1(-np.maximum(self.rate, _TINY))), 0.0)

    @property
    def _count_moments(self) -> tuple[FloatArray, FloatArray]:
        if self.element.once:
            return np.ones_like(self.rate), np.zeros_like(self.rate)
        return truncated_poisson_moments(np.maximum(self.rate, _TINY))

    def _draw_counts(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return truncated_poisson(np.broadcast_to(np.maximum(self.rate, _TINY), shape), rng)

    def _from_observed(self, probability: FloatArray, y: FloatArray) -> FloatArray:
        return probability / -np.expm1(-np.maximum(self.rate, _TINY))

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        is_sum = (self.rate > 0) & (not self.element.once)
        highest = np.where(is_sum, np.inf, self.element.highest)
        return np.asarray(self.element.support.lowest), highest


def _finite(spread: FloatArray, mean: FloatArray) -> FloatArray:
    """Something to begin a search with where there is no variance."""
    return np.where(np.isfinite(spread), spread, np.abs(mean) + 1.0)
