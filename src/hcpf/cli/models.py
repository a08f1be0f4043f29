"""Models: checks of their options and output folder, loading, and ids from text."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.data.canonical import IdArray
    from hcpf.data.ids import IdIndex
    from hcpf.model.fitted import FittedModel

MANIFEST = "manifest.json"


def value_model_settings(
    element: str, vary_by: str | None, hurdle: bool, train_on: str
) -> dict[str, Any]:
    """Return the arguments of HCPF for the options of a value model, checked before any reading."""
    from hcpf.core.value_model import ValueModel
    from hcpf.elements import get
    from hcpf.elements.registry import parse_element

    chosen = parse_element(element)
    settings: dict[str, Any] = {"vary_by": vary_by, "hurdle": hurdle, "train_on": train_on}
    if chosen != "auto":
        ValueModel(get(chosen)() if isinstance(chosen, str) else chosen, **settings)
    elif vary_by or hurdle:
        option = f"--vary-by {vary_by}" if vary_by else "--hurdle"
        raise InputError(f"{option} requires an --element other than auto, which compares all.")
    return {"element": chosen, **settings}


def load_model(path: Path) -> "FittedModel":
    """Load a saved model."""
    from hcpf.model.fitted import FittedModel

    if not path.exists():
        raise InputError(f"{path}: there is no such model. Fit one with: hcpf fit DATA -o {path}")
    return FittedModel.load(path)


def prepare_model(path: Path, *, overwrite: bool) -> None:
    """Check before the fit that a model can be written to a folder."""
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file, but a model is a folder. Choose another name for -o.")
    if (path / MANIFEST).exists():
        if not overwrite:
            raise InputError(f"{path} contains a model already. Pass --overwrite to replace it.")
    elif any(path.iterdir()):
        raise InputError(f"{path} contains other files. Choose another name for -o.")


def parse_ids(index: "IdIndex", texts: Sequence[Any]) -> "IdArray":
    """Return ids from the command line or a file, in the type of the model's ids."""
    import numpy as np

    ids, word = index.ids, index.name.removesuffix("s")
    example = ids[0]
    to_id: Any = type(example) if ids.dtype.kind == "O" else int
    parsed = np.empty(len(texts), dtype=object)
    for position, text in enumerate(texts):
        try:
            parsed[position] = text if isinstance(text, to_id) else to_id(str(text))
        except ValueError:
            kind = "integers" if to_id is int else f"{to_id.__name__}s"
            raise InputError(
                f"--{word} {text}: unknown {word}. {word.capitalize()} ids in this model are "
                f"{kind}, for example {example}."
            ) from None
    return parsed if to_id is not int else parsed.astype(ids.dtype)
