"""Exponentials, digamma and log gamma for the inner loops."""

import math

import numpy as np

from hcpf.core.jit import FAST, inner

f4 = np.float32

LOG2_E = 1.44269504


@inner(forceinline=True, fastmath=FAST)
def fast_log2(x):
    """float32 log2 of a positive number, written so that it vectorizes.

    x = 2^n m with m within a factor of sqrt(2) of 1, and log m = 2 atanh((m - 1) / (m + 1)).
    """
    bits = np.float32(x).view(np.int32)
    n = (bits - np.int32(0x3F3504F3)) >> np.int32(23)  # the bits of sqrt(1/2)
    m = np.int32(bits - (n << np.int32(23))).view(np.float32)
    t = (m - f4(1.0)) / (m + f4(1.0))
    t2 = t * t
    series = f4(1.0) + t2 * (f4(1 / 3) + t2 * (f4(1 / 5) + t2 * (f4(1 / 7) + t2 * f4(1 / 9))))
    return f4(n) + f4(2.0 * LOG2_E) * t * series


@inner()
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


@inner()
def log_mean(a, mean):
    """E log of a Gamma(a, b) variable with the given mean a / b."""
    return digamma(a) - math.log(a / mean)


@inner()
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
