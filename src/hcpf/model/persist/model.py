"""A fitted model as what is stored, and back."""

import hashlib
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from hcpf._types import Csr
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.core.priors import Priors
from hcpf.core.theta import ThetaPosterior
from hcpf.core.value_model import ValueModel
from hcpf.data.interactions import Interactions
from hcpf.elements import Element, get
from hcpf.errors import HcpfError, ModelError
from hcpf.model.history import Check
from hcpf.model.persist.folder import Stored, read_folder, write_folder

_SIDES = ("users", "items")
_PARTS = ("shape_", "mean_", "activity_a", "activity_b")


def save(model: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted HCPF to a folder."""
    tensors = {
        f"fit{j}.{side}.{part.rstrip('_')}": getattr(getattr(posterior, side), part)
        for j, posterior in enumerate(model.posteriors_)
        for side in _SIDES
        for part in _PARTS
    }
    for j, posterior in enumerate(model.posteriors_):
        for side in _SIDES:
            groups = getattr(posterior, side).theta
            if groups is not None:
                tensors |= _groups_as_tensors(groups, f"fit{j}.{side}.theta")
    data: Interactions = model.interactions_
    matrix = data.matrix
    tensors |= {
        "data.indptr": matrix.indptr, "data.indices": matrix.indices, "data.values": matrix.data,
    }  # fmt: skip
    about = {
        "parameters": {name: _plain(value) for name, value in model.get_params(False).items()},
        "element": _element_as_json(model.element_),
        "vary_by": model.value_model_.vary_by,
        "hurdle": model.value_model_.hurdle,
        "train_on": model.value_model_.train_on,
        "priors": asdict(model.priors_),
        "n_fits": len(model.posteriors_),
        "shape": list(data.shape),
        "data_fingerprint": fingerprint(matrix),
        "interrupted": model.interrupted_,
        "tempering": model.tempering_,
        "history": [
            {name: _plain(value) for name, value in asdict(check).items()}
            for check in model.history_
        ],
    }
    write_folder(
        Path(path), Stored(about, tensors, model.users_, model.items_), overwrite=overwrite
    )


def load(kind: Any, path: str | Path, *, check: bool = True) -> Any:
    """Read what ``save`` wrote, as an instance of ``kind``."""
    try:
        return _rebuild(kind, read_folder(Path(path), check=check))
    except ModelError:
        raise
    except Exception as error:  # there is no end to what a forged or damaged file may provoke
        raise ModelError(
            f"The model {path} cannot be loaded: its parts do not fit together "
            f"({type(error).__name__}: {error})."
        ) from None


def _rebuild(kind: Any, stored: Stored) -> Any:
    about, tensors = stored.about, stored.tensors
    model = kind(**{name: _revive(value) for name, value in about["parameters"].items()})
    shape = int(about["shape"][0]), int(about["shape"][1])
    posteriors = [
        Posterior(*(_side(tensors, f"fit{j}.{side}", size) for side, size in _sizes(shape)))
        for j in range(int(about["n_fits"]))
    ]
    if not posteriors:
        raise ModelError("The model holds no fit.")
    if len({side.shape_.shape[1] for fit in posteriors for side in (fit.users, fit.items)}) > 1:
        raise ModelError("The factors of the model's users and items do not go together.")
    parts = (tensors["data.values"], tensors["data.indices"], tensors["data.indptr"])
    matrix: Any = sparse.csr_array(parts, shape=shape)
    data = Interactions.from_matrix(matrix, users=stored.users, items=stored.items)
    history = [
        Check(**{name: _revive(value) for name, value in check.items()})
        for check in about["history"]
    ]
    value_model = _value_model(about)
    if not value_model.element.is_complete:
        raise ModelError(f"The model's element lacks parameters: {value_model.element!r}.")
    for fit in posteriors:
        _check_theta(value_model, fit)
    model._set_fitted(
        data,
        posteriors,
        value_model,
        Priors(**about["priors"]),
        history,
        bool(about["interrupted"]),
        float(about["tempering"]),
    )
    return model


def _sizes(shape: tuple[int, int]) -> Any:
    return zip(_SIDES, shape, strict=True)


def _side(tensors: dict[str, np.ndarray], prefix: str, size: int) -> FactorPosterior:
    parts = [tensors[f"{prefix}.{part.rstrip('_')}"] for part in _PARTS]
    factors = parts[0].ndim == 2 and parts[0].shape == parts[1].shape and len(parts[0]) == size
    if not factors or any(part.shape != (size,) for part in parts[2:]):
        raise ModelError(f"The factors of {prefix} have the wrong shape.")
    return FactorPosterior(*parts, theta=_groups(tensors, f"{prefix}.theta", size))


def _check_theta(value_model: ValueModel, fit: Posterior) -> None:
    """Theta must be there on the sides where the element varies, and nowhere else."""
    for side, name in ((fit.users, "user"), (fit.items, "item")):
        if (side.theta is not None) != (value_model.vary_by in (name, "both")):
            raise ModelError(
                f"The model's element, {value_model.description}, lacks its theta by {name}."
            )


def _groups_as_tensors(groups: ThetaPosterior, prefix: str) -> dict[str, np.ndarray]:
    prior = np.array([groups.chi0, groups.nu0])
    return {f"{prefix}.chi": groups.chi, f"{prefix}.nu": groups.nu, f"{prefix}.prior": prior}


def _groups(tensors: dict[str, np.ndarray], prefix: str, size: int) -> ThetaPosterior | None:
    if f"{prefix}.chi" not in tensors:
        return None
    chi, nu, prior = (tensors[f"{prefix}.{name}"] for name in ("chi", "nu", "prior"))
    if chi.shape != (size,) or nu.shape != (size,) or prior.shape != (2,):
        raise ModelError(f"The thetas of {prefix} have the wrong shape.")
    return ThetaPosterior(chi, nu, float(prior[0]), float(prior[1]))


def fingerprint(matrix: Csr) -> str:
    """A short name of the data: equal for equal entries."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (matrix.indptr, matrix.indices, matrix.data):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _element_as_json(element: Element) -> dict[str, Any]:
    known = get_known(element.name)
    if known is not type(element):
        raise ModelError(
            f"{type(element).__name__} is not one of hcpf's elements, so it could not be loaded "
            "again. Save the factors (posterior_) instead."
        )
    parameters = {name: np.asarray(value).tolist() for name, value in element.parameters.items()}
    return {"element": element.name, "parameters": parameters}


def get_known(name: str) -> type[Element] | None:
    """The element class of that name, if there is one."""
    try:
        return get(name)
    except HcpfError:
        return None


def _element_from_json(stored: dict[str, Any]) -> Element:
    return get(stored["element"])(**stored["parameters"])


def _value_model(about: dict[str, Any]) -> ValueModel:
    names = ("vary_by", "hurdle", "train_on")
    return ValueModel(_element_from_json(about["element"]), **{k: about[k] for k in names})


def _plain(value: Any) -> Any:
    """A parameter of HCPF as JSON."""
    if isinstance(value, Element):
        return _element_as_json(value)
    if isinstance(value, Priors):
        return {"priors": asdict(value)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not isfinite(value):
        return {"float": repr(float(value))}  # which JSON has no word for
    return value if isinstance(value, str | int | float | bool | None) else None


def _revive(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    return Priors(**value["priors"]) if "priors" in value else _element_from_json(value)
