"""The inverse Gaussian element, for positive values with a heavy tail."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
from hcpf.elements.conjugate import Conjugate, Part, Sharing
from hcpf.elements.domains import POSITIVE, POSITIVE_REALS
from hcpf.errors import EstimationError

_N_FAR_SDS = 9.0  # if the mean of t is this many sds above 0, truncation at 0 is below rounding

# Gauss-Legendre for the cdf of a value whose t is uncertain: nodes and weights on (0, 1), and how
# many standard deviations they reach below and above the center.
_ROOTS, _DOUBLE_WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _WEIGHTS = 0.5 * (_ROOTS + 1.0), 0.5 * _DOUBLE_WEIGHTS
_REACH = 7.0, 8.0


class InverseGaussianConjugate(Conjugate):
    r"""t = sqrt(-2 theta) has a density proportional to t N(t; nu/chi, 1/chi) on t > 0."""

    sharing = Sharing(
        lambda chi, nu: Part(np.zeros_like(chi), *_truncated_moments(chi, nu)[1:]),
        sign=-1.0, weighs=True, power=2.0,
        spread=lambda chi, nu: chi / (nu * nu), nu_at=lambda center, spread: center / spread,
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        _, mean, square = _truncated_moments(chi, nu)
        return -0.5 * square, -mean

    def mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        root = np.sqrt(chi)
        return root * special.ndtr(nu / root) / _truncated_moments(chi, nu)[0]

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        # Completing the square in the exponent leaves exp(nu^2 / (2 chi)), which would overflow.
        integral = _truncated_moments(chi, nu)[0]
        return 0.5 * nu * nu / chi + np.log(integral) + 0.5 * np.log(2.0 * np.pi) - np.log(chi)

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        exponent = (kappa * (2.0 * nu + kappa) - y * nu * (nu / chi)) / (chi + y)
        before, after = (_truncated_moments(*at)[0] for at in ((chi, nu), (chi + y, nu + kappa)))
        return 0.5 * exponent + np.log(after / before) - np.log1p(y / chi)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        # Near t = 0, E[1/t^2] is the integral of 1 / t: the density of t falls only with t.
        return np.full_like(chi, np.inf)

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        """Return the mean of the cdf F(y | t) over t, by Gauss-Legendre to an error below 1e-9.

        Where F rises with t more steeply than Pr(T > t) falls, the integral is taken by parts:
        F(y | 0) plus the integral of F'(t) Pr(T > t). Both F' and the density of t are negligible
        a few standard deviations from their centers.
        """
        y = np.clip(y, np.finfo(np.float64).tiny, 1e300)
        root_y, root_chi = np.sqrt(y), np.sqrt(chi)
        z = nu / root_chi
        total = z * special.ndtr(z) + _normal_density(z)
        by_parts = y > chi
        with np.errstate(over="ignore"):
            center = np.where(by_parts, kappa / y, nu / chi)
            sd = 1.0 / np.where(by_parts, root_y, root_chi)
        low = np.maximum(center - _REACH[0] * sd, 0.0)
        width = center + _REACH[1] * sd - low
        found = np.where(by_parts, special.erfc(kappa / (np.sqrt(2.0) * root_y)), 0.0)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            t = low + width * node
            x = t * root_chi
            lower, upper = _passage(y, kappa, t)
            above = z * special.ndtr(z - x) + _normal_density(x - z)
            density = x * _normal_density(x - z) * root_chi
            slope = 2.0 * kappa * upper
            part = np.where(by_parts, slope * above, density * (lower + upper)) / total
            found = found + weight * width * part
        return np.clip(found, 0.0, 1.0)

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        # Rejection: keep draws of the normal with a probability proportional to t. At the assumed
        # maximum, 6 standard deviations above the mean, the draws kept too rarely are negligible.
        chi, nu = np.broadcast_arrays(chi, nu)
        mean, sd = (nu / chi).ravel(), (1.0 / np.sqrt(chi)).ravel()
        maximum = mean + 6.0 * sd
        t = mean.copy()
        left = np.arange(t.size)
        while left.size:
            drawn = rng.normal(mean[left], sd[left])
            kept = rng.random(left.size) * maximum[left] < drawn
            t[left[kept]] = drawn[kept]
            left = left[~kept]
        return 1.0 / t.reshape(chi.shape)


def _passage(y: FloatArray, kappa: Parameter, t: Parameter) -> tuple[FloatArray, FloatArray]:
    """Return the two terms of Pr(Y <= y), where Y has the mean kappa / t and the shape kappa^2.

    Y is the time at which a Brownian motion of drift t first reaches kappa. The derivative of the
    probability in t is 2 kappa times the second term.
    """
    scale = kappa / np.sqrt(y)
    with np.errstate(over="ignore"):
        relative = y * (t / kappa)
        near, far = scale * (relative - 1.0), scale * (relative + 1.0)
        # exp(2 kappa t) Pr(Z < -far): the first overflows where the second underflows.
        upper = 0.5 * special.erfcx(far / np.sqrt(2.0)) * np.exp(-0.5 * np.square(near))
    return special.ndtr(near), upper


def _normal_density(x: FloatArray) -> FloatArray:
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


def _truncated_moments(
    chi: FloatArray, nu: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scaled integral of t N(t; nu/chi, 1/chi) on t > 0, and E[t] and E[t^2].

    With z = nu / sqrt(chi), the integrals over x > 0 of x^j N(x; z, 1) satisfy
    I_(j+1) = z I_j + j I_(j-1). All terms are positive, so nothing cancels.
    """
    root = np.sqrt(chi)
    z = nu / root
    # Most rows are far from 0, where the two special functions are not needed.
    is_near = z < _N_FAR_SDS
    zeroth, density = 1.0, 0.0
    if np.any(is_near):
        zeroth, density = np.ones_like(z), np.zeros_like(z)
        zeroth[is_near], density[is_near] = special.ndtr(z[is_near]), _normal_density(z[is_near])
    first = z * zeroth + density
    second = z * first + zeroth
    third = z * second + 2.0 * first
    return first, second / (first * root), third / (first * chi)


