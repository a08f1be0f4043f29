"""``hcpf recommend``."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.files import prepare_table, write_table
from hcpf.cli.models import load_model, parse_ids
from hcpf.cli.screen import Field, number, percent, show_json, show_rows
from hcpf.cli.sources import read_names

if TYPE_CHECKING:
    from hcpf.estimator import HCPF

_STEP = 1 << 20  # rows of output made at once

PROBABILITY = Field("probability", "probability", percent)
RESPONSE = Field("response", "value if so")
EXPECTED = Field("expected", "expected total")


def recommend(
    model: options.ModelFolder,
    users: Annotated[
        list[str] | None,
        typer.Argument(metavar="USER", help="Ids of users.", show_default=False),
    ] = None,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="Items for each user.")] = 10,
    by: Annotated[
        options.By,
        typer.Option(
            "--by",
            help="Consensus of the fits, probability that the pair is observed, value if it is, or "
            "expected total.",
        ),
    ] = options.By.consensus,
    everyone: Annotated[
        bool, typer.Option("--all", help="All users; needs -o.", show_default=False)
    ] = False,
    seen: Annotated[
        bool, typer.Option("--seen", help="Also items that the user has already.")
    ] = False,
    names: options.Names = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File: .parquet, .csv or .tsv.")
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """The best items for users, best first.

    Items that the user has already are left out.
    """
    if bool(users) == everyone:
        raise typer.BadParameter("name one or more users, or pass --all.")
    if everyone and output is None:
        raise typer.BadParameter("--all needs a file to write to: -o lists.parquet.")
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    fitted = load_model(model)
    called = read_names(names, fitted.items_)
    ids = fitted.users_ if everyone else parse_ids("user", fitted.users_, users or [])
    parts = _lists(fitted, ids, n, by.value, not seen)
    if output is not None:
        tables = (_with_names(part.to_arrow(), called) for part in parts)
        rows = write_table(output, tables, total=n * len(ids))
        if as_json:
            show_json({"path": str(output), "users": len(ids), "rows": rows})
        return
    records = [record for part in parts for record in _records(part, called)]
    _show(records, bool(called), as_json)


def _lists(model: "HCPF", ids: Any, n: int, by: str, exclude_seen: bool) -> Iterator[Any]:
    step = max(1, _STEP // n)
    for first in range(0, len(ids), step):
        yield model.recommend(ids[first : first + step], n, by=by, exclude_seen=exclude_seen)


def _with_names(table: Any, called: dict[str, str]) -> Any:
    if not called:
        return table
    names = [called.get(str(item), "") for item in table["item"].to_pylist()]
    return table.add_column(table.schema.get_field_index("item") + 1, "name", [names])


def _records(part: Any, called: dict[str, str]) -> list[dict[str, Any]]:
    columns = list(part.columns())
    records = [dict(zip(columns, row, strict=True)) for row in part]
    for record in records if called else ():
        record["name"] = called.get(str(record["item"]), "")
    return records


def _show(records: list[dict[str, Any]], named: bool, as_json: bool) -> None:
    if as_json:
        show_json(records)
        return
    one_user = len({record["user"] for record in records}) == 1
    fields = [
        *([] if one_user and sys.stdout.isatty() else [Field("user", "user", str, right=False)]),
        Field("rank", "rank", number),
        Field("item", "item", str, right=False),
        *([Field("name", "name", str, right=False)] if named else []),
        PROBABILITY,
        RESPONSE,
        EXPECTED,
    ]
    title = f"For user {records[0]['user']}" if one_user else ""
    show_rows(fields, records, title)
