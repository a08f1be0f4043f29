"""Checks of what users pass, with messages that name the parameter."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hcpf.errors import ParameterError


def whole(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int of at least ``least``, or raise a ParameterError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ParameterError(f"{name} must be an integer, {least} or more; got {value!r}.")
    return number


def number(name: str, value: Any, low: float, high: float, description: str) -> float:
    """Return ``value`` as a float between ``low`` and ``high``, or raise a ParameterError."""
    try:
        found = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not low <= found <= high:
        raise ParameterError(f"{name} must be {description}; got {value!r}.")
    return found


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is one of the allowed words, or raise a ParameterError."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")
    return value


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False, or raise a ParameterError."""
    if value is not True and value is not False and type(value).__name__ not in ("bool", "bool_"):
        raise ParameterError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator that ``random_state`` stands for, or raise a ParameterError."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"random_state must be an int, a Generator or None; got {random_state!r} ({error})."
        ) from None


def set_fields(target: Any, **values: Any) -> None:
    """Put checked values into the fields of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(target, name, value)
