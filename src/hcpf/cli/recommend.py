"""``hcpf recommend`` and ``hcpf fold-in``: lists of the best items for fitted or new users."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hcpf.cli import options
from hcpf.cli.inputs import (
    Source,
    all_in_memory,
    load_model,
    parse_ids,
    read_names,
    with_ids_like,
    with_source,
)
from hcpf.cli.output import (
    Field,
    for_terminal,
    note,
    note_period,
    or_dash,
    percent,
    prepare_table,
    show_json,
    show_rows,
    write_table,
)
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.data.canonical import IdArray
    from hcpf.data.interactions import Interactions
    from hcpf.model.fitted import FittedModel
    from hcpf.model.tables import Table

_BLOCK = 1 << 20  # rows of output computed at once
_FEW = 2  # entries on which a mean is too uncertain to go without a warning

PROBABILITY = Field("probability", "Probability", percent)
VALUE = Field("value", "Value if observed")
EXPECTED = Field("expected_value", "Expected value")
INTERVAL = (Field("low", "90% from"), Field("high", "To"))
RANK = Field("rank", "Rank")
USER_ENTRIES, ITEM_ENTRIES = (
    Field(f"{word}_entries", f"Entries of {word}") for word in ("user", "item")
)
REASON = Field("reason", "Because of", or_dash, right=False, wraps=True)
INTERVAL_TEXT = Field("interval", "90% interval", str)

Number = Annotated[int, typer.Option("--number", "-n", min=1, help="Number of items per user.")]
By = Annotated[
    Literal["consensus", "probability", "value", "expected_value"],
    typer.Option(
        "--by",
        metavar="SCORE",
        help="Score to rank by: consensus of the fits, probability that the pair is observed, "
        "value (value if observed) or expected_value.",
    ),
]
Details = Annotated[
    bool,
    typer.Option(
        "--details",
        help="Add a 90% interval of the value, the reason (the user's own item that contributes "
        "most), and the numbers of entries of user and item.",
    ),
]


def recommend(
    model: options.ModelFolder,
    users: Annotated[
        list[str] | None,
        typer.Argument(metavar="USER", help="Ids of users.", show_default=False),
    ] = None,
    basket: Annotated[
        list[str] | None,
        typer.Option(
            "--basket",
            metavar="ITEM[=VALUE]",
            help="An item of somebody new, instead of USER; may be repeated. Default value: the "
            "median of the item's entries.",
            show_default=False,
        ),
    ] = None,
    n: Number = 10,
    by: By = "consensus",
    everyone: Annotated[
        bool, typer.Option("--all", help="All users. Requires -o.", show_default=False)
    ] = False,
    exposure: options.PairExposure = None,
    user_exposure: Annotated[
        float | None,
        typer.Option(
            "--user-exposure", metavar="X", show_default=False,
            help="Exposure of the user of --basket, if the model has user exposures.",
        ),
    ] = None,
    seen: Annotated[
        bool, typer.Option("--seen", help="Include items that the user has an entry for.")
    ] = False,
    details: Details = False,
    names: options.Names = None,
    output: options.TableFile = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Recommend the best new items for users, best first.

    A probability refers to a period as long as that of the training data.
    """
    if [bool(users), bool(basket), everyone].count(True) != 1:
        raise typer.BadParameter("Pass one or more users, or --basket, or --all.")
    if everyone and output is None:
        raise typer.BadParameter("--all requires a file to write to, for example -o lists.parquet.")
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    fitted = load_model(model)
    lists = _Lists(n, by, not seen, details, read_names(names, fitted.items), exposure)
    if basket:
        fitted = fitted.fold_in(_parse_basket(fitted, basket), user_exposure=user_exposure)
    ids = parse_ids(fitted.user_index, users) if users else fitted.users
    lists.give(fitted, ids, output, overwrite, as_json)


