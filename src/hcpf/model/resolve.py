"""The fitted model that an argument gives (a model, an estimator or a path), and its data."""

from pathlib import Path
from typing import Any

from hcpf._types import Csr
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import without
from hcpf.errors import InputError
from hcpf.model.fitted import FittedModel


def fitted_model(model: Any) -> FittedModel:
    """Return the fitted model of an estimator, a model itself, or one loaded from its path."""
    if isinstance(model, (str, Path)):
        if "\0" in str(model) or not Path(model).is_dir():
            raise InputError(
                f"model: {str(model)!r} is not a folder. Pass one that save() or hcpf fit wrote."
            )
        return FittedModel.load(model)
    fitted = getattr(model, "model_", model)
    if not isinstance(fitted, FittedModel):
        raise InputError(
            f"model must be a fitted HCPF, a FittedModel or the path of a saved one; got "
            f"{type(model).__name__}. Fit an HCPF first; of a Pipeline pass pipeline[-1]."
        )
    return fitted


def training_data(model: FittedModel) -> Interactions:
    """Return the data that a model was trained on, or raise an error if it has none."""
    if model.data is None:
        raise InputError(
            "This requires the training data, which this model does not have. Save it with "
            "include_data=True, and keep its shards where they are."
        )
    return model.data


def trained_matrix(model: FittedModel) -> Csr:
    """Return the training data without the excluded entries."""
    return without(training_data(model).matrix, model.excluded)
