r"""Conjugate priors of the natural parameter: what lets theta vary from item to item.

The prior :math:`\exp(\chi\theta - \nu\Psi(\theta))` is conjugate to an exponential dispersion
model: values with the sum Y, made of N elements, turn (chi, nu) into (chi + Y, nu + kappa N). Under
it the mean :math:`\Psi'(\theta)` has expectation chi / nu, wherever the density vanishes at the
ends of the range of theta (not for the inverse Gaussian).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.special import digamma

# Gauss-Legendre over the levels of theta
_NODES, _DOUBLE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_LEVELS, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _DOUBLE_WEIGHTS

Theta = tuple[FloatArray, FloatArray]
"""(chi, nu) of some rows."""


class Part(NamedTuple):
    """What one side has in Psi and in theta of its pairs."""

    psi: FloatArray
    """Its own part of Psi."""
    cross: FloatArray | None = None
    """Psi has a part proportional to the product of both sides' cross."""
    weight: FloatArray | None = None
    """What theta of the other side is multiplied with."""


@dataclass(frozen=True)
class Sharing:
    r"""How users and items share theta where both have one.

    Psi of a pair is the ``psi`` of either side plus ``sign`` times the product of their ``cross``;
    theta of a pair is the sum of both sides' theta or, where they have a ``weight``, the one times
    the other's weight.
    """

    part: Callable[[FloatArray, FloatArray], Part]
    """One side's part, from its chi and nu."""
    sign: float
    """0 where there is no cross."""
    additive: bool = False
    """Whether the means of the two sides add up (normal) instead of multiplying."""
    weighs: bool = False
    """Whether parts have a weight."""
    power: float = 0.0
    """The power of kappa that the second side's prior scales with."""

    spread: Callable[[FloatArray, FloatArray], FloatArray] = lambda chi, nu: 1.0 / nu
    """A measure of uncertainty of (chi, nu) that adds up over the two sides ..."""
    nu_at: Callable[[FloatArray, FloatArray], FloatArray] = lambda center, spread: 1.0 / spread
    """... and the nu that has a given one, at a given center chi / nu."""

    def pooled(self, one: Theta, other: Theta) -> Theta:
        """One (chi, nu) for the theta of a pair, from those of its user and its item."""
        first, second = (chi / nu for chi, nu in (one, other))
        center = first + second if self.additive else first * second
        spread = self.spread(*one) + self.spread(*other)
        nu = self.nu_at(center, spread)
        return center * nu, nu


