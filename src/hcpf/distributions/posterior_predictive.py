"""Predictive distributions averaged over draws of the factors."""

from typing import Any

import numpy as np
from scipy import special

from hcpf._checks import whole
from hcpf._types import ArrayLike, FloatArray
from hcpf.distributions.pair import Distribution, PairDistribution, tail_of
from hcpf.distributions.quantile import invert_cdf
from hcpf.elements.base import Element
from hcpf.elements.domains import as_float_array, check_rng
from hcpf.errors import InputError


class _Average:
    """A mixture of distributions of pairs, one per draw of the rates."""

    def __init__(self, parts: Distribution, weights: FloatArray) -> None:
        self._parts = parts  # shape (draws, *pairs)
        self._weights = weights  # the same shape; sums to 1 over the draws
        self.shape: tuple[int, ...] = parts.shape[1:]

    @property
    def rate(self) -> FloatArray:
        """The drawn rates, draws first."""
        return self._parts.rate

    @property
    def element(self) -> Element:
        """The element distribution."""
        return self._parts.element

    @property
    def mean(self) -> FloatArray:
        """The expected value."""
        return np.sum(self._weights * self._parts.mean, axis=0)

    @property
    def variance(self) -> FloatArray:
        """The variance, within the draws and between their means; infinite where one is."""
        means = self._parts.mean
        second = np.sum(self._weights * (self._parts.variance + np.square(means)), axis=0)
        return np.maximum(second - np.square(self.mean), 0.0)

    def log_density(self, y: ArrayLike) -> FloatArray:
        """Return the log density of observing the value ``y``."""
        parts, weights = self._aligned(as_float_array(y, "y"))
        return np.asarray(special.logsumexp(parts.log_density(y), axis=0, b=weights))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Return the probability of a value of at most ``y``."""
        parts, weights = self._aligned(as_float_array(y, "y"))
        return np.sum(weights * parts.cdf(y), axis=0)

    def _aligned(self, y: FloatArray) -> tuple[Any, FloatArray]:
        """Return parts and weights with the draws before the dimensions of ``y`` and the pairs."""
        self._shape_with(y.shape)
        lead = (slice(None), *(None,) * (y.ndim - len(self.shape)))
        return self._parts.at(lead), self._weights[lead]

    def _shape_with(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        try:
            return np.broadcast_shapes(shape, self.shape)
        except ValueError:
            raise InputError(
                f"Values of shape {shape} do not broadcast with pairs of shape {self.shape}."
            ) from None

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Return the smallest value whose cdf is at least ``q``, for 0 < q < 1."""
        levels = as_float_array(q, "q")
        if not np.all((levels > 0) & (levels < 1)):
            raise InputError(f"quantile: q must lie strictly between 0 and 1, got {q!r}.")
        shape = self._shape_with(levels.shape)
        parts, weights = self._aligned(levels)
        full = (len(weights), *shape)
        flat = len(weights), -1
        rates = np.broadcast_to(parts.rate, full).reshape(flat)
        element = parts.element.broadcast_to(full).reshape(flat)
        weights = np.broadcast_to(weights, full).reshape(flat)
        distribution = type(parts)

        def cdf(y: FloatArray, index: Any) -> FloatArray:
            chosen = (slice(None), index)
            cdfs = distribution(rates[chosen], element.at(chosen)).cdf(y)
            return np.sum(weights[chosen] * cdfs, axis=0)

        quantiles = invert_cdf(
            cdf,
            np.broadcast_to(levels, shape).ravel(),
            mean=np.broadcast_to(self.mean, shape).ravel(),
            spread=np.broadcast_to(np.sqrt(self.variance), shape).ravel(),
            discrete=self.element.support.discrete,
        )
        return quantiles.reshape(shape)

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the equal-tailed interval of probability ``level``."""
        tail = tail_of(level)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def sample(self, size: int = 1, *, rng: np.random.Generator) -> FloatArray:
        """Draw values; ``size`` comes before the shape of the pairs."""
        check_rng(rng)
        size = whole("size", size, least=0)
        draws = len(self._weights)
        weights = self._weights.reshape(draws, -1)
        rates = self._parts.rate.reshape(draws, -1)
        level = rng.random((size, 1, weights.shape[1]))
        chosen = np.sum(np.cumsum(weights, axis=0)[None] < level, axis=1)
        index = np.minimum(chosen, draws - 1), np.arange(weights.shape[1])
        element = self.element.reshape((draws, -1)).at(index)
        drawn = type(self._parts)(rates[index], element).sample(rng=rng)
        return drawn.reshape(size, *self.shape)


class PosteriorPredictive(_Average):
    """X+ averaged over draws of the factors, which are the first axis; ``observed`` is X++."""

    def __init__(self, draws: PairDistribution) -> None:
        super().__init__(draws, np.full(draws.shape, 1.0 / draws.shape[0]))
        self._draws = draws

    @property
    def prob_observed(self) -> FloatArray:
        """The probability that the pair is observed."""
        return np.mean(self._draws.prob_observed, axis=0)

    @property
    def mean_observed(self) -> FloatArray:
        """The expected value given that the pair is observed."""
        return self.observed.mean

    def log_density_observed(self, y: ArrayLike) -> FloatArray:
        """Return the log density of ``y`` given that the pair is observed."""
        return self.observed.log_density(y)

    @property
    def observed(self) -> _Average:
        """The distribution of the value of a pair that is observed."""
        probability = np.maximum(self._draws.prob_observed, 1e-300)
        return _Average(self._draws.observed, probability / probability.sum(axis=0))
