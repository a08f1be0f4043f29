"""The factors of a model in an AnnData."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import flag, one_of
from hcpf._types import FloatArray
from hcpf._version import __version__
from hcpf.core.axis import Axis
from hcpf.data.ids import IdIndex
from hcpf.errors import InputError
from hcpf.model.factors import KINDS, factor_values
from hcpf.model.inspect import describe_model

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

_ABOUT = ("vary_by", "hurdle", "train_on", "tempering", "priors", "passes", "seed")


def write_anndata(
    model: "FittedModel", adata: Any, key: str, *, kind: str, obs_columns: bool, strict: bool
) -> None:
    """Write the factors, and how they were fitted; see ``FittedModel.write_anndata``."""
    one_of("kind", kind, KINDS)
    is_strict, has_columns = flag("strict", strict), flag("obs_columns", obs_columns)
    if not isinstance(key, str) or not key:
        raise InputError(f"key must be a name such as 'hcpf', got {key!r}.")
    if not all(hasattr(adata, name) for name in ("obsm", "varm", "uns", "obs_names", "var_names")):
        raise InputError(f"adata must be an AnnData, got {type(adata).__name__}.")
    cells = _rows_of(model, Axis.USERS, model.user_index, adata.obs_names, kind, is_strict)
    genes = _rows_of(model, Axis.ITEMS, model.item_index, adata.var_names, kind, is_strict)
    n_before = _n_columns(adata.uns.get(key))
    adata.obsm[f"X_{key}"] = cells
    adata.varm[key] = genes
    adata.uns[key] = _about(model, kind)
    if has_columns:
        columns = {f"{key}_{k}": cells[:, k] for k in range(cells.shape[1])}
        old = [f"{key}_{k}" for k in range(max(n_before, len(columns)))]
        others = adata.obs.drop(columns=[name for name in old if name in adata.obs])
        adata.obs = others.assign(**columns)


def _rows_of(
    model: "FittedModel", axis: Axis, index: IdIndex, names: Any, kind: str, is_strict: bool
) -> NDArray[np.float32]:
    """Return the factors of named rows, NaN for those that were not fitted."""
    wanted = np.asarray(names, dtype=object)
    positions = index.known(wanted)
    is_new = positions < 0
    if len(positions) and is_new.all():
        raise InputError(
            f"None of the {len(positions):,} {axis.value} of adata was fitted, for example "
            f"{wanted[0]!r}. {index.name.capitalize()} of the model are like {index.ids[0]!r}. "
            "Fold in new ones, and write the factors of that model."
        )
    if is_strict and is_new.any():
        raise InputError(
            f"{int(is_new.sum()):,} of {len(positions):,} {axis.value} of adata were not fitted, "
            f"for example {wanted[int(np.argmax(is_new))]!r}. Pass strict=False to write NaN there."
        )
    values: FloatArray = factor_values(model, axis, kind)[positions]
    values[is_new] = np.nan
    return values.astype(np.float32)


def _n_columns(about: Any) -> int:
    """Return how many columns an earlier model had that was written under the same key."""
    try:
        return int(about["n_components"]) * int(about["n_fits"])
    except (KeyError, TypeError, ValueError, IndexError):
        return 0


def _about(model: "FittedModel", kind: str) -> dict[str, Any]:
    """Return how the model was fitted, in types that .h5ad files hold."""
    found = describe_model(model)
    about: dict[str, Any] = {
        "version": __version__,
        "kind": kind,
        "n_components": found["components"],
        "n_fits": found["fits"],
        "element": found["element"]["name"],
        "parameters": {name: float(v) for name, v in found["element"]["parameters"].items()},
    }
    return about | {name: found[name] for name in _ABOUT if found[name] is not None}