@dataclass(frozen=True, eq=False, repr=False)
class InverseGaussian(Element):
    r"""InverseGaussian(mean m, shape l); the sum of n is InverseGaussian(n m, n² l).

    :math:`\theta = -l/(2m^2),\ \kappa = \sqrt{l},\ \Psi(\theta) = -\sqrt{-2\theta}`
    """

    mean: Parameter = parameter(POSITIVE)
    shape: Parameter = parameter(POSITIVE)

    name = "inverse_gaussian"
    acronym = "IG"
    support = POSITIVE_REALS
    mean_parameter = "mean"
    kappa_note = ""
    dispersion_parameter = "shape"
    conjugate = InverseGaussianConjugate()

    @property
    def theta(self) -> Parameter:
        return -self.shape / (2.0 * self.mean * self.mean)

    @property
    def kappa(self) -> Parameter:
        return self.shape**0.5

    def log_partition(self, theta: Parameter) -> FloatArray:
        return -np.sqrt(-2.0 * theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        front = np.log(kappa) - 0.5 * np.log(2.0 * np.pi) - 1.5 * np.log(y)
        return front - kappa * kappa / (2.0 * y)

    @property
    def variance(self) -> Parameter:
        return self.mean**3 / self.shape

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        m, shape = self.mean, self.shape
        deviation = np.square((y - n * m) / m) / y
        front = np.log(n) + 0.5 * np.log(shape / (2.0 * np.pi)) - 1.5 * np.log(y)
        return front - 0.5 * shape * deviation

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        inside = np.clip(y, np.finfo(np.float64).tiny, 1e300)
        lower, upper = _passage(inside, n * self.kappa, self.kappa / self.mean)
        return np.where(y > 0, np.minimum(lower + upper, 1.0), 0.0)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.wald(n * self.mean, n * n * self.shape)

    @property
    def form(self) -> Separable:
        m, shape = self.mean, self.shape
        return Separable(
            c=lambda y: -1.5 * np.log(y) - shape * y / (2.0 * m * m),
            f=lambda n: np.log(n) + 0.5 * np.log(shape / (2.0 * np.pi)) + n * shape / m,
            g=lambda y: -shape / (2.0 * y),
            phi=lambda n: n * n,
        )

    def scaled_for_observed(self, expected_count: float) -> Self:
        return self.replace(mean=self.mean / expected_count, shape=self.shape / expected_count**2)

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return mean

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Return mean m and 1/l = avg (y - m)²/(m² y); equal values raise an EstimationError."""
        given = self.parameters
        mean = given.get("mean", float(y.mean()))
        if "shape" in given:
            return self.with_mean(mean)
        spread = float(np.mean(np.square((y - mean) / mean) / y))
        if not spread * mean > 1e-28:
            raise EstimationError(
                f"InverseGaussian: all values are close to {mean:g}, so the shape would be "
                "infinite. Pass shape=, or use an element for counts."
            )
        return self.replace(mean=mean, shape=1.0 / spread)
