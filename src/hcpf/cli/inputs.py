"""From words on the command line to data, models, settings and ids."""

import inspect
import shlex
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

from hcpf.cli import options
from hcpf.cli.errors import name_options
from hcpf.cli.output import note, prepare_folder
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.data.canonical import Duplicates, IdArray
    from hcpf.data.files import TableFile
    from hcpf.data.guess import ColumnRoles
    from hcpf.data.ids import IdIndex
    from hcpf.data.interactions import Interactions
    from hcpf.data.read_options import ReadOptions
    from hcpf.data.readers import FileSet
    from hcpf.data.words import Words
    from hcpf.model.fitted import FittedModel


MANIFEST = "manifest.json"
RETAIL = "retail"
_RETAIL_VALUES = ("spend", "quantity", "invoices")
_ROW_OPTIONS = ("returns", "drop_blank_ids", "drop_blank_values", "exclude_items")
_SAMPLE_ENTRIES = 2_000_000
"""Entries of shards that commands use which need them in memory."""


class ReadResult(NamedTuple):
    """Data, and what reading them decided."""

    data: "Interactions"
    words: "Words"
    """What the reader calls users, items and values."""
    remarks: Sequence[str] = ()
    n_repeated: int = 0
    """Rows that repeat a pair although that is an error."""
    duplicates: "Duplicates" = "error"
    """How the rows of a repeated pair are merged."""
    problems: Sequence[str] = ()
    """What is wrong with rows that were dropped although they are an error, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Data to read: the arguments and options of every command that reads data.

    `with_source` turns the fields into parameters of a command. All but the first four are those of
    `hcpf.data.read_options.ReadOptions`.
    """

    data: options.DataFiles
    user: options.User = None
    item: options.Item = None
    value: options.Value = None
    duplicates: options.OnDuplicates = "auto"
    returns: options.OnReturns = "auto"
    drop_blank_ids: options.DropBlankIds = False
    drop_blank_values: options.DropBlankValues = False
    exclude_items: options.ExcludeItems = field(default_factory=list)
    decimal: options.Decimal = None
    encoding: options.Encoding = None
    delimiter: options.Delimiter = None
    header: options.Header = None
    sheet: options.Sheet = None
    sql: options.Sql = None
    layer: options.Layer = None
    use_raw: options.UseRaw = False

    def read(self, *, lenient: bool = False, like: "Words | None" = None) -> ReadResult:
        """Read the data and report on stderr what was detected and done.

        ``like`` has the words of a model: its columns are taken unless others are given.
        With ``lenient``, rows that are an error are dropped and described, repeated pairs are
        summed, and what was done is in the result only.
        """
        result = self._read(lenient, like)
        if not lenient:
            for remark in result.remarks:
                note(remark)
        return result

    def _read(self, lenient: bool, like: "Words | None") -> ReadResult:
        from hcpf.data.annotated import read_h5ad
        from hcpf.data.readers import period_of
        from hcpf.data.words import Words

        duplicates = "error" if self.duplicates == "auto" else self.duplicates
        if self._is_retail():
            value, period = self.value or "spend", "1 December 2010 to 9 December 2011"
            currency = "£" if value == "spend" else ""
            noun = {"invoices": "number of invoices"}.get(value, value)
            words = Words("customer", "product", noun, currency, "retail", period)
            return ReadResult(self._retail(), words, duplicates=duplicates)
        if is_shard_folder(self.data):
            from hcpf.data.shards.folder import Shards

            names = "user", "item", "value", *_ROW_OPTIONS
            self._refuse(names, "shards", ", or pass it to hcpf shard")
            return ReadResult(Shards.open(self.data[0]), Words(), duplicates=duplicates)
        if (h5ad := self._h5ad()) is not None:
            self._refuse(_ROW_OPTIONS, ".h5ad files")
            data, remarks = read_h5ad(h5ad, self.read_options())
            remarks = [name_options(remark) for remark in remarks]
            return ReadResult(data, Words(), remarks, duplicates=duplicates)
        found, roles = self.open_files(like)
        entries, files = found.entries(lenient=lenient), found.files
        remarks = [name_options(remark) for remark in entries.remarks]
        names = ", ".join(file.path.name for file in files[:3]) + ", …" * (len(files) > 3)
        words = Words.of_columns(
            roles.user, roles.item, roles.value, currency=entries.currency, source=names,
            period=period_of(files, roles.user),
        )  # fmt: skip
        problems = [name_options(problem) for problem in entries.problems]
        repeated = entries.n_repeated, entries.duplicates
        return ReadResult(entries.data, words, remarks, *repeated, problems)

    def open_files(self, like: "Words | None" = None) -> "tuple[FileSet, ColumnRoles]":
        """Open the files, with columns like those of a model; report what was detected."""
        from hcpf.data.readers import FileSet, open_files

        self._refuse_models()
        options = self.read_options()
        files = open_files(list(self.data), options)
        roles = self.columns_of(files[0], like)
        return FileSet.of(files, roles.user, roles.item, roles.value, options), roles

    def read_before_and_after(
        self, date: str, time: str | None, like: "Words | None" = None
    ) -> "tuple[Interactions, Interactions]":
        """Read the rows before a date and those from then on; report what was done."""
        from hcpf.data.guess import time_column
        from hcpf.data.times import parse_moment

        moment = parse_moment(date)
        if self._is_retail():
            raise InputError("retail has no dates. Pass your own files.")
        if is_shard_folder(self.data):
            raise InputError("Shards have no dates. Pass the files that they were written from.")
        found, _ = self.open_files(like)
        if time is None:
            time = time_column(found.files[0].columns)
            note(f"time = {time} (detected; else --time)")
        before, after = found.entries_before_and_after(time, moment)
        for remark in before.remarks:
            note(name_options(remark))
        return before.data, after.data

    def columns_of(self, file: "TableFile", like: "Words | None" = None) -> "ColumnRoles":
        """Return the columns of a file, like those of a model; report what was detected."""
        from hcpf.data.guess import amount_column, guess_columns

        roles = guess_columns(file.columns, **self._known_columns(file, like))
        if self.header is None and not getattr(file, "has_header", True):
            note("The first line contains data: the columns are f0, f1, ... (else --header).")
        given = {"--user": self.user, "--item": self.item, "--value": self.value}
        detected = [option for option, name in given.items() if name is None]
        if detected:
            note(f"{roles} (detected; else {', '.join(detected)})")
        if like is not None and self.value is None:
            _compare_values(roles, like)
        if self.value is None and (amount := amount_column(file.columns, roles.value)):
            note(f"For the amount of each row instead: --value {shlex.quote(amount)}.")
        if roles.value is None and self.value is None:
            unused = [name for name in file.names if name not in (roles.user, roles.item)]
            if unused:
                note(f"Not used: {', '.join(unused)}. If one is the value: --value NAME.")
        return roles

    def _known_columns(self, file: "TableFile", like: "Words | None") -> dict[str, str | None]:
        """Return the columns that are given, or else known from a model."""
        given = {"user": self.user, "item": self.item, "value": self.value}
        if like is None:
            return given
        free = [name for name in file.names if name not in given.values()]
        return {role: name or like.column(role, free) for role, name in given.items()}

    def read_options(self) -> "ReadOptions":
        """Return how the files are read and cleaned."""
        from hcpf.data.read_options import ReadOptions

        names = [part.name for part in fields(ReadOptions)]
        return ReadOptions(**{name: getattr(self, name) for name in names})

    def is_table(self) -> bool:
        """Return whether the data are files with rows and columns."""
        return not self._is_retail() and not is_shard_folder(self.data) and self._h5ad() is None

    def _h5ad(self) -> Path | None:
        from hcpf.data.annotated import find_h5ad

        return find_h5ad(self.data, user=self.user, item=self.item, value=self.value)

    def _refuse(self, names: Sequence[str], data: str, instead: str = "") -> None:
        """Raise an error on options that would have no effect."""
        defaults = {part.name: part.default for part in fields(Source)}
        for name in names:
            if getattr(self, name) not in (defaults[name], []):
                option = name.replace("_", "-")
                raise InputError(f"--{option} has no effect on {data}. Remove it{instead}.")

    def _refuse_models(self) -> None:
        for path in self.data:
            if (Path(path) / MANIFEST).is_file():
                raise InputError(f"{path} is a saved model. Pass data, such as a CSV file.")

    def _is_retail(self) -> bool:
        if RETAIL in self.data and len(self.data) > 1:
            raise InputError("retail cannot be combined with files. Pass either of them.")
        return list(self.data) == [RETAIL]

    def _retail(self) -> "Interactions":
        from hcpf import datasets

        if self.user or self.item:
            raise InputError("retail has its own columns. Remove --user and --item.")
        self._refuse(_ROW_OPTIONS, "retail")
        value = self.value or "spend"
        if value not in _RETAIL_VALUES:
            raise InputError(
                f"--value {value}: the values of retail are spend, quantity or invoices."
            )
        note(f"retail: user = customer, item = product, value = {value}")
        return datasets.retail(value)  # pyright: ignore[reportArgumentType]


