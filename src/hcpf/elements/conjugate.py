r"""Conjugate priors of the natural parameter, which make partial pooling possible.

The prior :math:`\exp(\chi\theta - \nu\Psi(\theta))` is conjugate to an exponential dispersion
model: values with the sum Y, made of N elements, turn (chi, nu) into (chi + Y, nu + kappa N). Its
center chi / nu is the expectation of the mean :math:`\Psi'(\theta)` wherever the density vanishes
at both ends of the range of theta, which excludes the inverse Gaussian.

This module has the contract and what several families share; each family defines its own prior.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.special import log_rising, prob_beta_below

_MIN_PROBABILITY = 1e-12  # drawn probabilities keep this distance from 0 and 1
_MIN_EXCESS = 1e-9  # of chi over nu, relative to nu; a smaller excess is rounding
_N_INVERSE_NODES = 16384  # nodes of the tabulated inverse of Psi', for a relative error below 1e-12

# The trapezoid rule over theta: nodes, how far the log of the integrand falls to the last of them,
# and the steps that find the ends.
_N_EVEN, _MAX_DROP, _N_BISECTIONS = 40, 22.0, 7

Theta = tuple[FloatArray, FloatArray]
"""chi and nu of some rows."""


class Part(NamedTuple):
    """The contribution of one axis to Psi and to theta of its pairs."""

    psi: FloatArray
    """Its own term of Psi."""
    cross: FloatArray | None = None
    """Its factor of the term of Psi that multiplies both axes."""
    weight: FloatArray | None = None
    """The factor by which it multiplies theta of the other axis."""


@dataclass(frozen=True)
class Sharing:
    r"""How users and items share the theta of a pair if both are pooled.

    Psi of a pair is the sum of both ``psi`` plus ``sign`` times the product of both ``cross``.
    Theta of a pair is the sum of both theta or, with weights, one theta times the other's weight:

    ================  ============================  ==============================================
    normal            :math:`\theta_u + \theta_i`   :math:`\theta_u^2/2 + \theta_i^2/2 +
                                                    \theta_u\theta_i`
    Poisson           :math:`\theta_u + \theta_i`   :math:`e^{\theta_u} e^{\theta_i}`
    gamma             :math:`-b_u b_i`              :math:`-\log b_u - \log b_i`
    inverse Gaussian  :math:`-(t_u t_i)^2/2`        :math:`-t_u t_i`
    ================  ============================  ==============================================
    """

    part: Callable[[FloatArray, FloatArray], Part]
    """The part of one axis, from its chi and nu."""
    sign: float
    """0 if there is no cross term."""
    additive: bool = False
    """Whether the means of the two axes add up (normal) instead of multiplying."""
    weighs: bool = False
    """Whether parts have a weight."""
    power: float = 0.0
    """The power of kappa that the second axis' prior scales with."""

    spread: Callable[[FloatArray, FloatArray], FloatArray] = lambda chi, nu: 1.0 / nu
    """A measure of uncertainty of (chi, nu) that adds up over the two axes ..."""
    nu_at: Callable[[FloatArray, FloatArray], FloatArray] = lambda center, spread: 1.0 / spread
    """... and its inverse: the nu of a given spread at the center chi / nu."""

    def pooled(self, user: Theta, item: Theta) -> Theta:
        """Return one (chi, nu) that approximates theta of a pair, from those of its two rows."""
        first, second = (chi / nu for chi, nu in (user, item))
        center = first + second if self.additive else first * second
        spread = self.spread(*user) + self.spread(*item)
        nu = self.nu_at(center, spread)
        return center * nu, nu


