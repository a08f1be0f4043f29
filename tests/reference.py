"""Slow, plain twins of what the library computes fast.

In high precision (mpmath): textbook densities and direct sums, with no care for cancellation or
overflow.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np

from hcpf.elements import Element

DIGITS = 40
"""Decimal digits carried: logarithms up to 1e7 keep more than 30 behind the point."""

Terms = Callable[[int], Any]


# -- densities of the sum of n elements, as a textbook prints them ---------------------------------


def log_poisson(n, rate):
    return n * mp.log(rate) - rate - mp.loggamma(n + 1)


def _normal(y, n, mean, variance):
    return -((y - n * mean) ** 2) / (2 * n * variance) - mp.log(2 * mp.pi * n * variance) / 2


def _gamma(y, n, shape, rate):
    return (
        n * shape * mp.log(rate) + (n * shape - 1) * mp.log(y) - rate * y - mp.loggamma(n * shape)
    )


def _inverse_gaussian(y, n, mean, shape):
    total_mean, total_shape = n * mean, n**2 * shape
    exponent = -total_shape * (y - total_mean) ** 2 / (2 * total_mean**2 * y)
    return mp.log(total_shape / (2 * mp.pi * y**3)) / 2 + exponent


def _poisson(y, n, rate):
    return log_poisson(y, n * rate)


def _binomial(y, n, trials, probability):
    total = n * trials
    if y > total:
        return mp.ninf
    choose = mp.loggamma(total + 1) - mp.loggamma(y + 1) - mp.loggamma(total - y + 1)
    return choose + y * mp.log(probability) + (total - y) * mp.log(1 - probability)


def _negative_binomial(y, n, successes, probability):
    total = n * successes
    rising = mp.loggamma(y + total) - mp.loggamma(total) - mp.loggamma(y + 1)
    return rising + y * mp.log(probability) + total * mp.log(1 - probability)


def _zero_truncated_poisson(y, n, rate):
    number = log_stirling2(int(y), int(n)) + mp.loggamma(n + 1) - mp.loggamma(y + 1)
    return number + y * mp.log(rate) - n * mp.log(mp.expm1(rate))


def _logarithmic(y, n, probability):
    number = log_stirling1(int(y), int(n)) + mp.loggamma(n + 1) - mp.loggamma(y + 1)
    return number + y * mp.log(probability) - n * mp.log(-mp.log(1 - probability))


def _geometric(y, n, probability):
    if n > y:
        return mp.ninf
    choose = mp.loggamma(y) - mp.loggamma(n) - mp.loggamma(y - n + 1)
    return choose + (y - n) * mp.log(probability) + n * mp.log(1 - probability)


def _degenerate(y, n):
    return mp.mpf(0) if y == n else mp.ninf


_TEXTBOOK: dict[str, Callable[..., Any]] = {
    "normal": _normal,
    "gamma": _gamma,
    "inverse_gaussian": _inverse_gaussian,
    "poisson": _poisson,
    "binomial": _binomial,
    "negative_binomial": _negative_binomial,
    "zero_truncated_poisson": _zero_truncated_poisson,
    "logarithmic": _logarithmic,
    "geometric": _geometric,
    "degenerate": _degenerate,
}


def exact_parameters(element: Element) -> dict[str, Any]:
    """The parameters as the exact values of their doubles."""
    return {name: mp.mpf(float(value)) for name, value in element.parameters.items()}


def log_density(element: Element, y: float, n: int) -> Any:
    """log p(y | n), to all digits."""
    with mp.workdps(DIGITS):
        textbook = _TEXTBOOK[element.name]
        return +textbook(mp.mpf(float(y)), mp.mpf(n), **exact_parameters(element))


# -- Stirling numbers by integers -------------------------------------------------------------


@cache
def stirling_row(kind: int, y: int) -> tuple[int, ...]:
    """S2(y, n) (kind 2) or |s(y, n)| (kind 1) for n = 0..y, exactly."""
    row = [1]
    for size in range(1, y + 1):
        before = [*row, 0]
        row = [0] * (size + 1)
        for n in range(1, size + 1):
            row[n] = (n if kind == 2 else size - 1) * before[n] + before[n - 1]
    return tuple(row)


def log_stirling1(y: int, n: int) -> Any:
    return _log_integer(stirling_row(1, y)[n]) if 1 <= n <= y else mp.ninf


def log_stirling2(y: int, n: int) -> Any:
    return _log_integer(stirling_row(2, y)[n]) if 1 <= n <= y else mp.ninf


def log_stirling2_alternating(y: int, n: int) -> Any:
    """The alternating sum that the paper prints, with as many digits as it takes."""
    total = sum((-1) ** j * math.comb(n, j) * (n - j) ** y for j in range(n))
    return _log_integer(total) - mp.loggamma(n + 1)


def _log_integer(value: int) -> Any:
    with mp.workdps(DIGITS):
        return mp.log(mp.mpf(value))


# -- conjugate priors of theta ---------------------------------------------------------------------


def log_predictive(element: Element, y: float, kappa: float, chi: float, nu: float) -> Any:
    """log Z(chi + y, nu + kappa) - log Z(chi, nu), with so many digits that it may cancel."""
    with mp.workdps(2 * DIGITS):
        y, kappa, chi, nu = (mp.mpf(float(number)) for number in (y, kappa, chi, nu))
        normalizer = _LOG_NORMALIZER[element.name]
        return normalizer(chi + y, nu + kappa) - normalizer(chi, nu)


def _log_beta(a, b):
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def _of_inverse_gaussians(chi, nu):
    z = nu / mp.sqrt(chi)
    return z * z / 2 + mp.log(z * mp.ncdf(z) + mp.npdf(z)) + mp.log(2 * mp.pi) / 2 - mp.log(chi)


_LOG_NORMALIZER: dict[str, Callable[..., Any]] = {
    "normal": lambda chi, nu: (mp.log(2 * mp.pi / nu) + chi**2 / nu) / 2,
    "gamma": lambda chi, nu: mp.loggamma(nu + 1) - (nu + 1) * mp.log(chi),
    "inverse_gaussian": _of_inverse_gaussians,
    "poisson": lambda chi, nu: mp.loggamma(chi) - chi * mp.log(nu),
    "binomial": lambda chi, nu: _log_beta(chi, nu - chi),
    "negative_binomial": lambda chi, nu: _log_beta(chi, nu + 1),
    "geometric": lambda chi, nu: _log_beta(chi - nu, nu + 1),
}


# -- compound densities ----------------------------------------------------------------------------


def log_compound(element: Element, rate: float, y: float) -> Any:
    """log of the sum over n >= 1 of Po(n | rate) p(y | n).

    Where n would run over Stirling numbers an equivalent compound takes the place of the sum.
    """
    with mp.workdps(DIGITS):
        outer, value = mp.mpf(float(rate)), mp.mpf(float(y))
        return +_COMPOUND.get(element.name, _directly)(element, outer, value)


def _directly(element, rate, y):
    textbook, exact = _TEXTBOOK[element.name], exact_parameters(element)
    low, high = element.n_range(np.array(float(y)))
    return log_sum_from_mode(
        lambda n: log_poisson(n, rate) + textbook(y, mp.mpf(n), **exact), int(low), float(high)
    )


def _of_poissons(element, rate, y):
    """Zero-truncated Poissons are Poissons of which the zeros do not show (Neyman's type A)."""
    inner = exact_parameters(element)["rate"]
    outer = rate / -mp.expm1(-inner)
    return log_sum_from_mode(lambda n: log_poisson(n, outer) + log_poisson(y, n * inner), 1, mp.inf)


def _as_negative_binomial(element, rate, y):
    p = exact_parameters(element)["probability"]
    return _negative_binomial(y, 1, rate / -mp.log(1 - p), p)


def _as_poisson(_, rate, y):
    return log_poisson(y, rate)


_COMPOUND: dict[str, Callable[..., Any]] = {
    "zero_truncated_poisson": _of_poissons,
    "logarithmic": _as_negative_binomial,
    "degenerate": _as_poisson,
}


def log_sum_from_mode(log_term: Terms, low: int, high: float) -> Any:
    """log of a sum of log-concave terms, outward from the largest until nothing is added."""
    mode = _mode(log_term, low, high)
    peak, total, least = log_term(mode), mp.mpf(1), mp.mpf(10) ** -25
    for step in (1, -1):
        n = mode + step
        while low <= n <= high:
            term = mp.exp(log_term(n) - peak)
            total += term
            if term < least:
                break
            n += step
    return peak + mp.log(total)


def _mode(log_term: Terms, low: int, high: float) -> int:
    top = low
    while top < high and log_term(min(2 * top, high)) > log_term(top):
        top *= 2
    top = int(min(2 * top, high))
    while low < top:
        middle = (low + top) // 2
        if log_term(middle + 1) > log_term(middle):
            low = middle + 1
        else:
            top = middle
    return low


def relative_error(element: Element, rate: float, y: float, log_density: float) -> float:
    """|p - exact| / exact, from the logarithm of p."""
    with mp.workdps(DIGITS):
        return float(abs(mp.expm1(mp.mpf(log_density) - log_compound(element, rate, y))))
