"""Domains of parameters, supports of values, and checks that name what lies outside."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hcpf._types import ArrayLike, BoolArray, FloatArray
from hcpf.errors import InputError, ParameterError, SupportError

SMALLEST = 1e-9
"""The value of an estimate that would otherwise lie on the edge of its domain."""

_CHUNK = 1 << 18  # values checked at once
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


def _is_integer(x: FloatArray) -> BoolArray:
    return x == np.floor(x)


@dataclass(frozen=True)
class Domain:
    """A set that a parameter must lie in."""

    description: str
    contains: Callable[[FloatArray], BoolArray]

    def check(self, owner: str, name: str, value: ArrayLike) -> float | FloatArray:
        """Return ``value`` as float64, or raise a ParameterError that names it.

        Arrays are copied and made read-only, since they are not checked again.
        """
        array = as_float_array(value, f"{owner}: {name}")
        bad = ~(np.isfinite(array) & self.contains(array))
        if np.any(bad):
            shown = _shown(array, int(np.argmax(bad)))
            raise ParameterError(f"{owner}: {name} must be {self.description}, got {shown}.")
        if array.ndim == 0:
            return float(array)
        array = array.copy()
        array.flags.writeable = False
        return array


REAL = Domain("a finite number", np.isfinite)
POSITIVE = Domain("a finite number above 0", lambda x: x > 0)
UNIT_INTERVAL = Domain("strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
POSITIVE_INTEGER = Domain("an integer, 1 or more", lambda x: (x >= 1) & _is_integer(x))


@dataclass(frozen=True)
class Support:
    """The values that an observed pair, a sum of one or more elements, can have."""

    description: str
    discrete: bool
    lowest: float
    contains: Callable[[FloatArray], BoolArray]
    magnitudes: tuple[float, float] = (0.0, np.inf)
    """The smallest and the largest magnitude that models can be trained on."""

    @property
    def has_zero(self) -> bool:
        """Whether 0 is a possible observed value."""
        return bool(self.contains(np.zeros(())))

    def check(self, owner: str, y: ArrayLike) -> FloatArray:
        """Return ``y`` as float64, or raise a SupportError naming the first bad value."""
        array = as_float_array(y, f"the values for {owner}")
        self.require(owner, array)
        return array

    def require(self, owner: str, values: FloatArray) -> None:
        """Raise a SupportError naming the first bad value, without copying all values."""
        count, first, flat = 0, 0, values.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            chunk = np.asarray(flat[start : start + _CHUNK], dtype=np.float64)
            bad = ~(np.isfinite(chunk) & self.contains(chunk))
            if not count:
                first = start + int(np.argmax(bad))
            count += int(bad.sum())
        if count:
            more = f" ({count:,} such values in total)" if count > 1 else ""
            raise SupportError(
                f"{owner} takes {self.description}, but a value is {_shown(values, first)}{more}. "
                "Choose an element whose support has these values, or remove or transform them."
            )

    def require_magnitude(self, owner: str, values: FloatArray) -> None:
        """Raise a SupportError where values are too large or too small to train on."""
        if not values.size:
            return
        smallest, largest = self.magnitudes
        low, high = float(values.min()), float(values.max())
        top = max(high, -low)
        # The normal is about the largest: its other values may be close to 0.
        extremes = [top] if low <= 0 else [low, top]
        for size in extremes:
            if size and not smallest <= size <= largest:
                advice = " and choose an element for numbers above 0" if self.discrete else ""
                raise SupportError(
                    f"{owner} cannot be trained on a value of {size:g}: sums and powers of such "
                    f"values exceed double precision. Rescale them{advice}, for example in units "
                    f"of {size:.0e}."
                )


_REAL_MAGNITUDES = 1e-60, 1e60
"""Fifth powers, such as in the variance of an inverse Gaussian's mean, stay inside the doubles."""
_COUNT_MAGNITUDES = 0.0, 1e12
"""Logs of factorials, whose differences matter, keep four decimals."""

REALS = Support("real numbers", False, -np.inf, np.isfinite, _REAL_MAGNITUDES)
POSITIVE_REALS = Support("numbers above 0", False, 0.0, lambda y: y > 0, _REAL_MAGNITUDES)
COUNTS = Support(
    "integers 0, 1, 2, ...", True, 0.0, lambda y: (y >= 0) & _is_integer(y), _COUNT_MAGNITUDES
)
POSITIVE_COUNTS = Support(
    "integers 1, 2, 3, ...", True, 1.0, lambda y: (y >= 1) & _is_integer(y), _COUNT_MAGNITUDES
)


def as_float_array(value: ArrayLike, what: str) -> FloatArray:
    """Convert to float64, or raise an InputError that names ``what`` could not be converted."""
    try:
        array = np.asarray(value)
        # Objects may be Decimals or Fractions; None and text must not pass as NaN or as numbers.
        readable = array.dtype.kind in "buif" or (
            array.dtype.kind == "O" and not any(x is None or isinstance(x, str) for x in array.flat)
        )
        if not readable:
            raise TypeError(f"{array.dtype} is not numeric")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers, got {type(value).__name__}: {error}.") from None


def check_not_nan(value: ArrayLike, what: str) -> FloatArray:
    """Return ``value`` as float64, infinities allowed, or raise an InputError."""
    array = as_float_array(value, what)
    if np.any(np.isnan(array)):
        raise InputError(f"{what} must not be NaN.")
    return array


def check_counts(n: ArrayLike) -> FloatArray:
    """Return the numbers of summed elements ``n`` (each at least 1) as float64."""
    array = as_float_array(n, "n, the number of summed elements,")
    bad = ~(np.isfinite(array) & POSITIVE_INTEGER.contains(array))
    if np.any(bad):
        raise InputError(
            f"n, the number of summed elements, must be {POSITIVE_INTEGER.description}, "
            f"got {_shown(array, int(np.argmax(bad)))}."
        )
    return array


def check_rng(rng: np.random.Generator) -> np.random.Generator:
    """Return ``rng`` if it is a Generator, or raise an InputError with an example."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a Generator such as np.random.default_rng(0), got {rng!r}.")
    return rng


def inside_unit(p: float | FloatArray) -> float | FloatArray:
    """Return estimated probabilities moved into [1e-9, 1), to the last double below 1."""
    return np.clip(p, SMALLEST, _BELOW_ONE)


def _shown(array: FloatArray, index: int) -> str:
    """Return the value at a flat index as text, with its position."""
    position = np.unravel_index(index, array.shape)
    where = "" if array.ndim == 0 else f" at position {', '.join(map(str, position))}"
    return f"{array[position]:g}{where}"