class Conjugate(ABC):
    """The conjugate prior of one element, as functions of chi and nu."""

    min_center: float = 0.0
    """Lower limit of the center chi / nu, exclusive."""
    max_center: float = np.inf
    """Upper limit of the center, exclusive."""
    is_exact: bool = True
    """False if expectations are approximated by values at the mode."""
    sharing: Sharing | None = None
    """How users and items can both be pooled; None if they cannot."""

    @abstractmethod
    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expectations of theta and of Psi(theta)."""

    @abstractmethod
    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """Return the log of the integral of exp(chi theta - nu Psi(theta)) over theta."""

    @abstractmethod
    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw Psi'(theta) once per (chi, nu)."""

    @abstractmethod
    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """Return the variance of Psi'(theta), infinite where it does not exist."""

    def mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        """Return the expectation of Psi'(theta), the mean of a value per unit of kappa."""
        return chi / nu

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        """Return the cdf of a value with theta integrated out, or None if ``nodes`` give it."""
        return None

    @abstractmethod
    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        """Return log E[exp(y theta - kappa Psi(theta))], a density without its base measure.

        It is the log of Z(chi + y, nu + kappa) / Z(chi, nu). A difference of ``log_normalizer``
        would cancel in rows of many entries, where chi and nu are large.
        """

    def nodes(self, chi: FloatArray, nu: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield values of Psi'(theta) with weights; needed without a ``predictive_cdf`` only."""
        raise NotImplementedError


class BetaConjugate(Conjugate):
    """The prior of families with a probability p that is beta distributed.

    The density of a value is p to the number of successes times 1 - p to that of failures.
    """

    @abstractmethod
    def trials(self, y: FloatArray, kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the numbers of successes and of failures in a value."""

    @abstractmethod
    def shapes(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both shapes of the beta distribution of p."""

    @abstractmethod
    def mean_of(self, p: FloatArray) -> FloatArray:
        """Return Psi' as a function of p."""

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.betaln(*self.shapes(chi, nu))

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        a, b = self.shapes(chi, nu)
        successes, failures = (np.maximum(count, 0.0) for count in self.trials(y, kappa))
        rising = log_rising(a, successes) + log_rising(b, failures)
        return rising - log_rising(a + b, successes + failures)

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        # Given p, the cdf is the probability that a beta variable of these shapes is above p.
        successes, failures = self.trials(np.floor(np.clip(y, -1.0, 1e300)), kappa)
        is_inside = (successes >= 0) & (failures > 0)
        above = (np.where(is_inside, count, 1.0) for count in (successes + 1.0, failures))
        inside = prob_beta_below(*self.shapes(chi, nu), *above)
        return np.where(is_inside, inside, successes >= 0)

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        p = rng.beta(*self.shapes(chi, nu))
        return self.mean_of(np.clip(p, _MIN_PROBABILITY, 1.0 - _MIN_PROBABILITY))


class ModeConjugate(Conjugate):
    r"""The prior of families on 1, 2, ... whose normalizer is not closed.

    Training takes theta at its mode, where Psi'(theta) = chi / nu, with Laplace's normalizer.
    Predictions integrate over theta by the trapezoid rule, whose log is off by less than 2e-4 at nu
    of 0.02 or more.

    Rows whose values are all 1 have chi close to nu: the density f of theta is then nearly flat
    toward -inf, where the mean is 1. With the excess e = chi - nu and m = Psi', integration of the
    derivative of f / m gives

    .. math:: e \int f\,d\theta
        = \int f\,\Bigl[(e + \nu)\frac{m - 1}{m} + \frac{\Psi''}{m^2}\Bigr] d\theta

    and the integrand on the right falls off on both sides, whatever the excess.
    """

    min_center, is_exact = 1.0, False

    @abstractmethod
    def theta_at(self, mean: FloatArray) -> FloatArray:
        """Solve Psi'(theta) = mean."""

    @abstractmethod
    def psi(self, theta: FloatArray) -> FloatArray:
        """Return Psi(theta)."""

    @abstractmethod
    def position(self, theta: FloatArray) -> FloatArray:
        """Return x, a function of theta in which densities fall off fast on both sides."""

    @abstractmethod
    def theta_of(self, position: FloatArray) -> FloatArray:
        """Return the inverse of ``position``."""

    @abstractmethod
    def slope(self, theta: FloatArray) -> FloatArray:
        """Return the derivative of ``position``."""

    @abstractmethod
    def excess_at(self, theta: FloatArray) -> FloatArray:
        """Return Psi'(theta) - 1, with all digits where it is small."""

    @abstractmethod
    def curvature(self, theta: FloatArray) -> FloatArray:
        """Return Psi''(theta)."""

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        theta = self.theta_at(chi / nu)
        return theta, self.psi(theta)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        theta = self.theta_at(chi / nu)
        width = 0.5 * np.log(2.0 * np.pi / (nu * self.curvature(theta)))
        return chi * theta - nu * self.psi(theta) + width

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        excess = np.maximum(chi - nu, _MIN_EXCESS * nu)
        # The excess of the sum is not chi + y - (nu + kappa), in which it would be lost.
        later = np.maximum(excess + (y - kappa), _MIN_EXCESS * nu)
        return self._log_integral(later, nu + kappa) - self._log_integral(excess, nu)

    def _log_integral(self, excess: FloatArray, nu: FloatArray) -> FloatArray:
        """Return the log of the integral of exp(chi theta - nu Psi), with chi = nu + excess."""
        return self._quadrature(excess, nu).log_total

    def _quadrature(self, excess: FloatArray, nu: FloatArray) -> "_Quadrature":
        """Return even nodes of x between the ends of the integrand, and the integral."""
        excess, nu = np.broadcast_arrays(excess, nu)

        def log_weight(position: FloatArray) -> FloatArray:
            return self._integrand(position, excess, nu)[1]

        mode = self.theta_at((excess + 1.0) / nu + 1.0)
        spread = self.slope(mode) / np.sqrt(nu * self.curvature(mode))
        center, reach = self.position(mode), 8.0 * spread + 40.0 / (1.0 + excess)
        least = log_weight(center) - _MAX_DROP
        ends = list[FloatArray]()
        for sign in (-1.0, 1.0):
            near, far = np.zeros_like(reach), reach
            for _ in range(_N_BISECTIONS):
                middle = 0.5 * (near + far)
                is_inside = log_weight(center + sign * middle) > least
                near, far = np.where(is_inside, middle, near), np.where(is_inside, far, middle)
            ends.append(center + sign * far)
        position = np.linspace(ends[0], ends[1], _N_EVEN)
        step = position[1] - position[0]
        log_density, weighted = self._integrand(position, excess, nu)
        total = special.logsumexp(weighted, axis=0) + np.log(step / excess)
        return _Quadrature(position, log_density + np.log(step) - total, np.asarray(total), step)

    def _integrand(
        self, position: FloatArray, excess: FloatArray, nu: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the logs of f and of the right hand integrand, both as densities of x."""
        with np.errstate(all="ignore"):  # far outside, where the bisection begins
            theta = self.theta_of(position)
            above = self.excess_at(theta)
            mean = 1.0 + above
            log_density = excess * theta - nu * (self.psi(theta) - theta)
            log_density = log_density - np.log(self.slope(theta))
            factor = ((excess + nu) * above + self.curvature(theta) / mean) / mean
            weighted = log_density + np.log(factor)
        return log_density, np.where(np.isnan(weighted), -np.inf, weighted)

    def nodes(self, chi: FloatArray, nu: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        found = self._quadrature(np.maximum(chi - nu, _MIN_EXCESS * nu), nu)
        weight = found.weight
        yield from zip(1.0 + self.excess_at(self.theta_of(found.position)), weight, strict=True)
        # Below the nodes the mean is 1.
        yield np.ones_like(found.step), 1.0 - weight.sum(axis=0)

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        found = self._quadrature(np.maximum(chi - nu, _MIN_EXCESS * nu), nu)
        below = 1.0 - found.weight.sum(axis=0)
        level = rng.random(np.shape(below)) - below
        index = np.sum(np.cumsum(found.weight, axis=0) < level, axis=0)
        index = np.minimum(index, _N_EVEN - 1)
        position = np.take_along_axis(found.position, np.asarray(index)[None], axis=0)[0]
        position = position + found.step * (rng.random(np.shape(below)) - 0.5)
        return np.where(level > 0, 1.0 + self.excess_at(self.theta_of(position)), 1.0)


class _Quadrature(NamedTuple):
    """Nodes along the first axis."""

    position: FloatArray
    log_share: FloatArray
    """Log of the share of f at each node; what is missing to 1 lies below the nodes."""
    log_total: FloatArray
    """Log of the integral of f."""
    step: FloatArray

    @property
    def weight(self) -> FloatArray:
        """The shares, which add up to at most 1."""
        share = np.exp(self.log_share)
        return share / np.maximum(share.sum(axis=0), 1.0)


class MeanInverse:
    """A parameter as a function of x = log log mean, tabulated once.

    Both families on 1, 2, ... have means near 1 for small parameters, where log mean is
    proportional to the parameter: x keeps the digits there.

    Parameters
    ----------
    parameter
        Nodes in ascending order, as many as ``nodes`` returns.
    log_mean
        The logarithm of the mean at each node.
    slope
        The derivative of ``log_mean`` in the parameter.
    """

    @staticmethod
    def nodes(low: float, high: float) -> FloatArray:
        """Return equidistant nodes of the parameter."""
        return np.linspace(low, high, _N_INVERSE_NODES)

    def __init__(self, parameter: FloatArray, log_mean: FloatArray, slope: FloatArray) -> None:
        from scipy.interpolate import CubicHermiteSpline  # not needed to import hcpf

        x = np.log(log_mean)
        spline = CubicHermiteSpline(x, parameter, log_mean / slope)
        self.low, self.high = float(x[0]), float(x[-1])
        # Intervals of equal width: the one that holds x is found without a search.
        self._x, self._width = np.linspace(self.low, self.high, _N_INVERSE_NODES, retstep=True)
        even = CubicHermiteSpline(self._x, spline(self._x), spline(self._x, 1))
        self._coefficients = even.c

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the parameter at x, which is clipped to the table; NaN stays NaN."""
        x = np.clip(x, self.low, self.high)
        fourth, third, second, first = self._coefficients
        with np.errstate(invalid="ignore"):  # the index of NaN
            index = ((x - self.low) / self._width).astype(np.intp)
        index = np.clip(index, 0, len(first) - 1)  # the last interval contains its end
        t = x - self._x[index]
        return first[index] + t * (second[index] + t * (third[index] + t * fourth[index]))


def inverse_if_positive(x: FloatArray) -> FloatArray:
    """Return 1 / x, infinite where x is not positive: moments that do not exist."""
    return np.where(x > 0, 1.0 / np.maximum(x, 1e-300), np.inf)