@with_source
def fold_in(
    model: options.ModelFolder,
    source: Source,
    n: Number = 10,
    by: By = "consensus",
    user_exposure: options.UserExposure = None,
    exposure: options.PairExposure = None,
    details: Details = False,
    names: options.Names = None,
    output: options.TableFile = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Recommend items to new users, from a file of their entries.

    The model is not changed: each user is estimated with the item factors held fixed. Their items
    must be items of the model. To add the users to the model, see [b]hcpf update[/b].
    """
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    fitted = load_model(model)
    lists = _Lists(n, by, True, details, read_names(names, fitted.items), exposure)
    entries = with_ids_like(fitted, all_in_memory(source.read(like=fitted.words).data))
    _require_known_items(fitted, entries)
    new = fitted.fold_in(entries, user_exposure=user_exposure)
    lists.give(new, new.users, output, overwrite, as_json)


def _require_known_items(model: "FittedModel", entries: "Interactions") -> None:
    unknown = entries.items[model.item_index.known(entries.items) < 0]
    if len(unknown):
        raise InputError(
            f"Unknown item {unknown[0]} ({len(unknown):,} in total). Remove the rows of unknown "
            "items, or add them to the model first with hcpf update."
        )


def _parse_basket(model: "FittedModel", texts: list[str]) -> dict[Any, float]:
    """Return the values by item of words such as 85123A=12.50."""
    basket: dict[Any, float] = {}
    for text in texts:
        name, equals, amount = text.rpartition("=")
        if not equals:
            name = text
        item = parse_ids(model.item_index, [name])[0]
        model.item_index.positions([item])
        try:
            basket[item] = float(amount) if equals else _median_value(model, item)
        except ValueError:
            raise InputError(f"--basket {text}: {amount!r} is not a number.") from None
    return basket


def _median_value(model: "FittedModel", item: Any) -> float:
    """Return the median of an item's entries, or of all where it has none: a value that exists."""
    if model.data is None:
        raise InputError(
            f"--basket {item}: this model does not have its training data. Pass the value, for "
            f"example --basket {item}=1."
        )
    import numpy as np

    from hcpf.core.axis import Axis
    from hcpf.data.sampling import sample_values
    from hcpf.model.entry_counts import entries_of_row

    matrix, row = model.data.matrix, int(model.item_index.positions([item])[0])
    _, values = entries_of_row(matrix, Axis.ITEMS, row)
    known = np.sort(values if len(values) else sample_values(matrix))
    return float(known[len(known) // 2])


@dataclass(frozen=True)
class _Lists:
    """Recommendations as they were asked for."""

    n: int
    by: str
    exclude_seen: bool
    details: bool
    names: dict[str, str] = field(default_factory=dict[str, str])
    exposure: float | None = None

    def give(
        self, model: "FittedModel", users: "IdArray", output: Path | None, overwrite: bool,
        as_json: bool,
    ) -> None:  # fmt: skip
        """Write the lists of users to a file, or print them."""
        tables = self._tables(model, users)
        if output is not None:
            total = self.n * len(users)
            rise: list[bool] = []

            def watched() -> Iterator["Table"]:
                for table in tables:
                    rise.append(_probabilities_rise(table.user, table.probability))
                    yield table

            rows = write_table(output, watched(), overwrite=overwrite, total=total)
            note_period(model)
            self._explain_order(any(rise))
            if as_json:
                show_json({"path": str(output), "users": len(users), "rows": rows})
            return
        records = [row._asdict() for table in tables for row in table]
        if as_json:
            show_json(records)
            return
        if not records:
            note(_why_nothing(users, self.exclude_seen))
            return
        self._show(records)
        note_period(model)
        if self.details:
            _warn_of_few_entries(model, records)

    def _tables(self, model: "FittedModel", users: "IdArray") -> "Iterator[Table]":
        """Yield recommendations for a few users at a time, with names if there are any."""
        from hcpf.model.tables import Table

        step = max(1, _BLOCK // self.n)
        for first in range(0, len(users), step):
            table = model.recommend(
                users[first : first + step], self.n, by=self.by, exclude_seen=self.exclude_seen,
                details=self.details, exposure=self.exposure,
            )  # fmt: skip
            yield Table(**self._with_names(table.columns())) if self.names else table

    def _with_names(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Return the columns with the item's name after its id, and the reason by name."""
        named = {"user": columns["user"], "item": columns["item"]}
        named["name"] = [self.names.get(str(item), "") for item in columns["item"]]
        if "reason" in columns:
            columns["reason"] = [
                None if item is None else self.names.get(str(item), str(item))
                for item in columns["reason"]
            ]
        return named | {name: column for name, column in columns.items() if name not in named}

    def _show(self, records: list[dict[str, Any]]) -> None:
        n_users = len({record["user"] for record in records})
        if not sys.stdout.isatty():
            show_rows(self._piped_fields(records[0]), records)
        elif self.details or n_users == 1:
            for _, own in groupby(records, key=lambda record: record["user"]):
                rows = [for_terminal(row) if self.details else row for row in own]
                show_rows(self._fields(), rows, _title(rows[0]))
        else:
            show_rows([Field("user", "User", str, right=False), *self._fields()], records)
        users, probabilities = ([row[key] for row in records] for key in ("user", "probability"))
        self._explain_order(_probabilities_rise(users, probabilities))

    def _explain_order(self, probabilities_rise: bool) -> None:
        """Say why a list is not sorted by the probabilities that it shows."""
        if self.by == "consensus" and probabilities_rise:
            note(
                "Ranked by the consensus of the fits: items on which all of them agree come first, "
                "so a lower rank may have a higher probability. To sort by it: --by probability."
            )

    def _fields(self) -> list[Field]:
        """Return the columns at a terminal, at most seven."""
        item, name = (
            Field(key, key.capitalize(), str, right=False, wraps=self.details)
            for key in ("item", "name")
        )
        if not self.details:
            return [RANK, item, *([name] if self.names else []), PROBABILITY, VALUE, EXPECTED]
        shown = name if self.names else item
        return [RANK, shown, PROBABILITY, VALUE, INTERVAL_TEXT, ITEM_ENTRIES, REASON]

    def _piped_fields(self, record: dict[str, Any]) -> list[Field]:
        """Return the columns in a pipe: all that a record has."""
        ids = [Field("user", "User", str), RANK, Field("item", "Item", str)]
        more = [
            *INTERVAL, REASON, Field("reason_share", "Share", percent), USER_ENTRIES, ITEM_ENTRIES,
        ]  # fmt: skip
        wanted = [*ids, Field("name", "Name", str), PROBABILITY, VALUE, *more, EXPECTED]
        return [field for field in wanted if field.name in record]


def _title(record: dict[str, Any]) -> str:
    """Return the heading of the list of one user, with the number of its entries if known."""
    if record.get("user_entries") is None:
        return f"User {record['user']}"
    from hcpf.data.words import count

    return f"User {record['user']}, {count(record['user_entries'], 'entry')}"


def _why_nothing(users: "IdArray", exclude_seen: bool) -> str:
    """Return a sentence on lists without items."""
    who = f"User {users[0]} has" if len(users) == 1 else "These users have"
    hint = " To rank those as well: --seen." if exclude_seen else ""
    return f"Nothing to recommend: {who} an entry for every item.{hint}"


def _probabilities_rise(users: Sequence[Any], probabilities: Sequence[float]) -> bool:
    """Return whether probabilities rise somewhere within the list of a user."""
    rows = zip(users, probabilities, strict=True)
    return any(after[0] == before[0] and after[1] > before[1] for before, after in pairwise(rows))


def _warn_of_few_entries(model: "FittedModel", records: list[dict[str, Any]]) -> None:
    """Warn of values whose own mean rests on one or two entries."""
    pooled = {"user": ("user",), "item": ("item",), "both": ("user", "item")}
    axes = pooled.get(model.value_model.vary_by or "", ())
    few = sum(any(row.get(f"{axis}_entries", _FEW + 1) <= _FEW for axis in axes) for row in records)
    if few:
        who = " or ".join(axes)
        note(
            f"{few} of {len(records)} values rest on one or two entries of the {who}: they are "
            "uncertain, and a single odd entry can make them far too high."
        )
