"""``hcpf components``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.inputs import load_model, read_names
from hcpf.cli.output import Field, note, percent, prepare_table, show_json, show_rows, write_table

if TYPE_CHECKING:
    from hcpf.model.components import Components
    from hcpf.model.fitted import FittedModel

_IN_A_LINE = 5  # items of a component at a terminal
_SMALL = 1e-3  # share of the expected entries below which components are summed up


def components(
    model: options.ModelFolder,
    top: Annotated[
        int, typer.Option("--top", min=1, help="Items and users per component, in files and JSON.")
    ] = 20,
    names: options.Names = None,
    output: options.TableFile = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """List the components of a model: what they account for, their items and their users.

    Items are the distinctive ones: a large share of this component, a small one of the others.
    The components are those of the first fit.
    """
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    from hcpf.model.components import summarize_components

    fitted = load_model(model)
    known = read_names(names, fitted.items)
    found = summarize_components(fitted)
    records = _records(fitted, found, known, top)
    if output is not None:
        from hcpf.model.tables import Table

        write_table(output, [Table.from_records(records)], overwrite=overwrite)
    elif as_json:
        show_json([_component(found, k, records) for k in range(len(found))])
    else:
        _show(fitted, found, known)


def _records(
    model: "FittedModel", found: "Components", names: dict[str, str], top: int
) -> list[dict[str, Any]]:
    """Return one row per component and item, then per component and user."""
    rows: list[dict[str, Any]] = []
    for k in range(len(found)):
        for rank, item in enumerate(found.distinctive(k, top).tolist(), start=1):
            identity, share = model.items[item], float(found.item_share[k, item])
            name = names.get(str(identity), "")
            rows.append(_row(k, "item", rank, identity, name, share, float(found.lift[k, item])))
        largest = (-found.user_share[k]).argsort(kind="stable")[:top]
        for rank, user in enumerate(largest.tolist(), start=1):
            share = float(found.user_share[k, user])
            rows.append(_row(k, "user", rank, model.users[user], "", share, None))
    return rows


def _row(
    component: int, axis: str, rank: int, identity: Any, name: str, share: float, lift: float | None
) -> dict[str, Any]:
    return {
        "component": component + 1, "axis": axis, "rank": rank, "id": identity, "name": name,
        "share": share, "lift": lift,
    }  # fmt: skip


def _component(found: "Components", k: int, records: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [row for row in records if row["component"] == k + 1]
    kept = ("id", "name", "share", "lift")
    return {
        "component": k + 1,
        "share": float(found.share[k]),
        "value_share": None if found.value_share is None else float(found.value_share[k]),
        **{
            f"{axis}s": [{name: row[name] for name in kept} for row in rows if row["axis"] == axis]
            for axis in ("item", "user")
        },
    }


def _show(model: "FittedModel", found: "Components", names: dict[str, str]) -> None:
    from hcpf.data.names import item_labels

    large = [k for k in range(len(found)) if found.share[k] >= _SMALL]
    records = [
        {
            "component": k + 1,
            "share": found.share[k],
            "value_share": None if found.value_share is None else found.value_share[k],
            "items": ", ".join(item_labels(model.items[found.distinctive(k, _IN_A_LINE)], names)),
        }
        for k in large
    ]
    valued = [Field("value_share", "Share of values", percent)] * (found.value_share is not None)
    show_rows(
        [
            Field("component", "Component"),
            Field("share", "Share of entries", percent),
            *valued,
            Field("items", "Distinctive items", str, right=False),
        ],
        records,
    )
    if len(large) < len(found):
        note(f"{len(found) - len(large)} further components account for less than 0.1% each.")
