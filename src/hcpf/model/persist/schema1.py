"""Manifests of schema 1, in which an element had ``per`` and ``once``."""

from typing import Any

_PRESENCE = {"element": "presence", "parameters": {}}


def upgraded(about: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest of schema 1 as one of schema 2."""
    settings = dict(about["parameters"])
    settings |= _upgraded_element(settings["element"], settings["train_on"])
    value_model = _upgraded_element(about["element"], about["parameters"]["train_on"])
    return {
        **about,
        "settings": settings,
        "value_model": value_model,
        "n_truncation": settings["n_truncation"],
    }


def _upgraded_element(element: Any, train_on: str) -> dict[str, Any]:
    """Return element, vary_by, hurdle and train_on."""
    vary_by, hurdle = None, False
    if isinstance(element, dict):
        vary_by, hurdle = element.get("per"), element.get("once", False)
        element = {name: element[name] for name in ("element", "parameters")}
    if train_on == "binary":
        element, train_on = _PRESENCE, "full"
    return {"element": element, "vary_by": vary_by, "hurdle": hurdle, "train_on": train_on}
