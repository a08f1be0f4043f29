"""The model that a report, or a figure, is about."""

from pathlib import Path
from typing import Any

from hcpf.errors import InputError
from hcpf.estimator import HCPF


def fitted_model(model: Any) -> HCPF:
    """A fitted model as it is, a saved one loaded from its path."""
    if isinstance(model, (str, Path)):
        if "\0" in str(model) or not Path(model).is_dir():
            raise InputError(f"model: there is no saved model {str(model)!r}.")
        model = HCPF.load(model)
    if not isinstance(model, HCPF):
        raise InputError(
            f"model must be a fitted HCPF or the path of a saved one; got {type(model).__name__}."
        )
    if not hasattr(model, "posteriors_"):
        raise InputError("model is not fitted yet: call fit first.")
    return model
