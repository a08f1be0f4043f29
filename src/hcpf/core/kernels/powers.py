"""Exponentials of float32 vectors."""

from hcpf.core.kernels.lanes import FLOAT, INT32, Lanes
from hcpf.core.kernels.scalars import LOG2_E

_LOG_2_HIGH, _LOG_2_LOW = 0.693359375, -2.12194440e-4
# log 2 in two parts: products with the first, which has few digits, are exact.
_POWER_SERIES = (
    1.0, 0.6931472056, 0.2402264661, 0.0555032900, 0.0096185195, 0.0013399860, 0.0001533758,
)  # fmt: skip
# of 2^r, within 2e-9 of it for r from -1/2 to 1/2


def exponential(x: Lanes) -> Lanes:
    """Exponentials of float32 from -87 to 88: 2^n e^r with r within log(2)/2 of 0."""
    n = (x * LOG2_E + 0.5).floor()
    r = x - n * _LOG_2_HIGH - n * _LOG_2_LOW
    return _scaled_power(n, r * LOG2_E)


def power_of_two(x: Lanes) -> Lanes:
    """2^x for float32 from -126 to 127; anything beyond."""
    n = (x + 0.5).floor()
    return _scaled_power(n, x - n)


def _scaled_power(n: Lanes, r: Lanes) -> Lanes:
    """2^(n + r) for whole n and r from -1/2 to 1/2; in pieces that need not wait for each other."""
    c0, c1, c2, c3, c4, c5, c6 = _POWER_SERIES
    r2 = r * r
    high = (r * c5 + c4) + r2 * c6
    series = (r * c1 + c0) + r2 * ((r * c3 + c2) + r2 * high)
    return series * ((n.to(INT32) + 127) << 23).bits_as(FLOAT)
