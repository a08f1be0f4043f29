"""``hcpf similar``."""

from typing import Annotated

import typer

from hcpf.cli import options
from hcpf.cli.inputs import load_model, parse_ids, read_names
from hcpf.cli.output import Field, percent, prepare_table, show_json, show_rows, write_table


def similar(
    model: options.ModelFolder,
    ids: Annotated[list[str], typer.Argument(metavar="ITEM", help="Ids of items.")],
    users: Annotated[
        bool, typer.Option("--users", help="Compare users instead: the ids are those of users.")
    ] = False,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="Neighbors per id.")] = 10,
    names: options.Names = None,
    output: options.TableFile = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """List the items that the same users have, most similar first.

    The similarity is the cosine of the rates over all users (with --users: over all items), from 0
    to 100%.
    """
    if output is not None:
        prepare_table(output, overwrite=overwrite)
    fitted = load_model(model)
    known = {} if users else read_names(names, fitted.items)
    if users:
        table = fitted.similar_users(parse_ids(fitted.user_index, ids), n)
    else:
        table = fitted.similar_items(parse_ids(fitted.item_index, ids), n)
    if known:
        from hcpf.model.tables import Table

        columns = table.columns()
        name = [known.get(str(one), "") for one in columns["id"]]
        table = Table(of=columns["of"], id=columns["id"], name=name, similarity=table.similarity)
    if output is not None:
        write_table(output, [table], overwrite=overwrite)
        return
    records = [row._asdict() for row in table]
    if as_json:
        show_json(records)
        return
    fields = [
        Field("of", "User" if users else "Item", str, right=False),
        Field("id", "Similar", str, right=False),
        *([Field("name", "Name", str, right=False)] if known else []),
        Field("similarity", "Similarity", percent),
    ]
    show_rows(fields, records)
