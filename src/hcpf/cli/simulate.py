"""``hcpf simulate``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.elements import describe_element, parse_element
from hcpf.cli.files import prepare_table, write_table
from hcpf.cli.screen import percent, show_facts, show_json
from hcpf.errors import InputError


def simulate(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File: .parquet, .csv or .tsv.", show_default=False),
    ],
    rows: Annotated[int | None, typer.Argument(metavar="ROWS", help="Users.", min=1)] = None,
    cols: Annotated[int | None, typer.Argument(metavar="COLS", help="Items.", min=1)] = None,
    element: Annotated[
        str | None,
        typer.Option("--element", "-e", help="With all its parameters, as gamma:2,0.05."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="A value is one element, not a sum (with --element).")
    ] = False,
    density: Annotated[
        float | None, typer.Option("--density", help="Share of pairs that are observed.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", help="One of the paper's data sets, such as netflix or dchoose."),
    ] = None,
    scale: Annotated[
        float, typer.Option("--scale", help="Multiplies rows and columns of --like.")
    ] = 1.0,
    components: options.Components = 10,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Draw data from the model and write them as user, item, response."""
    if (rows is None) != (cols is None) or (rows is None and like is None):
        raise typer.BadParameter("give ROWS and COLS, or --like a data set of the paper.")
    prepare_table(output, overwrite=overwrite)
    chosen: Any = None if element is None else parse_element(element, once=once)
    if isinstance(chosen, str):
        raise InputError(f"--element {element}: give its parameters too, as gamma:2,0.05.")
    from hcpf.simulation import simulate as draw

    drawn = draw(
        rows,
        cols,
        n_components=components,
        element=chosen,
        density="auto" if density is None else density,
        like=like,
        scale=scale,
        random_state=seed,
    )
    write_table(output, [_as_table(drawn.interactions)])
    _show(drawn, output, as_json)


def _show(drawn: Any, output: Path, as_json: bool) -> None:
    data = drawn.interactions
    facts = {
        "path": str(output),
        "users": data.n_users,
        "items": data.n_items,
        "observed": data.n_observed,
        "density": data.density,
        "element": describe_element(drawn.element),
    }
    if as_json:
        show_json(facts)
        return
    show_facts(
        {
            "data": f"{data.n_users:,} users x {data.n_items:,} items",
            "observed": f"{data.n_observed:,} ({percent(data.density)} of all pairs)",
            "element": repr(drawn.element),
        },
        f"Data in {output}",
    )


def _as_table(data: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    matrix = data.matrix
    users = np.repeat(data.users, np.diff(matrix.indptr))
    return pa.table({"user": users, "item": data.items[matrix.indices], "response": matrix.data})
