"""Checks of what a folder holds: a forged or damaged model is refused, not used."""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from hcpf._types import Csr
from hcpf.core.axis import Axis
from hcpf.core.posterior import Check, Posterior
from hcpf.core.theta import ThetaPosterior
from hcpf.core.value_model import ValueModel
from hcpf.data.exposure import MAX_EXPOSURE, MIN_EXPOSURE
from hcpf.data.sampling import without
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.elements.conjugate import Conjugate
from hcpf.errors import ModelError, SupportError
from hcpf.model.fitted import FittedModel

_MIN_SHAPE, _MAX_FACTOR = 1e-13, 1e37  # no prior has smaller shapes; sums exceed float32
_LARGEST = 1e150  # of the numbers of theta: squares are finite; training stays far below
_ROUNDING = 1e-6  # tolerance for a center of theta at the ends of its range


def whole_number(name: str, value: Any, least: int) -> int:
    """Return an integer of a manifest, or raise a ModelError."""
    if type(value) is not int or value < least:
        raise ModelError(f"Its {name} must be an integer, {least} or more, not {value!r}.")
    return value


def positive_number(name: str, value: Any) -> float:
    """Return a finite positive number of a manifest, or raise a ModelError."""
    if type(value) not in (int, float) or not 0.0 < value < inf:
        raise ModelError(f"Its {name} must be a finite number above 0, not {value!r}.")
    return float(value)


def truth(name: str, value: Any) -> bool:
    """Return true or false of a manifest, or raise a ModelError."""
    if type(value) is not bool:
        raise ModelError(f"Its {name} must be true or false, not {value!r}.")
    return value


def check_history(history: Sequence[Check]) -> None:
    """Raise a ModelError unless every line of a history has numbers only."""
    for check in history:
        held_out = check.validation_log_likelihood
        if not (
            type(check.iteration) is int
            and isinstance(check.seconds, int | float)
            and isinstance(check.elbo, int | float)
            and (held_out is None or isinstance(held_out, int | float))
            and isinstance(check.tempering, int | float)
        ):
            raise ModelError(f"Its history has a check with invalid numbers: {check!r}.")


def check_value_model(value_model: ValueModel) -> None:
    """Raise a ModelError unless the element has a single number per parameter."""
    element = value_model.element
    if not element.is_complete:
        raise ModelError(f"The model's element lacks parameters: {element!r}.")
    if any(np.ndim(value) for value in element.parameters.values()):
        raise ModelError(f"The model's element takes single numbers as parameters: {element!r}.")


def check_numbers(model: FittedModel) -> None:
    """Raise a ModelError if numbers are not finite, not positive or outside the support.

    This reads all factors once.
    """
    for axis in Axis:
        if (exposure := model.exposure.axis(axis)) is not None:
            _check_positive(f"exposure.{axis.value}", exposure)
            if np.any((exposure < MIN_EXPOSURE) | (exposure > MAX_EXPOSURE)):
                raise ModelError(
                    f"exposure.{axis.value} has numbers that are not between {MIN_EXPOSURE:g} and "
                    f"{MAX_EXPOSURE:g}."
                )
    for j, fit in enumerate(model.posteriors):
        _check_factors(f"fit{j}", fit, model.element.conjugate)
    if model.data is not None and not isinstance(model.data.matrix, StoredMatrix):
        _check_data(model, model.data.matrix)


def _check_factors(name: str, fit: Posterior, conjugate: Conjugate | None) -> None:
    for axis, rows in (("users", fit.users), ("items", fit.items)):
        for part in ("shape_", "mean_", "activity_a", "activity_b"):
            _check_positive(f"{name}.{axis}.{part.strip('_')}", getattr(rows, part))
        if np.any(rows.shape_ < _MIN_SHAPE) or np.any(
            np.maximum(rows.shape_, rows.mean_) > _MAX_FACTOR
        ):
            raise ModelError(f"{name}.{axis} has factors that are too large or too small.")
        if rows.theta is not None and conjugate is not None:
            _check_theta(f"{name}.{axis}.theta", rows.theta, conjugate)


def _check_positive(name: str, array: np.ndarray) -> None:
    # Both comparisons are false for NaN, which the extremes of an array inherit.
    if array.size and not (array.min() > 0.0 and array.max() < inf):
        raise ModelError(f"{name} has numbers that are not finite or not above 0.")


def _check_theta(name: str, theta: ThetaPosterior, conjugate: Conjugate) -> None:
    nu, chi = np.append(theta.nu, theta.nu0), np.append(theta.chi, theta.chi0)
    _check_positive(f"{name}.nu", nu)
    if not theta.limit > 0.0:  # false for NaN
        raise ModelError(f"{name} has a limit that is not above 0.")
    share = theta.counted
    if share is not None and not (share.size and share.min() > 0.0 and share.max() <= 1.0):
        raise ModelError(f"{name} has shares that are not between 0 and 1.")
    low, high = conjugate.min_center, conjugate.max_center
    with np.errstate(over="ignore"):
        center = chi / nu
    inside = np.isfinite(center)
    if np.isfinite(low):  # rounding may reach a mean of 1, but never one of 0
        inside = center > 0.0 if low == 0.0 else center >= low - _ROUNDING * abs(low)
    if not np.all(inside & (center <= high) & np.isfinite(center)):
        raise ModelError(f"{name} has means outside the range of the element.")
    with np.errstate(over="ignore"):
        sizes = [nu, 1.0 / nu, np.abs(chi), np.abs(center), *([1.0 / center] if low == 0.0 else [])]
    if np.max(sizes) > _LARGEST:
        raise ModelError(f"{name} has numbers too large or too small for double precision.")


def _check_data(model: FittedModel, matrix: Csr) -> None:
    """Compare the data with the support; pairs that were excluded may have any value."""
    try:
        model.value_model.require(without(matrix, model.excluded).data)
    except SupportError as error:
        raise ModelError(f"Its data do not fit its element: {error}") from None
