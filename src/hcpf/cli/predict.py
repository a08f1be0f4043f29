"""``hcpf predict``."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.inputs import Source, load_model, parse_ids
from hcpf.cli.output import (
    Field,
    for_terminal,
    note,
    note_period,
    prepare_table,
    show_json,
    show_rows,
    write_table,
)
from hcpf.cli.recommend import (
    EXPECTED,
    INTERVAL,
    INTERVAL_TEXT,
    ITEM_ENTRIES,
    PROBABILITY,
    USER_ENTRIES,
    VALUE,
)
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel
    from hcpf.model.tables import Table

_LEVEL = 0.9
_FIELDS = (
    Field("user", "User", str, right=False, wraps=True),
    Field("item", "Item", str, right=False, wraps=True),
    PROBABILITY,
    VALUE,
    EXPECTED,
)


def predict(
    model: options.ModelFolder,
    user: Annotated[
        list[str] | None,
        typer.Option(
            "--user", metavar="ID", help="Id of a user; may be repeated.", show_default=False
        ),
    ] = None,
    item: Annotated[
        list[str] | None,
        typer.Option(
            "--item", metavar="ID", help="Id of an item; may be repeated.", show_default=False
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs", metavar="FILE", help="File with a column of users and a column of items."
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="All users and all items. Requires -o.", show_default=False),
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Skip pairs of --pairs with unknown ids.")
    ] = False,
    exposure: options.PairExposure = None,
    output: options.TableFile = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Predict whether pairs are observed, and with what value.

    For each pair: the probability that it is observed; the value if observed, with a 90% interval
    (low, high); the expected value, in which a missing pair counts as 0; and the numbers of entries
    of the user and of the item. Several users and items give all pairs of them.
    """
    _check_usage(user, item, pairs, everything, output)
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    from hcpf.model.alignment import at_exposure
    from hcpf.model.predict import predict_all

    fitted, total = at_exposure(load_model(model), exposure), 0
    if everything:
        tables = predict_all(fitted, fitted.users, fitted.items, _LEVEL)
        total = len(fitted.users) * len(fitted.items)
    elif pairs is not None:
        tables = _predict_file(fitted, Path(pairs), skip_unknown)
    else:
        users = parse_ids(fitted.user_index, user or [])
        items = parse_ids(fitted.item_index, item or [])
        tables = predict_all(fitted, users, items, _LEVEL)
    if output is not None:
        rows = write_table(output, tables, overwrite=overwrite, total=total)
        if as_json:
            show_json({"path": str(output), "rows": rows})
        note_period(fitted)
        return
    records = [row._asdict() for table in tables for row in table]
    if as_json:
        show_json(records)
        return
    _show(records)
    note_period(fitted)


def _show(records: list[dict[str, Any]]) -> None:
    entries = (USER_ENTRIES, ITEM_ENTRIES)
    if sys.stdout.isatty():
        both = Field("entries", "Entries user / item", str)
        show_rows([*_FIELDS, INTERVAL_TEXT, both], map(for_terminal, records))
        return
    known = [field for field in entries if records and field.name in records[0]]
    show_rows([*_FIELDS, *INTERVAL, *known], records)


def _check_usage(user: Any, item: Any, pairs: Any, everything: bool, output: Any) -> None:
    ways = [bool(user or item), pairs is not None, everything]
    if sum(ways) != 1 or bool(user) != bool(item):
        raise typer.BadParameter("Pass --user and --item, or --pairs FILE, or --all.")
    if everything and output is None:
        raise typer.BadParameter("--all requires a file to write to, for example -o all.parquet.")


def _predict_file(model: "FittedModel", path: Path, skip_unknown: bool) -> "Iterator[Table]":
    """Yield the predictions for the pairs of a file, in its order."""
    import numpy as np

    from hcpf.data.files import open_file
    from hcpf.model.predict import predict_table

    file = open_file(path)
    roles = Source(data=[str(path)], value="none").columns_of(file)
    n_skipped = 0
    for first, second in file.pairs(roles.user, roles.item):
        users = parse_ids(model.user_index, first.to_pylist())
        items = parse_ids(model.item_index, second.to_pylist())
        new_user = model.user_index.known(users) < 0
        unknown = new_user | (model.item_index.known(items) < 0)
        if unknown.any() and not skip_unknown:
            row, n_rows = int(np.argmax(unknown)), int(unknown.sum())
            example = f"user {users[row]}" if new_user[row] else f"item {items[row]}"
            raise InputError(
                f"{path}: unknown {example} ({n_rows:,} {'row' if n_rows == 1 else 'rows'} with "
                "unknown ids). Pass --skip-unknown to skip them."
            )
        n_skipped += int(unknown.sum())
        yield predict_table(model, users[~unknown], items[~unknown], _LEVEL)
    if n_skipped:
        note(f"Skipped {n_skipped:,} pairs with unknown ids.")