class Conjugate(ABC):
    """The conjugate prior of one element, as functions of chi and nu."""

    lowest: float = 0.0
    """chi / nu, the center of Psi', lies above this ..."""
    highest: float = np.inf
    """... and below this."""
    exact: bool = True
    """False where expectations are taken at the mode."""
    sharing: Sharing | None = None
    """How users and items vary at once; None where they cannot."""

    @abstractmethod
    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expectations of theta and of Psi(theta)."""

    def mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """Expectation of Psi'(theta), the mean of a value for each unit of kappa."""
        return chi / nu

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """Variance of Psi'(theta), infinite where there is none."""
        raise NotImplementedError

    def bend(self, mean: FloatArray) -> FloatArray | float:
        """Half the curvature of the variance of a value as a function of its mean."""
        return 0.0

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        """Cdf of a value with theta integrated out, where it is closed; else None."""
        return None

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        """Log of E[exp(y theta - kappa Psi(theta))]: the rest of a density is its base measure."""
        return self.log_normalizer(chi + y, nu + kappa) - self.log_normalizer(chi, nu)

    def nodes(self, chi: FloatArray, nu: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Values of Psi'(theta) and their weights, to take expectations that are not closed."""
        for level, weight in zip(_LEVELS, _WEIGHTS, strict=True):
            yield self.quantile_of_mean(level, chi, nu), weight

    def quantile_of_mean(self, level: float, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """The value that Psi'(theta) stays below with a given probability."""
        raise NotImplementedError

    @abstractmethod
    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """Log of the integral of exp(chi theta - nu Psi(theta)) over theta."""

    @abstractmethod
    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One draw of Psi'(theta) for each (chi, nu)."""


def _over(x: FloatArray) -> FloatArray:
    return np.where(x > 0, 1.0 / np.maximum(x, 1e-300), np.inf)


def _inside(p: FloatArray) -> FloatArray:
    return np.clip(p, 1e-12, 1.0 - 1e-12)


class GammaConjugate(Conjugate):
    """The rate -theta is Gamma(nu + 1, chi)."""

    sharing = Sharing(
        lambda chi, nu: Part(np.log(chi) - digamma(nu + 1.0), weight=(nu + 1.0) / chi),
        sign=0.0, weighs=True, power=1.0,
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -(nu + 1.0) / chi, np.log(chi) - digamma(nu + 1.0)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.gammaln(nu + 1.0) - (nu + 1.0) * np.log(chi)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return np.square(chi / nu) * _over(nu - 1.0)

    def bend(self, mean: FloatArray) -> FloatArray | float:
        return 1.0

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        y = np.maximum(y, 0.0)
        return special.betainc(kappa, nu + 1.0, y / (y + chi))

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return chi / rng.standard_gamma(nu + 1.0)


class PoissonConjugate(Conjugate):
    """The rate exp(theta) is Gamma(chi, nu)."""

    sharing = Sharing(
        lambda chi, nu: Part(np.zeros_like(chi), chi / nu),
        sign=1.0, spread=lambda chi, nu: 1.0 / chi,
        nu_at=lambda center, spread: 1.0 / (spread * center),
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        return digamma(chi) - np.log(nu), chi / nu

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.gammaln(chi) - chi * np.log(nu)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return chi / np.square(nu)

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        whole = np.floor(np.clip(y, 0.0, 1e300))
        inside = special.betainc(chi, whole + 1.0, nu / (nu + kappa))
        return np.where(y >= 0, inside, 0.0)

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.maximum(rng.standard_gamma(chi) / nu, np.finfo(np.float64).tiny)


class NormalConjugate(Conjugate):
    """Theta is Normal(chi / nu, 1 / nu)."""

    lowest = -np.inf
    sharing = Sharing(
        lambda chi, nu: Part(0.5 * (np.square(chi / nu) + 1.0 / nu), chi / nu),
        sign=1.0, additive=True,
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        theta = chi / nu
        return theta, 0.5 * (np.square(theta) + 1.0 / nu)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return 0.5 * (np.log(2.0 * np.pi / nu) + chi * chi / nu)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return 1.0 / nu

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        spread = kappa + np.square(kappa) / nu
        return special.ndtr((y - kappa * chi / nu) / np.sqrt(spread))

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.normal(chi / nu, 1.0 / np.sqrt(nu))


class BinomialConjugate(Conjugate):
    """The probability is Beta(chi, nu - chi)."""

    highest = 1.0

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_fail = digamma(nu - chi)
        return digamma(chi) - log_fail, digamma(nu) - log_fail

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.betaln(chi, nu - chi)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return chi / nu * (1.0 - chi / nu) / (nu + 1.0)

    def bend(self, mean: FloatArray) -> FloatArray | float:
        return -1.0

    def quantile_of_mean(self, level: float, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return _inside(special.betaincinv(chi, nu - chi, level))

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return _inside(rng.beta(chi, nu - chi))


class NegativeBinomialConjugate(Conjugate):
    """The probability of going on is Beta(chi, nu + 1)."""

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        total = digamma(chi + nu + 1.0)
        return digamma(chi) - total, total - digamma(nu + 1.0)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.betaln(chi, nu + 1.0)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return chi * (chi + nu) / np.square(nu) * _over(nu - 1.0)

    def bend(self, mean: FloatArray) -> FloatArray | float:
        return 1.0

    def quantile_of_mean(self, level: float, chi: FloatArray, nu: FloatArray) -> FloatArray:
        p = _inside(special.betaincinv(chi, nu + 1.0, level))
        return p / (1.0 - p)

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        p = _inside(rng.beta(chi, nu + 1.0))
        return p / (1.0 - p)


class GeometricConjugate(Conjugate):
    """The probability of going on is Beta(chi - nu, nu + 1)."""

    lowest = 1.0

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        more = digamma(chi - nu)
        return more - digamma(chi + 1.0), more - digamma(nu + 1.0)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.betaln(chi - nu, nu + 1.0)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return (chi - nu) * chi / np.square(nu) * _over(nu - 1.0)

    def bend(self, mean: FloatArray) -> FloatArray | float:
        return 1.0

    def quantile_of_mean(self, level: float, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return 1.0 / (1.0 - _inside(special.betaincinv(chi - nu, nu + 1.0, level)))

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return 1.0 / (1.0 - _inside(rng.beta(chi - nu, nu + 1.0)))


class InverseGaussianConjugate(Conjugate):
    r"""t = sqrt(-2 theta) has the density prop. to t N(t; nu/chi, 1/chi) on t > 0."""

    sharing = Sharing(
        lambda chi, nu: Part(np.zeros_like(chi), *_truncated(chi, nu)[1:]),
        sign=-1.0, weighs=True, power=2.0,
        spread=lambda chi, nu: chi / (nu * nu), nu_at=lambda center, spread: center / spread,
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        _, mean, square = _truncated(chi, nu)
        return -0.5 * square, -mean

    def mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        root = np.sqrt(chi)
        return root * special.ndtr(nu / root) / _truncated(chi, nu)[0]

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        # The square is completed inside the exponent: what is left grows as nu^2 / (2 chi).
        integral = _truncated(chi, nu)[0]
        return 0.5 * nu * nu / chi + np.log(integral) + 0.5 * np.log(2.0 * np.pi) - np.log(chi)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        # The exact one is infinite, by the faintest of tails at t = 0; this is the delta method.
        return np.square(chi / nu) * chi / np.square(nu)

    def bend(self, mean: FloatArray) -> FloatArray | float:
        return 3.0 * mean

    def quantile_of_mean(self, level: float, chi: FloatArray, nu: FloatArray) -> FloatArray:
        # Pr(t > x) in units of sqrt(chi): (z Q(x - z) + phi(x - z)) / I_1; solved by bisection.
        root = np.sqrt(chi)
        z = nu / root
        whole = z * special.ndtr(z) + _phi(z)
        low, high = np.zeros_like(z), z + 40.0
        for _ in range(50):
            x = 0.5 * (low + high)
            above = z * special.ndtr(z - x) + _phi(x - z) > level * whole
            low, high = np.where(above, x, low), np.where(above, high, x)
        return root / np.maximum(0.5 * (low + high), 1e-12)

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        # The density of t is log-concave, and all but normal where nu is large: draws of the
        # normal are kept with a probability proportional to t.
        center = nu / chi
        spread = 1.0 / np.sqrt(chi)
        most = center + 6.0 * spread
        t = np.broadcast_to(center, np.broadcast_shapes(chi.shape, nu.shape)).copy()
        left = np.arange(t.size)
        flat, center, spread, most = (
            t.ravel(), *(np.broadcast_to(x, t.shape).ravel() for x in (center, spread, most))
        )  # fmt: skip
        while left.size:
            drawn = rng.normal(center[left], spread[left])
            kept = rng.random(left.size) * most[left] < drawn
            flat[left[kept]] = drawn[kept]
            left = left[~kept]
        return 1.0 / flat.reshape(t.shape)


_FAR = 9.0  # standard deviations from 0 to the center


def _phi(x: FloatArray) -> FloatArray:
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


def _truncated(chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The integral of t N(t), scaled, and E[t] and E[t^2] of its density.

    With z = nu / sqrt(chi), the integrals over x > 0 of x^j N(x; z, 1) obey
    I_(j+1) = z I_j + j I_(j-1); all terms are positive, so nothing cancels.
    """
    root = np.sqrt(chi)
    z = nu / root
    # Further out the truncation takes less away than float64 tells, and most rows are there.
    near = z < _FAR
    zeroth, density = 1.0, 0.0
    if np.any(near):
        zeroth, density = np.ones_like(z), np.zeros_like(z)
        zeroth[near], density[near] = special.ndtr(z[near]), _phi(z[near])
    first = z * zeroth + density
    second = z * first + zeroth
    third = z * second + 2.0 * first
    return first, second / (first * root), third / (first * chi)
