"""Conjugate priors without a closed normaliser: theta is taken at its mode."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from scipy import special

from hcpf._special import log1mexp, log_expm1
from hcpf._types import FloatArray
from hcpf.elements.conjugate import Conjugate

# Gauss-Hermite about the mode of theta
_HERMITE, _HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)


class _ByMode(Conjugate):
    """Theta is taken at its mode, where Psi'(theta) = chi / nu, with Laplace's normaliser.

    Training does so; predictions integrate over theta by quadrature about the mode.
    """

    lowest, exact = 1.0, False

    @abstractmethod
    def theta_at(self, mean: FloatArray) -> FloatArray:
        """Solve Psi'(theta) = mean."""

    @abstractmethod
    def partition(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Psi and its second derivative."""

    @abstractmethod
    def mean_at(self, theta: FloatArray) -> FloatArray:
        """Psi'(theta)."""

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        theta = self.theta_at(chi / nu)
        return theta, self.partition(theta)[0]

    def log_normaliser(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        theta = self.theta_at(chi / nu)
        value, curvature = self.partition(theta)
        return chi * theta - nu * value + 0.5 * np.log(2.0 * np.pi / (nu * curvature))

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """By the delta method: the exact one may be infinite, as the exact mean may."""
        return self.partition(self.theta_at(chi / nu))[1] / nu

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        theta, weight = self._around_mode(chi, nu)
        value = self.partition(theta)[0]
        total = np.asarray(-np.inf)
        for t, v, w in zip(theta, value, weight, strict=True):
            total = np.logaddexp(total, np.log(np.maximum(w, 1e-300)) + y * t - kappa * v)
        return total

    def nodes(self, chi: FloatArray, nu: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        theta, weight = self._around_mode(chi, nu)
        yield from zip(self.mean_at(theta), weight, strict=True)

    def _around_mode(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gauss-Hermite nodes of theta (first axis), with the weights of its exact density."""
        mode = self.theta_at(chi / nu)
        spread = 1.0 / np.sqrt(nu * self.partition(mode)[1])
        theta = self.inside(mode + np.multiply.outer(_HERMITE, spread))
        log_weight = chi * theta - nu * self.partition(theta)[0]
        shape = (-1, *(1,) * np.ndim(mode))
        log_weight += (np.log(_HERMITE_WEIGHTS) + 0.5 * np.square(_HERMITE)).reshape(shape)
        weight = np.exp(log_weight - log_weight.max(axis=0))
        return theta, weight / weight.sum(axis=0)

    def inside(self, theta: FloatArray) -> FloatArray:
        """Theta moved into its range."""
        return theta

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        theta = self.theta_at(chi / nu)
        spread = 1.0 / np.sqrt(nu * self.partition(theta)[1])
        drawn = theta + spread * rng.standard_normal(np.shape(theta))
        return self.mean_at(self.inside(drawn))


class TruncatedPoissonMode(_ByMode):
    """Of the zero-truncated Poisson, whose prior has no closed normaliser."""

    def theta_at(self, mean: FloatArray) -> FloatArray:
        return np.log(truncated_poisson_rate(mean))

    def mean_at(self, theta: FloatArray) -> FloatArray:
        rate = np.exp(theta)
        return rate / -np.expm1(-rate)

    def partition(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        rate = np.exp(theta)
        mean = rate / -np.expm1(-rate)
        return log_expm1(rate), np.maximum(mean * (1.0 + rate - mean), 1e-300)


class LogarithmicMode(_ByMode):
    """Of the logarithmic element, whose prior has no closed normaliser."""

    def theta_at(self, mean: FloatArray) -> FloatArray:
        return np.log(logarithmic_probability(mean))

    def mean_at(self, theta: FloatArray) -> FloatArray:
        return -np.exp(theta - log1mexp(theta)) / log1mexp(theta)

    def inside(self, theta: FloatArray) -> FloatArray:
        return np.minimum(theta, -1e-6)

    def partition(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = self.mean_at(theta)
        odds = np.exp(theta - log1mexp(theta))
        return np.log(-log1mexp(theta)), np.maximum(mean * (1.0 + odds - mean), 1e-300)


def truncated_poisson_rate(mean: FloatArray) -> FloatArray:
    """Solve mean = l / (1 - e^-l) for l, elementwise; 1e-9 where the mean is 1."""
    mean = np.asarray(mean, dtype=np.float64)
    rate = np.clip(2.0 * (mean - 1.0), 1e-9, mean)
    for _ in range(50):  # Newton on a convex function, from above
        value = rate / -np.expm1(-rate)
        slope = np.where(rate < 1e-4, 0.5 + rate / 6.0, (value / rate) * (1.0 + rate - value))
        new = np.maximum(rate - (value - mean) / slope, 1e-9)
        if np.all(np.abs(new - rate) <= 1e-15 * rate):
            break
        rate = new
    return rate


def logarithmic_probability(mean: FloatArray) -> FloatArray:
    """Solve mean = -p / ((1 - p) log(1 - p)) for p, elementwise, inside [1e-9, 1 - 1e-15].

    With t = logit p the log of the right side is t - log log(1 + e^t), which rises with t: Newton's
    steps, halving the bracket instead where one would leave it.
    """
    target = np.log(np.maximum(np.asarray(mean, dtype=np.float64), 1.0))
    low, high = np.full_like(target, special.logit(1e-9)), np.full_like(target, 34.0)
    t = np.clip(np.log(np.expm1(2.0 * np.minimum(target, 1.0)) + 1e-12) + target, low, high)
    for _ in range(60):
        soft = np.logaddexp(0.0, t)
        excess = t - np.log(soft) - target
        low, high = np.where(excess < 0, t, low), np.where(excess < 0, high, t)
        slope = np.where(t < -6.0, 0.5 * np.exp(t), 1.0 - special.expit(t) / soft)
        new = t - excess / np.maximum(slope, 1e-300)
        new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
        # Near p = 0 the excess itself is known to a rounding error only.
        settled = (np.abs(new - t) <= 1e-14 * np.abs(t)) | (np.abs(excess) <= 1e-15 * np.abs(t))
        if np.all(settled):
            break
        t = np.where(settled, t, new)
    return special.expit(t)
