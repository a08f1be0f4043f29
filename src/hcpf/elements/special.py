"""Special functions that stay accurate where the textbook formulas cancel, and searches."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, ComplexArray, FloatArray
from hcpf.elements.domains import POSITIVE, REAL, UNIT_INTERVAL, Domain
from hcpf.errors import EstimationError

if TYPE_CHECKING:
    from hcpf.elements.base import Element

    E = TypeVar("E", bound=Element)


_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
_LOG_2 = float(np.log(2.0))
_N_BETA_NODES, _MAX_DROP, _MAX_SHAPE = 40, 16.0, 1e12  # of the integral over a beta density
_MIN_DIGAMMA_SERIES = 16.0  # argument above which the error of five terms is below rounding


def stirling_error(x: ArrayLike) -> FloatArray:
    r"""Return log Γ(x + 1) minus Stirling's x log x - x + log(2πx)/2, for x > 0.

    >>> bool(abs(stirling_error(100.0) - 1 / 1200) < 1e-8)
    True
    """
    x = np.asarray(x, dtype=np.float64)
    large = np.maximum(x, 15.0)
    z = 1.0 / (large * large)
    series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / large
    small = np.minimum(x, 15.0)
    direct = special.gammaln(small + 1.0) - (special.xlogy(small + 0.5, small) - small)
    return np.where(x >= 15.0, series, direct - _HALF_LOG_2PI)


def digamma(x: ArrayLike) -> FloatArray:
    """Return the digamma function for x > 0; faster than scipy for large x.

    >>> bool(abs(digamma(1.0) + 0.5772156649015329) < 1e-15)
    True
    """
    x = np.asarray(x, dtype=np.float64)
    large = np.maximum(x, _MIN_DIGAMMA_SERIES)
    r = 1.0 / large
    z = r * r
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132)))))
    out = np.asarray(np.log(large) - (0.5 * r + series))
    small = x < _MIN_DIGAMMA_SERIES
    if np.any(small):
        out[small] = special.psi(x[small])
    return out


def log1p_minus(x: ArrayLike) -> FloatArray:
    """Return log(1 + x) - x without cancellation near 0.

    >>> round(float(log1p_minus(1e-9)) * 1e18, 6)
    -0.5
    """
    x = np.asarray(x, dtype=np.float64)
    t = np.where(np.abs(x) < 0.2, x / (2.0 + np.maximum(x, -0.2)), 0.0)
    # log((1+t)/(1-t)) = 2 (t + t^3/3 + ...) and x = 2t/(1-t), so the leading x cancels exactly.
    squared = t * t
    tail = np.zeros_like(t)
    for power in range(23, 1, -2):
        tail = squared * (1.0 / power + tail)
    near = 2.0 * t * tail - t * x
    with np.errstate(divide="ignore"):
        far = np.log1p(x) - x
    return np.where(np.abs(x) < 0.2, near, far)


def log_expm1(x: ArrayLike) -> FloatArray:
    """Return log(e^x - 1) for x > 0 without overflow."""
    x = np.asarray(x, dtype=np.float64)
    return x + np.log(-np.expm1(-x))


def log1mexp(x: ArrayLike) -> FloatArray:
    """Return log(1 - e^x) for x < 0, accurate close to 0 and far below it (Mächler 2012)."""
    x = np.asarray(x, dtype=np.float64)
    near, far = np.maximum(x, -_LOG_2), np.minimum(x, -_LOG_2)
    return np.where(x > -_LOG_2, np.log(-np.expm1(near)), np.log1p(-np.exp(far)))


def log_poisson(n: ArrayLike, rate: ArrayLike) -> FloatArray:
    r"""Return log of e^-rate rate^n / Γ(n + 1) for real n >= 0 and rate > 0.

    Computed from the deviance (Loader 2000), which is accurate where n log(rate), rate and log Γ
    are huge and nearly cancel.

    >>> float(log_poisson(0, 2.5))
    -2.5
    """
    n = np.asarray(n, dtype=np.float64)
    rate = np.asarray(rate, dtype=np.float64)
    safe = np.maximum(n, 1e-300)
    with np.errstate(over="ignore"):
        relative = (rate - safe) / safe
    # Far from n the relative difference has lost the smaller of the two, but nothing cancels.
    is_near = np.abs(relative) < 0.5
    near = safe * log1p_minus(np.where(is_near, relative, 0.0))
    far = safe * (np.log(rate) - np.log(safe)) - rate + safe
    deviance = np.where(is_near, near, far)
    main = deviance - 0.5 * np.log(safe) - _HALF_LOG_2PI - stirling_error(safe)
    return np.where(n > 0, main, -rate)


def log_binomial(x: ArrayLike, total: ArrayLike, p: ArrayLike) -> FloatArray:
    r"""Return log of C(total, x) p^x (1-p)^(total-x) for real 0 <= x <= total.

    As accurate as ``log_poisson``, since a Poisson given its sum with another is binomial.

    >>> round(float(log_binomial(3, 8, 0.5)) - float(np.log(56 / 256)), 12)
    0.0
    """
    x, total, p = (np.asarray(value, dtype=np.float64) for value in (x, total, p))
    parts = log_poisson(x, total * p) + log_poisson(total - x, total * (1.0 - p))
    return parts - log_poisson(total, total)


def log_rising(a: ArrayLike, y: ArrayLike) -> FloatArray:
    r"""Return log of Γ(a + y) / Γ(a) for a > 0 and y >= 0, accurate also if a far exceeds y."""
    a = np.asarray(a, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    large = np.maximum(a, 10.0)
    # Γ(a) = Γ(a + 1) / a turns stirling_error into the error of log Γ(a) itself.
    series = (
        (large + y - 0.5) * np.log1p(y / large)
        + y * (np.log(large) - 1.0)
        + stirling_error(large + y)
        - stirling_error(large)
    )
    small = np.minimum(a, 10.0)
    direct = special.gammaln(small + y) - special.gammaln(small)
    return np.where(a >= 10.0, series, direct)


def prob_beta_below(a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> FloatArray:
    r"""Return Pr(P <= Q) for independent P ~ Beta(a, b) and Q ~ Beta(c, d), c >= 1.

    It is the mean of one's cdf under the density of the other. The narrower density is integrated,
    so that the cdf is smooth between nodes; the error is below 1e-6 if b >= 1 or d >= 1.

    >>> round(float(prob_beta_below(2.0, 1.0, 1.0, 1.0)), 6)
    0.333333
    """
    shapes = (np.asarray(shape, dtype=np.float64) for shape in (a, b, c, d))
    a, b, c, d = np.broadcast_arrays(*shapes)
    # A density of few nodes must fall off fast: the cdf of Q at d is that at d + 1 and a product.
    is_slow = d < 1
    total = np.zeros(d.shape)
    if np.any(is_slow):
        slow = np.minimum(d, 1.0)
        product = special.betaln(a + c, b + slow) - special.betaln(a, b) - special.betaln(c, slow)
        total = np.where(is_slow, np.exp(product - np.log(slow)), 0.0)
        d = np.where(is_slow, d + 1.0, d)
    first, second = (_log_odds_variance(*shape) for shape in ((a, b), (c, d)))
    swapped = first < second
    a, b, c, d = (np.where(swapped, x, y) for x, y in ((c, a), (d, b), (a, c), (b, d)))
    mirrored = c > d
    a, b, c, d = (np.where(mirrored, x, y) for x, y in ((b, a), (a, b), (d, c), (c, d)))
    mean = _mean_beta_cdf(a, b, c, d)
    return total + np.where(swapped ^ mirrored, 1.0 - mean, mean)


def _log_odds_variance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return about the variance of the log odds of a beta variable."""
    return (1.0 + 1.0 / a) / a + (1.0 + 1.0 / b) / b


