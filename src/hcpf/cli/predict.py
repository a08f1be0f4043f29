"""``hcpf predict``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.files import prepare_table, write_table
from hcpf.cli.models import load_model, parse_ids, unknown_ids
from hcpf.cli.recommend import EXPECTED, PROBABILITY, RESPONSE
from hcpf.cli.screen import Field, note, show_json, show_rows
from hcpf.cli.sources import Source
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.estimator import HCPF

_STEP = 1 << 20  # pairs at once
LEVEL = 0.9

FIELDS = (
    Field("user", "user", str, right=False),
    Field("item", "item", str, right=False),
    PROBABILITY,
    RESPONSE,
    EXPECTED,
    Field("low", f"{LEVEL:.0%} from"),
    Field("high", "to"),
)


def predict(
    model: options.ModelFolder,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", help="Id of a user; may be repeated.", show_default=False),
    ] = None,
    item: Annotated[
        list[str] | None,
        typer.Option("--item", help="Id of an item; may be repeated.", show_default=False),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", help="File with a column of users and one of items."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All users and all items; needs -o.", show_default=False)
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out pairs of --pairs with unknown ids.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File: .parquet, .csv or .tsv.")
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Predict pairs: whether they will be observed, and with what value.

    For each pair the probability that it is observed; the expected value if it is, with a 90%
    interval (low, high); and the expected total, which counts unobserved pairs as 0. Several users
    and items are all combined.
    """
    _check_usage(user, item, pairs, everything, output)
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    fitted = load_model(model)
    total = 0
    if everything:
        wanted = _products(fitted.users_, fitted.items_)
        total = len(fitted.users_) * len(fitted.items_)
    elif pairs is not None:
        wanted = _pairs_in(fitted, pairs, skip_unknown)
    else:
        wanted = _products(
            parse_ids("user", fitted.users_, user or []),
            parse_ids("item", fitted.items_, item or []),
        )
    tables = (predictions(fitted, *part) for part in wanted)
    if output is not None:
        rows = write_table(output, tables, total)
        if as_json:
            show_json({"path": str(output), "rows": rows})
        return
    records = [record for table in tables for record in table.to_pylist()]
    show_json(records) if as_json else show_rows(FIELDS, records)


def _check_usage(user: Any, item: Any, pairs: Any, everything: bool, output: Any) -> None:
    ways = [bool(user or item), pairs is not None, everything]
    if sum(ways) != 1 or bool(user) != bool(item):
        raise typer.BadParameter("give --user and --item, or --pairs FILE, or --all.")
    if everything and output is None:
        raise typer.BadParameter("--all needs a file to write to: -o everything.parquet.")


def _products(users: Any, items: Any) -> Iterator[tuple[Any, Any]]:
    """All pairs, a few users at a time."""
    import numpy as np

    step = max(1, _STEP // len(items))
    for first in range(0, len(users), step):
        some = users[first : first + step]
        yield np.repeat(some, len(items)), np.tile(items, len(some))


def _pairs_in(model: "HCPF", path: str, skip_unknown: bool) -> Iterator[tuple[Any, Any]]:
    import numpy as np

    from hcpf.data.readers import read_pairs

    roles, header = Source([path], response="none").roles(quiet=True)
    note(f"user = {roles.user}, item = {roles.item}")
    skipped = 0
    for first, second in read_pairs(Path(path), roles.user, roles.item, header=header):
        users = parse_ids("user", model.users_, first)
        items = parse_ids("item", model.items_, second)
        new_user = unknown_ids(model.users_, users)
        strange = new_user | unknown_ids(model.items_, items)
        if strange.any() and not skip_unknown:
            place, number = int(np.argmax(strange)), int(strange.sum())
            one = f"user {users[place]}" if new_user[place] else f"item {items[place]}"
            raise InputError(
                f"{path}: the model does not know {one} ({number} such "
                f"{'rows' if number > 1 else 'row'}). Pass --skip-unknown to leave these out."
            )
        skipped += int(strange.sum())
        yield users[~strange], items[~strange]
    if skipped:
        note(f"Left out {skipped:,} pairs with ids that the model does not know.")


def predictions(model: "HCPF", users: Any, items: Any) -> Any:
    """Everything about some pairs, as an Arrow table."""
    import pyarrow as pa

    from hcpf.distributions.intervals import value_intervals

    predictive = model.predictive(users, items)
    low, high = value_intervals(predictive, LEVEL)
    ids = [ids if ids.dtype.kind != "O" else [str(one) for one in ids] for ids in (users, items)]
    return pa.table(
        {
            "user": ids[0],
            "item": ids[1],
            "probability": predictive.prob_observed,
            "response": predictive.mean_observed,
            "expected": predictive.mean,
            "low": low,
            "high": high,
        }
    )
