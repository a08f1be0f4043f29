"""A fitted model as what is stored, and back."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis, Exposure
from hcpf.core.posterior import Check, FactorPosterior, Posterior
from hcpf.core.priors import Priors
from hcpf.core.theta import ThetaPosterior
from hcpf.core.value_model import ValueModel
from hcpf.data.interactions import Interactions
from hcpf.data.shards.folder import Shards
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.data.words import Words
from hcpf.elements import Element, get
from hcpf.errors import HcpfError, ModelError
from hcpf.io import fingerprint
from hcpf.model.alignment import with_exposure
from hcpf.model.fitted import FittedModel
from hcpf.model.persist.checks import (
    check_history,
    check_numbers,
    check_value_model,
    positive_number,
    truth,
    whole_number,
)
from hcpf.model.persist.folder import Stored, read_folder, upgraded, write_folder
from hcpf.model.posterior import Folded

logger = logging.getLogger("hcpf")

_VALUE_MODEL = ("vary_by", "hurdle", "train_on")

Tensors = dict[str, np.ndarray]


def save(model: FittedModel, path: Path, *, overwrite: bool, include_data: bool) -> None:
    """Write a fitted model to a folder."""
    tensors = dict(_factor_tensors(model.posteriors)) | _exposure_tensors(model)
    about: dict[str, Any] = {
        "settings": {name: _plain(value) for name, value in model.settings.items()},
        "value_model": _value_model_as_json(model.value_model),
        "priors": asdict(model.priors),
        "n_fits": len(model.posteriors),
        "shape": [len(model.users), len(model.items)],
        "converged": model.converged,
        "interrupted": model.interrupted,
        "tempering": model.tempering,
        "max_count": model.max_count,
        "words": model.words.as_dict(),
        "folded": None if model.folded is None else model.folded.axis.value,
        "history": [
            {name: _plain(value) for name, value in vars(check).items()} for check in model.history
        ],
    }
    if model.excluded is not None:
        pairs = model.excluded
        tensors |= {"excluded.indptr": pairs.indptr, "excluded.indices": pairs.indices}
    if model.data is not None:
        matrix = model.data.matrix
        if isinstance(matrix, StoredMatrix):
            about["data_fingerprint"] = fingerprint(matrix.identity)
            if include_data:
                about |= _shards_as_json(model.data, path)
        else:
            parts = {"indptr": matrix.indptr, "indices": matrix.indices, "values": matrix.data}
            about["data_fingerprint"] = fingerprint(*parts.values())
            if include_data:
                tensors |= {f"data.{name}": part for name, part in parts.items()}
    stored = Stored(about, tensors, model.users, model.items)
    write_folder(path, stored, overwrite=overwrite)


def load(path: Path, *, check: bool = True) -> FittedModel:
    """Read what ``save`` wrote, or what hcpf wrote before schema 2."""
    try:
        stored = read_folder(path, check=check)
        try:
            model = _rebuild(stored)
            if check:
                check_numbers(model)
        except ModelError as error:
            raise ModelError(f"The model {path} cannot be loaded: {error}") from None
        return model
    except ModelError:
        raise
    except Exception as error:  # a forged or damaged file can raise anything
        raise ModelError(
            f"The model {path} cannot be loaded: its parts do not fit together "
            f"({type(error).__name__}: {error})."
        ) from None


def _rebuild(stored: Stored) -> FittedModel:
    tensors, users, items = stored.tensors, stored.users, stored.items
    about = upgraded(stored.about)
    value_model = _value_model_from_json(about["value_model"])
    shape = len(users), len(items)
    n_fits, max_count = about["n_fits"], about["max_count"]
    posteriors = _posteriors(tensors, whole_number("n_fits", n_fits, 1), shape, value_model)
    data = _matrix(tensors, "data", shape)
    if data is not None:
        data = Interactions.from_matrix(data, users=users, items=items)
    elif "shards" in about:
        data = _open_shards(about["shards"])
    return FittedModel(
        value_model=value_model,
        priors=Priors(**about["priors"]),
        posteriors=with_exposure(posteriors, _exposure(tensors, shape)),
        users=users,
        items=items,
        history=_history(about["history"]),
        tempering=positive_number("tempering", about["tempering"]),
        excluded=_matrix(tensors, "excluded", shape),
        data=data,
        converged=truth("converged", about["converged"]),
        interrupted=truth("interrupted", about["interrupted"]),
        max_count=None if max_count is None else whole_number("max_count", max_count, 1),
        settings=_revived(about["settings"]),
        words=Words.from_json(about.get("words")),
        folded=_folded(about.get("folded")),
    )


def _folded(axis: Any) -> Folded | None:
    """Return that a model was folded in; earlier versions did not save it."""
    if axis is None:
        return None
    if axis not in [one.value for one in Axis]:
        raise ModelError(f"folded must be 'users' or 'items', found {axis!r}.")
    return Folded(Axis(axis))


def _shards_as_json(data: Interactions, path: Path) -> dict[str, Any]:
    """Return where the shards of a model are; nothing for some of their entries."""
    if isinstance(data, Shards):
        return {"shards": {"folder": str(data.folder.absolute()), "digest": data.digest}}
    logger.warning(
        "The model %s is saved without its training data, because they are some of the entries of "
        "shards and have no folder of their own. Once it is loaded, pass seen= to recommend() and "
        "explain(), or fit to data.to_shards(folder).", path
    )  # fmt: skip
    return {}


def _open_shards(about: Any) -> Shards | None:
    """Open the shards that a model was fitted to; None if they are gone or others by now."""
    folder = str(about["folder"])
    try:
        shards = Shards.open(folder, check=False)
        problem = "" if shards.digest == about["digest"] else f"{folder} holds other entries now."
    except HcpfError as error:
        shards, problem = None, str(error)
    if not problem:
        return shards
    logger.warning(
        "The model is used without its training data, the shards in %s: %s Move them back, or pass "
        "seen= to recommend() and explain().", folder, problem
    )  # fmt: skip
    return None


# -- tensors ----------------------------------------------------------------------------------


def _factor_tensors(posteriors: tuple[Posterior, ...]) -> Iterator[tuple[str, np.ndarray]]:
    for j, posterior in enumerate(posteriors):
        for axis in Axis:
            prefix, rows = f"fit{j}.{axis.value}", posterior.axis(axis)
            yield f"{prefix}.shape", rows.shape_
            yield f"{prefix}.mean", rows.mean_
            yield f"{prefix}.activity_a", rows.activity_a
            yield f"{prefix}.activity_b", rows.activity_b
            if rows.theta is not None:
                yield f"{prefix}.theta.chi", rows.theta.chi
                yield f"{prefix}.theta.nu", rows.theta.nu
                prior = rows.theta.chi0, rows.theta.nu0, rows.theta.limit
                yield f"{prefix}.theta.prior", np.array(prior)
                if rows.theta.counted is not None:
                    yield f"{prefix}.theta.counted", rows.theta.counted


def _exposure_tensors(model: FittedModel) -> Tensors:
    found = {axis: model.exposure.axis(axis) for axis in Axis}
    return {f"exposure.{axis.value}": x for axis, x in found.items() if x is not None}


def _exposure(tensors: Tensors, shape: tuple[int, int]) -> Exposure:
    parts: list[FloatArray | None] = []
    for axis, size in zip(Axis, shape, strict=True):
        found = tensors.get(f"exposure.{axis.value}")
        if found is not None and (found.dtype != np.float64 or found.shape != (size,)):
            raise ModelError(f"The exposures of its {axis.value} have the wrong type or shape.")
        parts.append(found)
    return Exposure(*parts)


def _posteriors(
    tensors: Tensors, n_fits: int, shape: tuple[int, int], value_model: ValueModel
) -> tuple[Posterior, ...]:
    posteriors = tuple(
        Posterior(
            *(
                _rows(tensors, f"fit{j}.{axis.value}", size, value_model.varies(axis))
                for axis, size in zip(Axis, shape, strict=True)
            )
        )
        for j in range(n_fits)
    )
    if len({fit.axis(axis).shape_.shape[1] for fit in posteriors for axis in Axis}) > 1:
        raise ModelError("The factors of the model's users and items differ in size.")
    return posteriors


def _rows(tensors: Tensors, prefix: str, size: int, varies: bool) -> FactorPosterior:
    names = ("shape", "mean", "activity_a", "activity_b")
    types = (np.float32, np.float32, np.float64, np.float64)
    parts = [tensors[f"{prefix}.{name}"] for name in names]
    if any(part.dtype != kind for part, kind in zip(parts, types, strict=True)):
        raise ModelError(f"The factors of {prefix} have the wrong type.")
    factors = parts[0].ndim == 2 and parts[0].shape == parts[1].shape and len(parts[0]) == size
    if not factors or any(part.shape != (size,) for part in parts[2:]):
        raise ModelError(f"The factors of {prefix} have the wrong shape.")
    if parts[0].shape[1] == 0:
        raise ModelError(f"The factors of {prefix} have no components.")
    return FactorPosterior(*parts, theta=_theta(tensors, f"{prefix}.theta", size, varies))


def _theta(tensors: Tensors, prefix: str, size: int, varies: bool) -> ThetaPosterior | None:
    if (f"{prefix}.chi" in tensors) != varies:
        raise ModelError(f"{prefix} must be stored if and only if its rows have their own means.")
    if not varies:
        return None
    chi, nu, prior = (tensors[f"{prefix}.{name}"] for name in ("chi", "nu", "prior"))
    counted = tensors.get(f"{prefix}.counted")
    rows = [chi, nu] if counted is None else [chi, nu, counted]
    if any(part.dtype != np.float64 for part in (*rows, prior)):
        raise ModelError(f"{prefix} has the wrong type.")
    # Models of earlier versions have no limit.
    if any(part.shape != (size,) for part in rows) or prior.shape not in ((2,), (3,)):
        raise ModelError(f"{prefix} has the wrong shape.")
    return ThetaPosterior(chi, nu, *prior.tolist(), counted=counted)


def _matrix(tensors: Tensors, name: str, shape: tuple[int, int]) -> Csr | None:
    """Return the stored data or excluded pairs, which have no values; None without them."""
    if f"{name}.indptr" not in tensors:
        return None
    indptr, indices = tensors[f"{name}.indptr"], tensors[f"{name}.indices"]
    values = tensors.get(f"{name}.values", np.ones(len(indices), np.float32))
    matrix: Csr = sparse.csr_array((values, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


# -- JSON -------------------------------------------------------------------------------------


def _value_model_as_json(value_model: ValueModel) -> dict[str, Any]:
    values = {name: getattr(value_model, name) for name in _VALUE_MODEL}
    return {"element": _element_as_json(value_model.element), **values}


def _value_model_from_json(stored: dict[str, Any]) -> ValueModel:
    element = _element_from_json(stored["element"])
    value_model = ValueModel(element, **{name: stored[name] for name in _VALUE_MODEL})
    check_value_model(value_model)
    return value_model


def _history(stored: list[dict[str, Any]]) -> tuple[Check, ...]:
    history = tuple(Check(**_revived(check)) for check in stored)
    check_history(history)
    return history


def _element_as_json(element: Element) -> dict[str, Any]:
    if not _is_known(element):
        raise ModelError(
            f"{type(element).__name__} is not one of hcpf's elements, so it could not be loaded "
            "again. Save the factors (posterior_) instead."
        )
    parameters = {name: np.asarray(value).tolist() for name, value in element.parameters.items()}
    return {"element": element.name, "parameters": parameters}


def _is_known(element: Element) -> bool:
    with suppress(HcpfError):
        return get(element.name) is type(element)
    return False


def _element_from_json(stored: dict[str, Any]) -> Element:
    return get(stored["element"])(**stored["parameters"])


def _plain(value: Any) -> Any:
    """Return a setting as JSON; what cannot be stored, such as a Generator, becomes None."""
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
    if isinstance(value, Mapping):  # a solver, or some numbers of the priors
        return {name: _plain(part) for name, part in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else None


def _revived(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _revive(value) if isinstance(value, dict) else value for name, value in stored.items()
    }


def _revive(value: dict[str, Any]) -> Any:
    if "float" in value:
        return float(value["float"])
    if "solver" in value:
        return _revived(value)
    if "priors" in value:
        return Priors(**value["priors"])
    return _element_from_json(value) if "element" in value else value
