"""Exposures of a fitted model: those of new rows, and of predictions."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.axis import Axis, Exposure
from hcpf.core.posterior import Posterior
from hcpf.data.exposure import check_exposure, pair_exposure, resolve_exposure
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


def with_exposure(posteriors: tuple[Posterior, ...], exposure: Exposure) -> tuple[Posterior, ...]:
    """Return the same factors with other exposures."""
    return tuple(
        replace(
            fit,
            users=replace(fit.users, exposure=exposure.users),
            items=replace(fit.items, exposure=exposure.items),
        )
        for fit in posteriors
    )


def at_exposure(model: "FittedModel", exposure: Any) -> "FittedModel":
    """Return the model with one exposure of all pairs; itself for None."""
    number = pair_exposure(exposure, ())
    if number is None:
        return model
    users = None if number == 1.0 else np.full(len(model.users), float(number))
    return replace(model, posteriors=with_exposure(model.posteriors, Exposure(users)))


def new_exposure(
    model: "FittedModel",
    axis: Axis,
    given: Any,
    data: Interactions,
    known: NDArray[np.int64] | None,
    source: Any,
) -> FloatArray | None:
    """Return the exposures of new rows; rows that were fitted keep theirs unless they are given.

    ``known`` are the positions of the rows among the fitted ones, -1 for those that are not.
    """
    fitted = model.exposure.axis(axis)
    if fitted is None and given is None:
        return None
    index = IdIndex(axis.value, data.users if axis is Axis.USERS else data.items)
    default = np.full(len(index), np.nan)
    if known is not None:
        is_known = known >= 0
        default[is_known] = 1.0 if fitted is None else fitted[known[is_known]]
    found = resolve_exposure(given, index, source=source, default=default)
    return check_exposure(default, index) if found is None else found


def joined_exposure(
    model: "FittedModel", axis: Axis, given: Any, more: Interactions, data: Interactions,
    source: Any,
) -> FloatArray | None:  # fmt: skip
    """Return the exposures of all rows of ``data``, the fitted ones and those of ``more``."""
    fitted = model.exposure.axis(axis)
    if fitted is None and given is None:
        return None
    own, all_ids = ((d.users if axis is Axis.USERS else d.items) for d in (more, data))
    n_fitted = len(model.users if axis is Axis.USERS else model.items)
    everyone = IdIndex(axis.value, all_ids)
    values = np.full(len(all_ids), np.nan)
    values[:n_fitted] = 1.0 if fitted is None else fitted
    positions = everyone.positions(own)
    found = resolve_exposure(
        given, IdIndex(axis.value, own), source=source, default=values[positions]
    )
    if found is not None:
        values[positions] = found
    return check_exposure(values, everyone)
