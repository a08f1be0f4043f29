"""``hcpf recommend``."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hcpf.cli import options
from hcpf.cli.inputs import load_model, parse_ids, read_names
from hcpf.cli.output import (
    Field,
    number,
    percent,
    prepare_table,
    show_json,
    show_rows,
    write_table,
)

if TYPE_CHECKING:
    from hcpf.data.canonical import IdArray
    from hcpf.model.fitted import FittedModel
    from hcpf.model.tables import Table

_BLOCK = 1 << 20  # rows of output computed at once

PROBABILITY = Field("probability", "Probability", percent)
VALUE = Field("value", "Value if observed")
EXPECTED = Field("expected_value", "Expected value")


def recommend(
    model: options.ModelFolder,
    users: Annotated[
        list[str] | None,
        typer.Argument(metavar="USER", help="Ids of users.", show_default=False),
    ] = None,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of items per user.")] = 10,
    by: Annotated[
        Literal["consensus", "probability", "value", "expected_value"],
        typer.Option(
            "--by",
            help="Score to rank by: consensus of the fits, probability that the pair is observed, "
            "value (value if observed) or expected_value.",
        ),
    ] = "consensus",
    everyone: Annotated[
        bool, typer.Option("--all", help="All users. Requires -o.", show_default=False)
    ] = False,
    seen: Annotated[
        bool, typer.Option("--seen", help="Include items that the user has an entry for.")
    ] = False,
    names: options.Names = None,
    output: options.TableFile = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Recommend the best new items for users, best first."""
    if bool(users) == everyone:
        raise typer.BadParameter("Pass one or more users, or --all.")
    if everyone and output is None:
        raise typer.BadParameter("--all requires a file to write to, for example -o lists.parquet.")
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    fitted = load_model(model)
    item_names = read_names(names, fitted.items)
    ids = fitted.users if everyone else parse_ids(fitted.user_index, users or [])
    tables = _recommend(fitted, ids, n, by, not seen, item_names)
    if output is not None:
        rows = write_table(output, tables, overwrite=overwrite, total=n * len(ids))
        if as_json:
            show_json({"path": str(output), "users": len(ids), "rows": rows})
        return
    _show([row._asdict() for table in tables for row in table], bool(item_names), as_json)


def _recommend(
    model: "FittedModel", users: "IdArray", n: int, by: str, exclude_seen: bool,
    names: dict[str, str],
) -> "Iterator[Table]":  # fmt: skip
    """Yield recommendations for a few users at a time, with a column of names if there are any."""
    from hcpf.model.tables import Table

    step = max(1, _BLOCK // n)
    for first in range(0, len(users), step):
        table = model.recommend(users[first : first + step], n, by=by, exclude_seen=exclude_seen)
        if names:
            columns = table.columns()
            named = {"name": [names.get(str(item), "") for item in columns["item"]]}
            yield Table(user=columns.pop("user"), item=columns.pop("item"), **named, **columns)
        else:
            yield table


def _show(records: list[dict[str, Any]], named: bool, as_json: bool) -> None:
    if as_json:
        show_json(records)
        return
    single_user = len({record["user"] for record in records}) == 1
    show_user = not single_user or not sys.stdout.isatty()
    fields = [
        *([Field("user", "User", str, right=False)] if show_user else []),
        Field("rank", "Rank", number),
        Field("item", "Item", str, right=False),
        *([Field("name", "Name", str, right=False)] if named else []),
        PROBABILITY,
        VALUE,
        EXPECTED,
    ]
    show_rows(fields, records, f"User {records[0]['user']}" if single_user else "")