def _compare_values(roles: "ColumnRoles", like: "Words") -> None:
    """Tell that values have another name than those of the model."""
    from hcpf.data.words import Words

    own = Words.of_columns(roles.user, roles.item, roles.value).value
    if own != like.value and "value" not in (own, like.value):
        note(f"The model was fitted to {like.values}, not to {own} (otherwise pass --value).")


def is_shard_folder(data: Sequence[str]) -> bool:
    """Return whether the data are one folder written by ``hcpf shard``."""
    from hcpf.data.shards.manifest import is_shards

    return len(data) == 1 and is_shards(Path(data[0]))


def all_in_memory(data: "Interactions") -> "Interactions":
    """Return data with all entries in memory, also those of shards."""
    from hcpf.data.shards.folder import Shards

    return data.to_memory() if isinstance(data, Shards) else data


def in_memory(data: "Interactions") -> "Interactions":
    """Return data whose entries are in memory: of large shards, a sample of the users."""
    from hcpf.data.shards.folder import Shards

    if not isinstance(data, Shards) or data.n_observed <= _SAMPLE_ENTRIES:
        return all_in_memory(data)
    sample = data.sample(_SAMPLE_ENTRIES, random_state=0)
    note(
        f"Uses a sample of the shards: {sample.n_users:,} of {data.n_users:,} users with "
        f"{sample.n_observed:,} of {data.n_observed:,} entries."
    )
    return sample


