"""Exponentials, digamma and log gamma for the inner loops."""

import math

import numpy as np

from hcpf.inference.jit import FAST, kernel

f4 = np.float32

LOG2_E = 1.44269504
LOG_2_HIGH, LOG_2_LOW = 0.693359375, -2.12194440e-4
"""log 2 in two parts: products with the first, which has few digits, are exact."""
EXP_SERIES = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
"""e^r, without its first two terms, over r^2, for r from -log(2)/2 to log(2)/2."""


@kernel(forceinline=True, fastmath=FAST)
def fast_exp(x):
    """float32 exp for x <= 88 (0 below -87), written so that it vectorises."""
    holds = x >= f4(-87.0)
    x = max(x, f4(-87.0))
    n = np.floor(x * f4(LOG2_E) + f4(0.5))
    r = x - n * f4(LOG_2_HIGH) - n * f4(LOG_2_LOW)
    p = f4(EXP_SERIES[0])
    p = p * r + f4(EXP_SERIES[1])
    p = p * r + f4(EXP_SERIES[2])
    p = p * r + f4(EXP_SERIES[3])
    p = p * r + f4(EXP_SERIES[4])
    p = p * r + f4(EXP_SERIES[5])
    p = p * r * r + r + f4(1.0)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return p * power if holds else f4(0.0)


@kernel(forceinline=True, fastmath=FAST)
def fast_log2(x):
    """float32 log2 of a positive number, written so that it vectorises.

    x = 2^n m with m within a factor of sqrt(2) of 1, and log m = 2 atanh((m - 1) / (m + 1)).
    """
    bits = np.float32(x).view(np.int32)
    n = (bits - np.int32(0x3F3504F3)) >> np.int32(23)  # the bits of sqrt(1/2)
    m = np.int32(bits - (n << np.int32(23))).view(np.float32)
    t = (m - f4(1.0)) / (m + f4(1.0))
    t2 = t * t
    series = f4(1.0) + t2 * (f4(1 / 3) + t2 * (f4(1 / 5) + t2 * (f4(1 / 7) + t2 * f4(1 / 9))))
    return f4(n) + f4(2.0 * LOG2_E) * t * series


@kernel(forceinline=True, fastmath=FAST)
def geometric_mean(a, mean):
    """float32 exp(E log s) of a Gamma variable with shape a and the given mean.

    That is mean exp(digamma(a)) / a: four steps of the recurrence, then the asymptotic series,
    with one division for all of its fractions. Beyond 3e7, where that would overflow, the two
    means agree to the last bit; below 1e-30 it is 0 in any case.
    """
    a = min(max(a, f4(1e-30)), f4(3e7))
    z = a + f4(4.0)
    outer = a * (a + f4(3.0))
    inner = outer + f4(2.0)  # (a + 1) (a + 2)
    inverse = f4(1.0) / (outer * inner * z)
    r = outer * inner * inverse  # 1 / z
    steps = (a + a + f4(3.0)) * (outer + inner) * z * inverse  # 1/a + 1/(a+1) + 1/(a+2) + 1/(a+3)
    over_a = (a + f4(3.0)) * inner * z * inverse  # 1 / a
    r2 = r * r
    series = f4(0.5) * r + r2 * (f4(1 / 12) - r2 * (f4(1 / 120) - r2 * f4(1 / 252)))
    return mean * (f4(1.0) + f4(4.0) * over_a) * fast_exp(-(series + steps))


@kernel()
def digamma(a):
    """float64 digamma of a > 0."""
    if a < 1e-4:
        # -1/a - Euler's constant + zeta(2) a: shapes near those of the paper's priors
        return -1.0 / a - 0.5772156649015329 + (1.6449340668482264 - 1.2020569031595942 * a) * a
    shift = 0.0
    while a < 10.0:
        shift -= 1.0 / a
        a += 1.0
    r2 = 1.0 / (a * a)
    series = r2 * (1 / 12 - r2 * (1 / 120 - r2 * (1 / 252 - r2 * (1 / 240 - r2 / 132))))
    return shift + math.log(a) - 0.5 / a - series


@kernel()
def log_mean(a, mean):
    """E log of a Gamma(a, b) variable with the given mean a / b."""
    return digamma(a) - math.log(a / mean)


@kernel()
def log_gamma_digamma(a):
    """Log Gamma(a) and digamma(a) together."""
    shift, product = 0.0, 1.0
    while a < 8.0:
        shift -= 1.0 / a
        product *= a
        a += 1.0
    log = math.log(a)
    r = 1.0 / a
    r2 = r * r
    gamma = r * (1 / 12 - r2 * (1 / 360 - r2 * (1 / 1260 - r2 * (1 / 1680 - r2 / 1188))))
    series = r2 * (1 / 12 - r2 * (1 / 120 - r2 * (1 / 252 - r2 * (1 / 240 - r2 / 132))))
    log_gamma = (a - 0.5) * log - a + 0.9189385332046727 + gamma - math.log(product)
    return log_gamma, shift + log - 0.5 * r - series
