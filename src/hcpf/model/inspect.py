"""Descriptions of fitted models, in plain dicts."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hcpf.core.value_model import ValueModel

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


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


def describe_fit(model: "FittedModel") -> dict[str, Any]:
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
        "elbo": None if last is None else last.elbo,
        "seconds": None if last is None else last.seconds,
        "interrupted": model.interrupted,
        "ended": _reason_to_stop(model),
    }


def describe_model(model: "FittedModel") -> dict[str, Any]:
    """Return the fit, the priors and the settings of a model."""
    seed = model.settings.get("random_state")
    return {
        **describe_fit(model),
        "sparsity": None if model.data is None else model.data.sparsity,
        "priors": asdict(model.priors),
        "tempering": model.tempering,
        "solver": model.settings.get("solver"),
        "seed": seed if isinstance(seed, int) else None,
    }


def _reason_to_stop(model: "FittedModel") -> str:
    """Return why training stopped: "interrupted", "converged" or "max_iter"."""
    if model.interrupted:
        return "interrupted"
    max_iter = model.settings.get("max_iter")
    return "max_iter" if max_iter is not None and model.n_iter >= max_iter else "converged"
