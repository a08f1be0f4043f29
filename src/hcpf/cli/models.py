"""Saved models: loading, checking where one may go, ids from text, and fitting with a message."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcpf.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hcpf.estimator import HCPF

MANIFEST = "manifest.json"


def load_model(path: Path) -> "HCPF":
    """Load a saved model."""
    from hcpf.estimator import HCPF

    if not path.exists():
        raise InputError(f"{path}: there is no such model. Make one with: hcpf fit DATA -o {path}")
    return HCPF.load(path)


def prepare_model(path: Path, *, overwrite: bool) -> None:
    """Find out before the fit whether a model can be written there."""
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file; a model is a folder. Choose another name for -o.")
    if (path / MANIFEST).exists():
        if not overwrite:
            raise InputError(f"{path} holds a model already: pass --overwrite to replace it.")
    elif any(path.iterdir()):
        raise InputError(f"{path} holds other files. Choose another name for -o.")


def parse_ids(side: str, known: "NDArray[Any]", texts: Sequence[Any]) -> "NDArray[Any]":
    """Ids from the command line or a file in the form that the model's ids have."""
    import numpy as np

    example = known[0]
    kind: Any = str if isinstance(example, str) else int
    kind = uuid.UUID if isinstance(example, uuid.UUID) else kind
    out: NDArray[Any] = np.empty(len(texts), dtype=object)
    for place, text in enumerate(texts):
        try:
            out[place] = text if isinstance(text, kind) else kind(str(text))
        except ValueError:
            raise InputError(
                f"--{side} {text}: no such {side}; the model's are like {example}."
            ) from None
    return out if kind is not int else out.astype(known.dtype)


def unknown_ids(known: "NDArray[Any]", asked: "NDArray[Any]") -> "NDArray[np.bool_]":
    """Which of the ids the model does not know."""
    from hcpf.data.ids import IdIndex

    return IdIndex("ids", known).known(asked) < 0
