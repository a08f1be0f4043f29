"""New users and items of a fitted model, estimated with the other axis held fixed."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._checks import one_of
from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis, Exposure
from hcpf.core.fold_in import NewRows, fold_in_rows
from hcpf.core.odd_entries import limit_new_rows
from hcpf.core.posterior import Posterior
from hcpf.data.canonical import Duplicates, plain
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import row_of_entries, select, union, without
from hcpf.errors import InputError
from hcpf.model.alignment import (
    Aligned,
    as_interactions,
    ids_of,
    joined,
    joined_exposure,
    new_exposure,
    over_both,
    over_known,
    with_exposure,
)
from hcpf.model.posterior import Folded
from hcpf.model.predict import distribution

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

logger = logging.getLogger("hcpf")

MEASURED = ("all", "listed")
UNKNOWN = ("error", "drop")
_SCORED_FRACTION = 0.2  # share of the entries that ``score`` hides


def fold_in(
    model: "FittedModel",
    axis: Axis,
    X: Any,
    exclude: Any = None,
    *,
    measured: str = "all",
    unknown: str = "error",
    layer: str | None = None,
    exposure: Any = None,
) -> "FittedModel":
    """Return a model for the users (or items) of ``X``."""
    only_listed = one_of("measured_items", measured, MEASURED) == "listed"
    aligned = _over_other(model, axis, X, unknown, layer, only_listed=only_listed)
    data = aligned.data
    excluded = _kept_exclusions(model, data) if aligned.has_ids else None
    if exclude is not None:
        users, items = IdIndex("users", data.users), IdIndex("items", data.items)
        excluded = union(excluded, over_both("exclude", exclude, users, items))
    listed = aligned.listed if only_listed else None
    known = _known_rows(model, axis, data) if aligned.has_ids else None
    own = new_exposure(model, axis, exposure, data, known, X)
    return _with_rows(model, axis, data, excluded, measured=listed, known=known, exposure=own)


def _over_other(
    model: "FittedModel",
    axis: Axis,
    X: Any,
    unknown: str,
    layer: str | None,
    *,
    only_listed: bool = False,
) -> Aligned:
    """Return the new rows of one axis over the fitted rows of the other; log the overlap."""
    drop_unknown = one_of("unknown", unknown, UNKNOWN) == "drop"
    index = model.index[axis.other]
    aligned = over_known(X, axis.other, index, drop_unknown=drop_unknown, layer=layer)
    _report_overlap(aligned, axis.other, len(index), only_listed)
    return aligned


def _report_overlap(aligned: Aligned, axis: Axis, n_known: int, only_listed: bool) -> None:
    """Log how many of the columns of a table are known, and how many known ones it lacks."""
    if aligned.listed is None or not aligned.has_ids:
        return
    n_listed, n_unknown = len(aligned.listed), aligned.n_unknown
    n_lacking = n_known - n_listed
    if n_unknown and not n_listed and (aligned.are_columns or only_listed):
        raise InputError(
            f"None of the {n_unknown:,} {axis.value} of X was fitted. {axis.value.capitalize()} of "
            f"the model are like {plain(ids_of(aligned.data, axis)[0])!r}."
        )
    fate = "take no part" if only_listed else "count as missing"
    # A table has a column for whatever was measured, so that a column is lacking for a reason.
    is_doubtful = aligned.are_columns and (n_unknown or (n_lacking and not only_listed))
    logger.log(
        logging.WARNING if is_doubtful else logging.INFO,
        "X has %d of %d fitted %s; the other %d %s. %d unknown %s dropped.",
        n_listed, n_known, axis.value, n_lacking, fate, n_unknown, axis.value,
    )  # fmt: skip


def _known_rows(model: "FittedModel", axis: Axis, data: Interactions) -> NDArray[np.int64] | None:
    """Return the positions of the rows among the fitted ones; None if their ids differ in kind."""
    try:
        return model.index[axis].known(ids_of(data, axis))
    except InputError:
        return None


def score(
    model: "FittedModel",
    X: Any,
    *,
    unknown: str = "error",
    layer: str | None = None,
    exposure: Any = None,
) -> float:
    """Return the mean log-likelihood of held-out entries of new users."""
    aligned = _over_other(model, Axis.USERS, X, unknown, layer)
    data = aligned.data
    fitted_rows = _known_rows(model, Axis.USERS, data) if aligned.has_ids else None
    own = new_exposure(model, Axis.USERS, exposure, data, fitted_rows, X)
    matrix, seed = data.matrix, model.settings.get("random_state")
    rng = np.random.default_rng(seed if isinstance(seed, int) else 0)
    held = rng.random(matrix.nnz) < _SCORED_FRACTION
    if not held.any() or held.all():
        raise InputError("score: X has too few entries to hold out some. Pass more users.")
    scored = select(matrix, held)
    rest = Interactions(select(matrix, ~held), data.users, data.items)
    known = _with_rows(model, Axis.USERS, rest, scored, exposure=own)
    values = model.element.seen(scored.data.astype(np.float64))
    predicted = distribution(known, row_of_entries(scored), scored.indices)
    if model.value_model.train_on == "observed":
        return float(np.mean(predicted.log_density_observed(values)))
    sums = [known.combined.rate_sums(axis) for axis in Axis]
    observed = float(np.sum(known.combined.rates(row_of_entries(matrix), matrix.indices)))
    missing = max(float(sums[0] @ sums[1]) - observed, 0.0) / matrix.nnz
    return float(np.mean(predicted.log_density(values))) - missing


def extend(
    model: "FittedModel", X: Any, duplicates: Duplicates, exposure: Mapping[Axis, Any]
) -> "FittedModel":
    """Return the model with more data, its new users and items folded in one after the other.

    ``exposure`` holds the exposures of the users and items of ``X``, as they were given.
    """
    if model.data is None:
        raise InputError(
            "partial_fit adds entries to the training data, which this model does not have. "
            "Call fit on all entries; warm_start=True begins from this model, if users and items "
            "are the same."
        )
    more = _with_new_ids(model, X)
    data = joined(model.data, more, duplicates)
    n_users, n_items = len(model.users), len(model.items)
    users, items = (
        joined_exposure(model, axis, exposure.get(axis), more, data, X) for axis in Axis
    )
    fitted = Exposure(_first(users, n_users), _first(items, n_items))
    model = replace(model, posteriors=with_exposure(model.posteriors, fitted))
    excluded, posteriors = _resized(model.excluded, data.shape), model.posteriors
    if data.n_users > n_users:
        rows = sparse.csr_array(data.matrix[n_users:, :n_items])
        new = Interactions(rows, data.users[n_users:], model.items)
        own = None if users is None else users[n_users:]
        found = _with_rows(model, Axis.USERS, new, exposure=own)
        posteriors = _appended(posteriors, Axis.USERS, found)
    if data.n_items > n_items:
        wider = replace(model, posteriors=posteriors, users=data.users)
        new = Interactions(
            sparse.csr_array(data.matrix[:, n_items:]), data.users, data.items[n_items:]
        )
        own = None if items is None else items[n_items:]
        found = _with_rows(wider, Axis.ITEMS, new, exposure=own)
        posteriors = _appended(posteriors, Axis.ITEMS, found)
    return replace(
        model, posteriors=posteriors, users=data.users, items=data.items, data=data,
        excluded=excluded,
    )  # fmt: skip


def _first(exposure: FloatArray | None, size: int) -> FloatArray | None:
    return None if exposure is None else exposure[:size]


def _with_rows(
    model: "FittedModel",
    axis: Axis,
    data: Interactions,
    excluded: Csr | None = None,
    *,
    measured: NDArray[np.int64] | None = None,
    known: NDArray[np.int64] | None = None,
    exposure: FloatArray | None = None,
) -> "FittedModel":
    """Return the model with the rows of one axis replaced by those of ``data``.

    Only the ``measured`` rows of the other axis take part. ``known`` are the positions of rows that
    were fitted before, -1 for others. ``exposure`` is that of the new rows.
    """
    model.value_model.require(np.asarray(data.values, dtype=np.float64))
    entries = without(data.matrix, excluded)
    parts = model.element.seen(entries.data), entries.indices, entries.indptr
    matrix: Csr = sparse.csr_array(parts, shape=data.shape)
    marks = excluded
    if axis is Axis.ITEMS:
        matrix = sparse.csr_array(matrix.T)
        marks = None if marks is None else sparse.csr_array(marks.T)
    if marks is not None and measured is not None:
        is_measured = np.zeros(matrix.shape[1], np.bool_)
        is_measured[measured] = True
        marks = select(marks, is_measured[marks.indices])
    new = NewRows(matrix, marks, measured, known, exposure)
    rows = fold_in_rows(model.fold_in_model, axis, model.posteriors, new)
    folded = (
        replace(fit, **{axis.value: mine}) for fit, mine in zip(model.posteriors, rows, strict=True)
    )
    entries = sparse.csr_array(matrix.T) if axis is Axis.ITEMS else matrix
    posteriors = tuple(limit_new_rows(fit, axis, model.value_model, entries) for fit in folded)
    return replace(
        model, posteriors=posteriors, users=data.users, items=data.items, data=data,
        excluded=excluded, folded=Folded(axis, model, measured),
    )  # fmt: skip


def _appended(
    posteriors: tuple[Posterior, ...], axis: Axis, more: "FittedModel"
) -> tuple[Posterior, ...]:
    return tuple(
        replace(fit, **{axis.value: fit.axis(axis).joined(new.axis(axis))})
        for fit, new in zip(posteriors, more.posteriors, strict=True)
    )


def _kept_exclusions(model: "FittedModel", data: Interactions) -> Csr | None:
    """Return the pairs of ``data`` that were excluded in training, matched by their ids."""
    if model.excluded is None:
        return None
    users, items = IdIndex("users", data.users), IdIndex("items", data.items)
    before = Interactions(model.excluded, model.users, model.items)
    kept = over_both("exclude", before, users, items)
    return kept if kept.nnz else None


def _resized(marks: Csr | None, shape: tuple[int, int]) -> Csr | None:
    if marks is None:
        return None
    pointer = np.concatenate([marks.indptr, np.full(shape[0] - marks.shape[0], marks.nnz)])
    return sparse.csr_array((marks.data, marks.indices, pointer), shape=shape)


def _with_new_ids(model: "FittedModel", X: Any) -> Interactions:
    """Return Interactions as they are, and the rows of a matrix as new users."""
    data = as_interactions(X)
    if X is data:
        return data
    if data.n_items != len(model.items):
        raise InputError(
            f"X has {data.n_items} columns, but {len(model.items)} items are fitted. Pass "
            "Interactions, whose ids identify the new items."
        )
    return Interactions(data.matrix, _next_ids(model.users, data.n_users), model.items)


def _next_ids(users: NDArray[Any], size: int) -> NDArray[Any]:
    """Return integers that continue the ids of the users, for rows of a matrix."""
    if users.dtype.kind == "O" or int(users.max()) + size > np.iinfo(users.dtype).max:
        raise InputError(
            "The rows of a matrix are new users with the integers after the largest id, but the "
            "fitted ids are not integers or too large. Pass Interactions, which have ids."
        )
    return np.arange(size, dtype=users.dtype) + users.max() + users.dtype.type(1)