def _mean_beta_cdf(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
    """Return the mean of the cdf of Beta(a, b) under the density of Beta(c, d), c <= d.

    The trapezoid rule over the log odds of Q, between the ends where its log density has fallen by
    ``_MAX_DROP``; the nodes' weights are normalized.
    """
    mode, share = np.log(c / d), c / (c + d)
    shrink = np.minimum(1.0, _MAX_SHAPE / c)
    c, d = shrink * c, shrink * d

    def log_density(x: FloatArray) -> FloatArray:
        return c * x - (c + d) * np.log1p(share * np.expm1(x))

    ends = list[FloatArray]()
    # Not wider than in proportion: three steps would leave a narrow density between the nodes.
    wide = np.sqrt(2.0 * _MAX_DROP * (1.0 / c + 1.0 / d))
    for sign, rate in ((-1.0, c), (1.0, d)):
        x = sign * np.minimum(_MAX_DROP / rate + wide, 700.0)
        for _ in range(3):  # Newton steps from outside, where the concave function is steepest
            odds = share * np.expm1(x)
            slope = c - (c + d) * (share + odds) / (1.0 + odds)
            x = x - (log_density(x) + _MAX_DROP) / slope
        ends.append(x)
    step = (ends[1] - ends[0]) / (_N_BETA_NODES - 1)
    total, mean = np.zeros(c.shape), np.zeros(c.shape)
    for index in range(_N_BETA_NODES):
        x = ends[0] + index * step
        weight = np.exp(log_density(x))
        total += weight
        mean += weight * special.betainc(a, b, special.expit(mode + x))
    return mean / total


def truncated_poisson_moments(rate: ArrayLike) -> tuple[Any, Any]:
    r"""Return mean and variance of a Poisson given that it is not 0.

    The mean is :math:`\Lambda/(1 - e^{-\Lambda})` and the variance mean times
    :math:`1 - \Lambda/(e^\Lambda - 1)`, about :math:`\Lambda/2` at small rates.
    """
    rate = np.asarray(rate, dtype=np.float64)
    mean = rate / -np.expm1(-rate)
    small = np.minimum(rate, 0.1)
    squared = small * small
    near = small * (0.5 - small * (1 / 12 - squared * (1 / 720 - squared / 30240)))
    far = 1.0 + rate - mean
    return mean, mean * np.where(rate < 0.1, near, far)


def truncated_poisson_excess(rate: ArrayLike) -> FloatArray:
    r"""Return the mean of a Poisson given that it is not 0, less 1; about rate / 2 near 0.

    >>> round(float(truncated_poisson_excess(1e-12)) * 1e12, 6)
    0.5
    """
    rate = np.asarray(rate, dtype=np.float64)
    small = np.minimum(rate, 0.1)
    squared = small * small
    near = small * (0.5 + small * (1 / 12 - squared * (1 / 720 - squared / 30240)))
    return np.where(rate < 0.1, near, rate / -np.expm1(-rate) - 1.0)


def log_characteristic_truncated_poisson(rate: ArrayLike, angle: FloatArray) -> ComplexArray:
    r"""Return log of E[e^{iφ(X-1)}] = (e^z - 1)/z · r/(e^r - 1), z = r e^{iφ}, for X >= 1."""
    rate = np.asarray(rate, dtype=np.float64)
    log_turn: ComplexArray = np.asarray(1j * angle, dtype=np.complex128)
    turn = np.exp(log_turn)
    # expm1 is accurate at small rates; at large ones it would overflow, and 1 is negligible.
    small = np.minimum(rate, 40.0)
    near = np.log(np.expm1(small * turn) / np.expm1(small))
    return np.where(rate < 40.0, near, rate * (turn - 1.0)) - log_turn


def log_characteristic_logarithmic(p: ArrayLike, angle: FloatArray) -> ComplexArray:
    r"""Return log of E[e^{iφ(X-1)}] = log(1 - z)/z · p/log(1 - p), z = p e^{iφ}, for X >= 1."""
    p = np.asarray(p, dtype=np.float64)
    z = p * np.exp(1j * angle)
    # NumPy's complex log1p loses digits near 0; there, 15 terms of -log(1-z)/z suffice.
    series = np.zeros_like(z)
    for power in range(14, -1, -1):
        series = 1.0 / (power + 1.0) + z * series
    inner = np.where(p < 0.05, series, -np.log1p(-z) / z)
    return np.log(inner * (-p / np.log1p(-p)))


# -- searches --------------------------------------------------------------------------------------


def root(monotone: Callable[[float], float], low: float, high: float) -> float:
    """Return the root between two bounds, or the bound that is closer to one if there is none."""
    from scipy import optimize  # slow to load, and not needed to predict

    at_low, at_high = monotone(low), monotone(high)
    if at_low * at_high >= 0:
        return low if abs(at_low) < abs(at_high) else high
    tolerances: dict[str, Any] = {"xtol": 1e-300, "rtol": 1e-14, "maxiter": 1000}
    return float(cast("float", optimize.brentq(monotone, low, high, **tolerances)))


def last_rise(rises: Callable[[int], bool], low: int, high: int) -> int:
    """Return the index in [low, high] of the maximum of a unimodal sequence.

    ``rises(n)`` tells whether it is larger at n + 1 than at n.
    """
    while low < high:
        middle = (low + high) // 2
        if rises(middle):
            low = middle + 1
        else:
            high = middle
    return low


def _positive(t: float) -> float:
    return float(np.exp(np.clip(t, -30.0, 30.0)))


def _in_unit_interval(t: float) -> float:
    return float(1.0 / (1.0 + np.exp(-np.clip(t, -30.0, 30.0))))


_TO_DOMAIN: dict[Domain, Callable[[float], float]] = {
    REAL: float,
    POSITIVE: _positive,
    UNIT_INTERVAL: _in_unit_interval,
}


def numeric_maximum(element: "E", y: FloatArray) -> "E":
    """Return the element with missing parameters that maximize the likelihood, without derivatives.

    The default for elements that do not define ``maximize_likelihood``. Integer parameters cannot
    be estimated this way.
    """
    domains = element.domains()
    missing = [name for name in domains if name not in element.parameters]
    for name in missing:
        if domains[name] not in _TO_DOMAIN:
            raise EstimationError(f"{type(element).__name__} cannot estimate {name}. Pass {name}=.")
    values, counts = np.unique(y, return_counts=True)

    def element_at(point: FloatArray) -> "E":
        moved = {k: _TO_DOMAIN[domains[k]](t) for k, t in zip(missing, point, strict=True)}
        return element.replace(**moved)

    def loss(point: FloatArray) -> float:
        density = element_at(point).log_density_unchecked(values, np.ones_like(values))
        total = float(counts @ np.maximum(density, -1e10))
        return -total / y.size if np.isfinite(total) else 1e300

    starts = (np.full(len(missing), start) for start in (0.0, -2.0, 2.0))
    best, min_loss = min((_nelder_mead(loss, start) for start in starts), key=lambda end: end[1])
    if min_loss >= 1e9:
        raise EstimationError(
            f"{type(element).__name__} cannot be estimated: no parameters give all values a mass."
        )
    return element_at(best)


def _nelder_mead(
    loss: Callable[[FloatArray], float], start: FloatArray
) -> tuple[FloatArray, float]:
    from scipy import optimize

    tolerances = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000, "maxfev": 4000}
    # The default simplex has almost no extent if the start is 0.
    simplex = np.vstack([start, start + np.eye(len(start))])
    result: Any = optimize.minimize(
        loss, start, method="Nelder-Mead", options={**tolerances, "initial_simplex": simplex}
    )
    return np.asarray(result.x, dtype=np.float64), float(result.fun)
