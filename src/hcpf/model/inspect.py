"""Descriptions of fitted models, in plain dicts."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.value_model import ValueModel
from hcpf.model.entry_counts import entries_of_row
from hcpf.model.fitted import FittedModel
from hcpf.model.predict import predict_table
from hcpf.model.resolve import training_data
from hcpf.model.typical_values import TypicalValues, pooled_axes, typical_values

_N_EXTREMES = 3  # rows with the highest, and with the lowest, typical values
_N_ENTRIES, _N_NEXT = 10, 5  # entries and predictions of a row


def describe_value_model(value_model: ValueModel) -> dict[str, Any]:
    """Return the element with its parameters, its pooling, and which pairs train.

    Examples
    --------
    >>> from hcpf.elements import Gamma
    >>> about = describe_value_model(ValueModel(Gamma(2, 0.05), vary_by="item"))
    >>> about["element"], about["vary_by"]
    ({'name': 'gamma', 'parameters': {'shape': 2.0, 'rate': 0.05}}, 'item')
    """
    element = value_model.element
    return {
        "element": {"name": element.name, "parameters": dict(element.parameters)},
        "vary_by": value_model.vary_by,
        "hurdle": value_model.hurdle,
        "train_on": value_model.train_on,
        "description": value_model.description,
    }


def describe_fit(model: FittedModel) -> dict[str, Any]:
    """Return the size of a model and how its training ended."""
    last = model.history[-1] if model.history else None
    return {
        "users": len(model.users),
        "items": len(model.items),
        "observed": None if model.data is None else model.data.n_observed,
        **describe_value_model(model.value_model),
        "components": model.n_components,
        "fits": len(model.posteriors),
        "passes": model.n_iter,
        "max_iter": model.settings.get("max_iter"),
        "tol": model.settings.get("tol"),
        "elbo": None if last is None else last.elbo,
        "tempering": model.tempering,
        "seconds": None if last is None else last.seconds,
        "interrupted": model.interrupted,
        "ended": reason_to_stop(model),
    }


def describe_model(model: FittedModel) -> dict[str, Any]:
    """Return the fit, the priors and the settings of a model."""
    seed = model.settings.get("random_state")
    return {
        **describe_fit(model),
        "sparsity": None if model.data is None else model.data.sparsity,
        "priors": asdict(model.priors),
        "exposure": {axis.word: _describe_exposure(model.exposure.axis(axis)) for axis in Axis},
        "solver": model.settings.get("solver"),
        "seed": seed if isinstance(seed, int) else None,
    }


def _describe_exposure(exposure: FloatArray | None) -> dict[str, float] | None:
    """Return the extremes and the median of exposures; None if all are 1."""
    if exposure is None:
        return None
    low, median, high = np.quantile(exposure, [0.0, 0.5, 1.0]).tolist()
    return {"low": low, "median": median, "high": high}


def describe_typical_values(
    model: FittedModel, names: Mapping[str, str] | None = None
) -> dict[str, Any] | None:
    """Return the typical values of users and items: their distribution and the extreme rows.

    Parameters
    ----------
    model : FittedModel
    names : mapping, optional
        Names of items by the text of their ids, as ``read_names`` returns them.

    Returns
    -------
    dict or None
        By "user" and "item", whichever have means; None without partial pooling or without the
        training data.
    """
    axes = [] if model.data is None else pooled_axes(model)
    found = {axis.word: _describe_axis(model, typical_values(model, axis), names) for axis in axes}
    return found or None


def describe_row(model: FittedModel, axis: Axis, identity: Any) -> dict[str, Any]:
    """Return the entries of one user or item, its typical value, and what is likely next.

    Parameters
    ----------
    model : FittedModel
        A model with its training data.
    axis : Axis
        Whether the row is a user or an item.
    identity : id
        The id of the row.

    Returns
    -------
    dict
        Number, sum and average of the entries and the largest of them; under partial pooling the
        typical value; and the missing pairs with the highest probabilities.
    """
    matrix = training_data(model).matrix
    others = model.index[axis.other].ids
    row = int(model.index[axis].positions([identity])[0])
    partners, values = entries_of_row(matrix, axis, row)
    values = values.astype(np.float64)
    largest = np.argsort(-values, kind="stable")[:_N_ENTRIES]
    typical = typical_values(model, axis) if axis in pooled_axes(model) else None
    return {
        axis.word: identity,
        "entries": len(values),
        "total": float(values.sum()),
        "average": float(values.mean()) if len(values) else None,
        "typical_value": None if typical is None else float(typical.value[row]),
        "typical_of_all": None if typical is None else float(typical.levels[1]),
        "largest": [
            {axis.other.word: others[partners[j]], "value": float(values[j])} for j in largest
        ],
        "next": _most_likely_next(model, axis, row, partners),
    }


def _most_likely_next(
    model: FittedModel, axis: Axis, row: int, seen: NDArray[np.integer]
) -> list[dict[str, Any]] | None:
    """Return the most probable missing pairs of a row; None where missing pairs did not train."""
    if model.value_model.train_on == "observed":
        return None
    if axis is Axis.USERS:
        best = model.recommend(model.users[[row]], _N_NEXT)
        users, items = best.user, best.item
    else:
        every = np.arange(len(model.users))
        rate = model.combined.rates(every, np.full(len(every), row))
        rate[seen] = -1.0
        chosen = np.argsort(-rate, kind="stable")[:_N_NEXT]
        users = model.users[chosen[rate[chosen] >= 0]]
        items = np.repeat(model.items[[row]], len(users))
    return [pair._asdict() for pair in predict_table(model, users, items)]


def _describe_axis(
    model: FittedModel, typical: TypicalValues, names: Mapping[str, str] | None
) -> dict[str, Any]:
    is_items, ids = typical.axis is Axis.ITEMS, model.index[typical.axis].ids

    def describe_row(row: Any) -> dict[str, Any]:
        name = {"name": names.get(str(ids[row]))} if names and is_items else {}
        return {
            "id": ids[row], **name, "typical_value": typical.value[row],
            "entries": typical.entries[row], "average": typical.average[row],
        }  # fmt: skip

    highest, lowest = typical.extremes(_N_EXTREMES)
    theta = model.posteriors[0].axis(typical.axis).theta
    assert theta is not None
    return {
        "prior": {"chi": theta.chi0, "nu": theta.nu0},
        "fitted": dict(zip(("low", "median", "high"), typical.levels, strict=True)),
        "new": dict(zip(("low", "median", "high"), typical.new, strict=True)),
        "highest": [describe_row(row) for row in highest],
        "lowest": [describe_row(row) for row in lowest],
    }


def reason_to_stop(model: FittedModel) -> str:
    """Return why training stopped: "interrupted", "converged" (all fits) or "max_iter"."""
    if model.interrupted:
        return "interrupted"
    return "converged" if model.converged else "max_iter"
