"""``hcpf simulate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.output import (
    element_text,
    percent,
    prepare_table,
    show_facts,
    show_json,
    size,
    write_table,
)
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.data.interactions import Interactions


def simulate(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to write: .parquet, .csv or .tsv.", show_default=False
        ),
    ],
    users: Annotated[
        int | None, typer.Argument(metavar="USERS", help="Number of users.", min=1)
    ] = None,
    items: Annotated[
        int | None, typer.Argument(metavar="ITEMS", help="Number of items.", min=1)
    ] = None,
    element: Annotated[
        str | None,
        typer.Option(
            "--element",
            "-e",
            metavar="ELEMENT",
            help="Element with all its parameters, for example gamma:2,0.05.",
        ),
    ] = None,
    hurdle: Annotated[
        bool, typer.Option("--hurdle", help="Draw each value as a single element, not a sum.")
    ] = False,
    density: Annotated[
        float | None, typer.Option("--density", help="Share of observed pairs, between 0 and 1.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like", metavar="NAME", help="Data set of the paper to imitate, for example netflix."
        ),
    ] = None,
    scale: Annotated[
        float, typer.Option("--scale", help="Factor of the numbers of users and items of --like.")
    ] = 1.0,
    components: options.Components = 10,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Draw data from the model and write them with the columns user, item and value."""
    if (users is None) != (items is None) or (users is None and like is None):
        raise typer.BadParameter("Pass USERS and ITEMS, or --like with a data set of the paper.")
    prepare_table(output, overwrite=overwrite)
    from hcpf.core.value_model import ValueModel
    from hcpf.elements.registry import parse_element
    from hcpf.model.inspect import describe_value_model
    from hcpf.simulation import simulate as draw

    chosen = None if element is None else parse_element(element)
    if isinstance(chosen, str):
        raise InputError(f"--element {element}: pass all parameters, for example gamma:2,0.05.")
    drawn = draw(
        users,
        items,
        n_components=components,
        element=chosen,
        hurdle=hurdle,
        density="auto" if density is None else density,
        like=like,
        scale=scale,
        random_state=seed,
    )
    _write(drawn.interactions, output, overwrite)
    about = describe_value_model(ValueModel(drawn.element, hurdle=hurdle))
    _show(drawn.interactions, about, output, as_json)


def _write(data: "Interactions", output: Path, overwrite: bool) -> None:
    import numpy as np

    from hcpf.model.tables import Table

    matrix = data.matrix
    users = np.repeat(data.users, np.diff(matrix.indptr))
    entries = Table(user=users, item=data.items[matrix.indices], value=matrix.data)
    write_table(output, [entries], overwrite=overwrite)


def _show(data: "Interactions", value_model: dict[str, Any], output: Path, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "path": str(output),
                "users": data.n_users,
                "items": data.n_items,
                "observed": data.n_observed,
                "density": data.density,
                "element": value_model["element"],
                "hurdle": value_model["hurdle"],
            }
        )
        return
    show_facts(
        {
            "data": size(data.n_users, data.n_items),
            "observed": f"{data.n_observed:,} ({percent(data.density)} of all pairs)",
            "element": element_text(value_model),
        },
        f"Data {output}",
    )
