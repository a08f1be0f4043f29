"""Manifests of schemas 1 and 2, brought to the names of today."""

from typing import Any

_PRESENCE = {"element": "presence", "parameters": {}}
_SETTINGS = (
    "n_components", "element", "vary_by", "hurdle", "learn_element", "train_on", "n_fits",
    "combine", "priors", "tempering", "max_iter", "tol", "random_state",
)  # fmt: skip
"""Parameters of the estimator that have kept their names since schema 2."""
_CONSTANTS = {
    "auto": ("svi_passes",),
    "svi": ("batches", "local_sweeps", "tau", "xi"),
    "algorithm1": ("tau", "xi", "stratified"),
}
"""Constants of the solvers, which were parameters of the estimator."""


def upgraded(about: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest of any schema as one of schema 3; exposures came with schema 4."""
    if about["schema"] == 1:
        about = _from_schema_1(about)
    if about["schema"] == 2:
        about = _from_schema_2(about)
    return about


def _from_schema_1(about: dict[str, Any]) -> dict[str, Any]:
    """Take vary_by and hurdle, once ``per`` and ``once``, from the element to the value model."""
    settings = dict(about["parameters"])
    settings |= _upgraded_element(settings["element"], settings["train_on"])
    value_model = _upgraded_element(about["element"], about["parameters"]["train_on"])
    return {
        **about,
        "schema": 2,
        "settings": settings,
        "value_model": value_model,
        "n_truncation": settings["n_truncation"],
    }


def _from_schema_2(about: dict[str, Any]) -> dict[str, Any]:
    """Take the constants of the solver to the solver; drop the arguments of ``fit``."""
    old = about["settings"]
    settings = {name: old[name] for name in _SETTINGS if name in old}
    if settings:
        settings |= {"start": old["init"], "solver": _upgraded_solver(old)}
    return {**about, "schema": 3, "settings": settings, "max_count": about["n_truncation"]}


def _upgraded_solver(old: dict[str, Any]) -> dict[str, Any]:
    name = "algorithm1" if old["solver"] == "entry" else old["solver"]
    constants = {part: old[part] for part in _CONSTANTS.get(name, ()) if old[part] is not None}
    return {"solver": name, "max_count": old["n_truncation"], **constants}


def _upgraded_element(element: Any, train_on: str) -> dict[str, Any]:
    """Return element, vary_by, hurdle and train_on."""
    vary_by, hurdle = None, False
    if isinstance(element, dict):
        vary_by, hurdle = element.get("per"), element.get("once", False)
        element = {name: element[name] for name in ("element", "parameters")}
    if train_on == "binary":
        element, train_on = _PRESENCE, "full"
    return {"element": element, "vary_by": vary_by, "hurdle": hurdle, "train_on": train_on}
