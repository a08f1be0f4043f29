"""From words on the command line to data, models, settings and ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcpf.cli.options import Duplicates
from hcpf.cli.output import note
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.data.canonical import IdArray
    from hcpf.data.guess import ColumnRoles
    from hcpf.data.ids import IdIndex
    from hcpf.data.interactions import Interactions
    from hcpf.model.fitted import FittedModel


MANIFEST = "manifest.json"
RETAIL = "retail"
_RETAIL_VALUES = ("spend", "quantity", "invoices")


@dataclass(frozen=True)
class Source:
    """Files and the columns to read from them."""

    data: Sequence[str]
    user: str | None = None
    item: str | None = None
    value: str | None = None
    duplicates: Duplicates = "error"
    header: bool | None = None
    delimiter: str | None = None

    def read(self) -> "Interactions":
        """Read the data and report on stderr which columns were read."""
        from hcpf.data.interactions import Interactions

        if self._is_retail():
            return self._retail()
        roles, header = self.columns()
        return Interactions.read(
            list(self.data),
            user=roles.user,
            item=roles.item,
            value=roles.value,
            duplicates=self.duplicates,
            delimiter=self.delimiter,
            header=header,
        )

    def read_counting_repeats(self) -> "tuple[Interactions, int]":
        """Read the data with repeated pairs merged; return how many rows were merged, too."""
        from hcpf.data.interactions import Interactions
        from hcpf.data.readers import read_triples

        if self._is_retail():
            return self._retail(), 0
        roles, header = self.columns()
        triples = read_triples(
            list(self.data),
            user=roles.user,
            item=roles.item,
            value=roles.value,
            delimiter=self.delimiter,
            header=header,
        )
        merge = "sum" if self.duplicates == "error" else self.duplicates
        data = Interactions(triples.to_matrix(merge), triples.users, triples.items)
        return data, len(triples.values) - data.n_observed

    def columns(self) -> "tuple[ColumnRoles, bool]":
        """Return the columns, and whether text files have a header; report what was guessed."""
        from hcpf.data.detect import detect_layout
        from hcpf.data.guess import guess_columns
        from hcpf.data.readers import find_files

        layout = detect_layout(find_files(list(self.data))[0], self.delimiter, self.header)
        roles = guess_columns(layout.columns, self.user, self.item, self.value)
        if self.header is None and not layout.header:
            note("The first line contains data: the columns are f0, f1, ... (else --header).")
        given = {"--user": self.user, "--item": self.item, "--value": self.value}
        guessed = [option for option, name in given.items() if name is None]
        if guessed:
            note(f"{roles} (guessed; else {', '.join(guessed)})")
        if roles.value is None and self.value is None:
            unused = [name for name in layout.names if name not in (roles.user, roles.item)]
            if unused:
                note(f"Not used: {', '.join(unused)}. If one is the value: --value NAME.")
        return roles, layout.header

    def _is_retail(self) -> bool:
        if RETAIL in self.data and len(self.data) > 1:
            raise InputError("retail cannot be combined with files. Pass either of them.")
        return list(self.data) == [RETAIL]

    def _retail(self) -> "Interactions":
        from hcpf import datasets

        if self.user or self.item:
            raise InputError("retail has its own columns. Remove --user and --item.")
        value = self.value or "spend"
        if value not in _RETAIL_VALUES:
            raise InputError(
                f"--value {value}: the values of retail are spend, quantity or invoices."
            )
        note(f"retail: user = customer, item = product, value = {value}")
        return datasets.retail(value)  # pyright: ignore[reportArgumentType]


def read_names(source: str | None, items: "IdArray") -> dict[str, str]:
    """Return names by the text of the item's id; ``retail`` stands for that data set's names."""
    from hcpf.data import names

    if source != RETAIL:
        return names.read_names(source, items)
    from hcpf import datasets

    return names.read_names(datasets.retail_products(), items)


def value_model_settings(
    element: str, vary_by: str | None, hurdle: bool, train_on: str
) -> dict[str, Any]:
    """Return the arguments of HCPF for the options of a value model, checked before any reading."""
    from hcpf.core.value_model import ValueModel
    from hcpf.elements import get
    from hcpf.elements.registry import CHOSEN_BY_DATA, parse_element

    chosen = parse_element(element)
    settings: dict[str, Any] = {"vary_by": vary_by, "hurdle": hurdle, "train_on": train_on}
    if chosen not in CHOSEN_BY_DATA:
        ValueModel(get(chosen)() if isinstance(chosen, str) else chosen, **settings)
    elif chosen == "auto" and (vary_by or hurdle):
        option = f"--vary-by {vary_by}" if vary_by else "--hurdle"
        raise InputError(f"{option} requires an --element other than auto, which compares all.")
    return {"element": chosen, **settings}


def load_model(path: Path) -> "FittedModel":
    """Load a saved model."""
    from hcpf.model.fitted import FittedModel

    if not path.exists():
        raise InputError(f"{path}: no such model. Fit one with: hcpf fit DATA -o {path}")
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
