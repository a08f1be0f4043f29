"""``hcpf explain``."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.inputs import load_model, parse_ids, read_names
from hcpf.cli.output import (
    Field,
    for_terminal,
    note_period,
    number,
    percent,
    show_facts,
    show_json,
    show_rows,
)

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


def explain(
    model: options.ModelFolder,
    user: Annotated[str, typer.Argument(metavar="USER", help="Id of a user.")],
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Id of an item.")],
    top: Annotated[
        int, typer.Option("--top", min=1, help="Number of the user's own items to list.")
    ] = 10,
    names: options.Names = None,
    as_json: options.Json = False,
) -> None:
    """Explain a prediction by the user's own items.

    Shares are parts of the rate of the pair: what each of these items contributes, and "(prior)",
    what an average user would have.
    """
    fitted = load_model(model)
    known = read_names(names, fitted.items)
    pair = (
        parse_ids(fitted.user_index, [user])[0],
        parse_ids(fitted.item_index, [item])[0],
    )
    about = _describe(fitted, pair, known, top)
    if as_json:
        show_json(about)
        return
    _show(about, bool(known))
    note_period(fitted)


def _describe(
    model: "FittedModel", pair: tuple[Any, Any], names: dict[str, str], top: int
) -> dict[str, Any]:
    from hcpf.model.predict import predict_table

    sources = model.explain(*pair)
    predicted = next(iter(predict_table(model, [pair[0]], [pair[1]])))._asdict()
    rows = [row._asdict() for row in sources]
    shown = rows[: min(top, len(rows) - 1)] + rows[-1:]
    return {
        **predicted,
        "name": names.get(str(pair[1])),
        "sources": [{**row, "name": names.get(str(row["source"]))} for row in shown],
        "further_items": len(rows) - len(shown),
        "further_share": sum(row["share"] for row in rows[len(shown) - 1 : -1]),
    }


def _show(about: dict[str, Any], named: bool) -> None:
    item = f"{about['item']} ({about['name']})" if about["name"] else about["item"]
    has_it = any(row["source"] == about["item"] for row in about["sources"])
    if sys.stdout.isatty():
        show_facts(
            {
                "probability": percent(about["probability"]),
                "value if observed": f"{number(about['value'])} (90% from {number(about['low'])} "
                f"to {number(about['high'])})",
                "expected value": about["expected_value"],
                "entries user / item": for_terminal(about)["entries"],
                **({"observed": "yes: the pair's own entry is below, too"} if has_it else {}),
            },
            f"User {about['user']}, item {item}",
        )
    fields = [
        Field("source", "Own item", str, right=False),
        *([Field("name", "Name", lambda text: text or "–", right=False)] if named else []),
        Field("share", "Share of the rate", percent),
    ]
    show_rows(fields, about["sources"])
    if about["further_items"] and sys.stdout.isatty():
        typer.echo(
            f"  and {about['further_items']:,} further own items: {percent(about['further_share'])}"
        )
