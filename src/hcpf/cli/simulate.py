"""``hcpf simulate``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.files import note_written, prepare_table
from hcpf.cli.screen import percent, show_facts, show_json
from hcpf.errors import InputError


def simulate(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .parquet, .csv or .tsv.", show_default=False),
    ],
    users: Annotated[int | None, typer.Argument(metavar="USERS", help="Number of users.", min=1)] = None,
    items: Annotated[int | None, typer.Argument(metavar="ITEMS", help="Number of items.", min=1)] = None,
    element: Annotated[
        str | None,
        typer.Option("--element", "-e", help="Element with all its parameters, for example gamma:2,0.05."),
    ] = None,
    hurdle: Annotated[
        bool, typer.Option("--hurdle", help="Draw each value as a single element, not a sum.")
    ] = False,
    density: Annotated[
        float | None, typer.Option("--density", help="Share of observed pairs, between 0 and 1.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", help="Data set of the paper to imitate, for example netflix."),
    ] = None,
    scale: Annotated[
        float, typer.Option("--scale", help="Factor of the numbers of users and items of --like.")
    ] = 1.0,
    components: options.Components = 10,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Draw data from the model and write them with the columns user, item and response."""
    if (users is None) != (items is None) or (users is None and like is None):
        raise typer.BadParameter("Pass USERS and ITEMS, or --like with a data set of the paper.")
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
