"""Conjugate priors without a closed normalizer: theta is taken at its mode."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.conjugate import Conjugate
from hcpf.elements.special import log1mexp, log_expm1

_TABULATED = 16384
"""Nodes of the inverses of Psi': their error is then below 1e-12."""
_LEAST = 1e-9
"""The least rate or probability."""
_NO_TRUNCATION = 50.0
"""A Poisson variable with this mean is never 0, to the last bit."""

Inverse = tuple[Callable[[FloatArray], FloatArray], float, float]
"""A function of log log mean, and where its table begins and ends."""

# Gauss-Hermite about the mode of theta
_HERMITE, _HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)


class _ByMode(Conjugate):
    """Theta is taken at its mode, where Psi'(theta) = chi / nu, with Laplace's normalizer.

    Training does so; predictions integrate over theta by quadrature about the mode.
    """

    lowest, exact = 1.0, False

    @abstractmethod
    def theta_at(self, mean: FloatArray) -> FloatArray:
        """Solve Psi'(theta) = mean."""

    @abstractmethod
    def psi(self, theta: FloatArray) -> FloatArray:
        """Psi(theta)."""

    @abstractmethod
    def curvature(self, theta: FloatArray) -> FloatArray:
        """Psi''(theta)."""

    @abstractmethod
    def mean_at(self, theta: FloatArray) -> FloatArray:
        """Psi'(theta)."""

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        theta = self.theta_at(chi / nu)
        return theta, self.psi(theta)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        theta = self.theta_at(chi / nu)
        width = 0.5 * np.log(2.0 * np.pi / (nu * self.curvature(theta)))
        return chi * theta - nu * self.psi(theta) + width

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """By the delta method: the exact one may be infinite, as the exact mean may."""
        return self.curvature(self.theta_at(chi / nu)) / nu

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        theta, weight = self._around_mode(chi, nu)
        total = np.asarray(-np.inf)
        for t, v, w in zip(theta, self.psi(theta), weight, strict=True):
            total = np.logaddexp(total, np.log(np.maximum(w, 1e-300)) + y * t - kappa * v)
        return total

    def nodes(self, chi: FloatArray, nu: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        theta, weight = self._around_mode(chi, nu)
        yield from zip(self.mean_at(theta), weight, strict=True)

    def _around_mode(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gauss-Hermite nodes of theta (first axis), with the weights of its exact density."""
        mode = self.theta_at(chi / nu)
        spread = 1.0 / np.sqrt(nu * self.curvature(mode))
        theta = self.inside(mode + np.multiply.outer(_HERMITE, spread))
        log_weight = chi * theta - nu * self.psi(theta)
        shape = (-1, *(1,) * np.ndim(mode))
        log_weight += (np.log(_HERMITE_WEIGHTS) + 0.5 * np.square(_HERMITE)).reshape(shape)
        weight = np.exp(log_weight - log_weight.max(axis=0))
        return theta, weight / weight.sum(axis=0)

    def inside(self, theta: FloatArray) -> FloatArray:
        """Theta moved into its range."""
        return theta

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        theta = self.theta_at(chi / nu)
        spread = 1.0 / np.sqrt(nu * self.curvature(theta))
        drawn = theta + spread * rng.standard_normal(np.shape(theta))
        return self.mean_at(self.inside(drawn))


class TruncatedPoissonMode(_ByMode):
    """Of the zero-truncated Poisson, whose prior has no closed normalizer."""

    def theta_at(self, mean: FloatArray) -> FloatArray:
        return np.log(truncated_poisson_rate(mean))

    def mean_at(self, theta: FloatArray) -> FloatArray:
        rate = np.exp(theta)
        return rate / -np.expm1(-rate)

    def psi(self, theta: FloatArray) -> FloatArray:
        return log_expm1(np.exp(theta))

    def curvature(self, theta: FloatArray) -> FloatArray:
        mean = self.mean_at(theta)
        return np.maximum(mean * (1.0 + np.exp(theta) - mean), 1e-300)


class LogarithmicMode(_ByMode):
    """Of the logarithmic element, whose prior has no closed normalizer."""

    def theta_at(self, mean: FloatArray) -> FloatArray:
        return np.log(logarithmic_probability(mean))

    def mean_at(self, theta: FloatArray) -> FloatArray:
        return -np.exp(theta - log1mexp(theta)) / log1mexp(theta)

    def inside(self, theta: FloatArray) -> FloatArray:
        return np.minimum(theta, -1e-6)

    def psi(self, theta: FloatArray) -> FloatArray:
        return np.log(-log1mexp(theta))

    def curvature(self, theta: FloatArray) -> FloatArray:
        mean = self.mean_at(theta)
        odds = np.exp(theta - log1mexp(theta))
        return np.maximum(mean * (1.0 + odds - mean), 1e-300)


def truncated_poisson_rate(mean: FloatArray) -> FloatArray:
    """Solve mean = l / (1 - e^-l) for l, elementwise; 1e-9 where the mean is 1."""
    mean = np.asarray(mean, dtype=np.float64)
    spline, low, high = _truncated_poisson_inverse()
    with np.errstate(divide="ignore"):
        place = np.log(np.log(np.maximum(mean, 1.0)))
    rate = np.exp(spline(np.clip(place, low, high)))
    return np.where(place <= low, _LEAST, np.where(mean < _NO_TRUNCATION, rate, mean))


def logarithmic_probability(mean: FloatArray) -> FloatArray:
    """Solve mean = -p / ((1 - p) log(1 - p)) for p, elementwise, inside [1e-9, 1 - 1e-15]."""
    spline, low, high = _logarithmic_inverse()
    log_mean = np.log(np.maximum(np.asarray(mean, dtype=np.float64), 1.0))
    with np.errstate(divide="ignore"):
        return special.expit(spline(np.clip(np.log(log_mean), low, high)))


@cache
def _truncated_poisson_inverse() -> Inverse:
    """Log l from the mean l / (1 - e^-l), whose log is l/2 - l^2/24 + ... near 0."""
    log_rate = np.linspace(np.log(_LEAST), np.log(_NO_TRUNCATION), _TABULATED)
    rate = np.exp(log_rate)
    small = rate < 1e-3
    positive = -np.expm1(-rate)  # the probability of more than 0
    log_mean = np.where(small, rate * (0.5 - rate / 24.0), np.log(rate / positive))
    slope = np.where(small, rate * (0.5 - rate / 12.0), 1.0 - rate * np.exp(-rate) / positive)
    return _inverse(log_rate, log_mean, slope)


@cache
def _logarithmic_inverse() -> Inverse:
    """Logit p = t from the mean, whose log is t - log log(1 + e^t), near 0 that of e^t / 2."""
    t = np.linspace(special.logit(_LEAST), 34.0, _TABULATED)
    odds, soft = np.exp(t), np.logaddexp(0.0, t)
    small = t < -12.0
    log_mean = np.where(small, odds * (0.5 - odds * 5.0 / 24.0), t - np.log(soft))
    slope = np.where(small, odds * (0.5 - odds * 5.0 / 12.0), 1.0 - special.expit(t) / soft)
    return _inverse(t, log_mean, slope)


def _inverse(parameter: FloatArray, log_mean: FloatArray, slope: FloatArray) -> Inverse:
    """The parameter as cubics of log log mean; ``slope`` is d log_mean / d parameter.

    Pieces of equal width, unlike those of a spline through the points: no search for the right one.
    """
    from scipy.interpolate import CubicHermiteSpline  # not needed to import hcpf

    place = np.log(log_mean)
    spline = CubicHermiteSpline(place, parameter, log_mean / slope)
    low, high = float(place[0]), float(place[-1])
    nodes, width = np.linspace(low, high, _TABULATED, retstep=True)
    even = CubicHermiteSpline(nodes, spline(nodes), spline(nodes, 1))
    fourth, third, second, first = even.c

    def found(at: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            piece = ((at - low) / width).astype(np.intp)
        piece = np.clip(piece, 0, len(first) - 1)  # the last piece holds its end
        t = at - nodes[piece]
        return first[piece] + t * (second[piece] + t * (third[piece] + t * fourth[piece]))

    return found, low, high