def with_ids_like(model: "FittedModel", data: "Interactions") -> "Interactions":
    """Return data whose ids are strings where the model's are.

    Of a mixture such as 85123A and 22423, a file with few rows may have integers only.
    """
    from hcpf.data.ids import object_array

    texts = {
        name: object_array([str(one) for one in getattr(data, name)])
        for name in ("users", "items")
        if isinstance(next(iter(getattr(model, name)), None), str)
        and getattr(data, name).dtype.kind != "O"
    }
    return replace(data, **texts) if texts else data


def with_source(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameter ``source`` is replaced by the fields of `Source`.

    typer reads options from a signature; a parameter ``source`` would otherwise be spelled out in
    every command. The annotation of ``source`` may give another help text for the data.
    """
    own = dict(inspect.signature(command, eval_str=True).parameters)
    position = list(own).index("source")
    marks = get_args(own.pop("source").annotation)[1:]
    inserted: list[inspect.Parameter] = []
    for part in fields(Source):
        default = inspect.Parameter.empty
        if part.default is not MISSING:
            default = part.default
        elif part.default_factory is not MISSING:
            default = part.default_factory()
        kind = Annotated[list[str], marks[0]] if marks and part.name == "data" else part.type
        parameter = inspect.Parameter(
            part.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
        )
        inserted.append(parameter)

    @wraps(command)
    def run(**given: Any) -> None:
        source = Source(**{part.name: given.pop(part.name) for part in fields(Source)})
        command(source=source, **given)

    before, after = list(own.values())[:position], list(own.values())[position:]
    ordered = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*before, *inserted, *after]]
    run.__signature__ = inspect.Signature(ordered)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {p.name: p.annotation for p in ordered}
    return run


def read_names(source: str | None, items: "IdArray") -> dict[str, str]:
    """Return names by the text of the item's id; ``retail`` stands for that data set's names."""
    if source is None:
        return {}
    from hcpf.data import names

    if source != RETAIL:
        return names.read_names(source, items, note)
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
    if path.is_file():
        raise InputError(f"{path} is a file, but a model is a folder that hcpf fit wrote.")
    return FittedModel.load(path)


def prepare_model(path: Path, *, overwrite: bool) -> None:
    """Check before the fit that a model can be written to a folder."""
    if not path.exists():
        prepare_folder(path)
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file, but a model is a folder. Choose another name for -o.")
    if (path / MANIFEST).exists():
        if not overwrite:
            raise InputError(f"{path} contains a model already. Pass --overwrite to replace it.")
    elif any(path.iterdir()):
        raise InputError(f"{path} contains other files. Choose another name for -o.")
    prepare_folder(path)


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
