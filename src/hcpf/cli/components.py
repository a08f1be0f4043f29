"""``hcpf components``."""

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hcpf.cli import options
from hcpf.cli.inputs import load_model, read_names
from hcpf.cli.output import Field, note, percent, prepare_table, show_json, show_rows, write_table

if TYPE_CHECKING:
    from hcpf.model.components import Components, TopItems
    from hcpf.model.fitted import FittedModel

_IN_A_LINE = 5  # items of a component at a terminal
_SMALL = 1e-3  # share of the expected entries below which components are summed up


def components(
    model: options.ModelFolder,
    top: Annotated[
        int, typer.Option("--top", min=1, help="Items and users per component, in files and JSON.")
    ] = 20,
    kind: Annotated[
        Literal["relevance", "scaled", "share", "mean"],
        typer.Option(
            "--kind",
            metavar="SCORE",
            help="Score to rank items by: relevance (share and lift, for words and products), "
            "scaled (the factor times the activity parameter, for genes), or share or mean (the "
            "most frequent items).",
        ),
    ] = "relevance",
    weight: Annotated[
        float,
        typer.Option(
            "--weight",
            min=0.0,
            max=1.0,
            help="Weight of the share in relevance; 1 minus it is that of the lift.",
        ),
    ] = 0.4,
    names: options.Names = None,
    output: options.TableFile = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """List the components of a model: their shares, their items and their users.

    By default, the most distinctive items come first: their share of this component is large, and
    their share of the others is small. Components are those of the first fit, largest first. Their
    numbers, counted from 0, are the columns of the factors of that fit.
    """
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    from hcpf.model.components import rank_items, summarize_components

    fitted = load_model(model)
    known = read_names(names, fitted.items)
    found = summarize_components(fitted)
    best = rank_items(found, fitted.items, max(top, _IN_A_LINE), kind=kind, weight=weight)
    records = _records(fitted, found, best, known, top)
    if output is not None:
        from hcpf.model.tables import Table

        write_table(output, [Table.from_records(records)], overwrite=overwrite)
    elif as_json:
        show_json([_component(found, k, records) for k in range(len(found))])
    else:
        _show(found, best, known)


def _records(
    model: "FittedModel", found: "Components", best: "TopItems", names: dict[str, str], top: int
) -> list[dict[str, Any]]:
    """Return one row per component and item, then per component and user."""
    from hcpf.model.components import highest

    rows: list[dict[str, Any]] = []
    for k, component in enumerate(found.number.tolist()):
        for row in best.select((best.component == component) & (best.rank <= top)):
            rows.append({
                "component": component, "axis": "item", "rank": row.rank, "id": row.item,
                "name": names.get(str(row.item), ""), "score": row.score, "share": row.share,
                "lift": row.lift,
            })  # fmt: skip
        for rank, user in enumerate(highest(found.user_share[k], top), start=1):
            share = float(found.user_share[k, user])
            rows.append({
                "component": component, "axis": "user", "rank": rank, "id": model.users[user],
                "name": "", "score": share, "share": share, "lift": None,
            })  # fmt: skip
    return rows


def _component(found: "Components", k: int, records: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [row for row in records if row["component"] == found.number[k]]
    kept = ("id", "name", "score", "share", "lift")
    return {
        "component": int(found.number[k]),
        "share": float(found.share[k]),
        "value_share": None if found.value_share is None else float(found.value_share[k]),
        **{
            f"{axis}s": [{name: row[name] for name in kept} for row in rows if row["axis"] == axis]
            for axis in ("item", "user")
        },
    }


def _show(found: "Components", best: "TopItems", names: dict[str, str]) -> None:
    from hcpf.data.names import item_labels

    large = [k for k in range(len(found)) if found.share[k] >= _SMALL]
    records: dict[Any, dict[str, Any]] = {}
    for k in large:
        mine = best.of(found.number[k])[:_IN_A_LINE]
        items = ", ".join(item_labels(mine, names))
        value_share = None if found.value_share is None else found.value_share[k]
        row = {"component": found.number[k], "share": found.share[k], "value_share": value_share}
        key = tuple(mine.tolist()) if sys.stdout.isatty() else k  # unused ones are all alike
        records.setdefault(key, {**row, "items": items})
    valued = [Field("value_share", "Share of values", percent)] * (found.value_share is not None)
    show_rows(
        [
            Field("component", "Component"),
            Field("share", "Share of entries", percent),
            *valued,
            Field("items", "Items", str, right=False),
        ],
        records.values(),
    )
    if n_alike := len(large) - len(records):
        note(
            f"{n_alike} more have the same items as one of these: components that the data do not "
            "need are all alike."
        )
    if len(large) < len(found):
        note(f"{len(found) - len(large)} further components account for less than 0.1% each.")
