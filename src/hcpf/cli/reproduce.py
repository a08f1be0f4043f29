"""``hcpf reproduce``: the paper's figure and tables."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.errors import INCOMPLETE
from hcpf.cli.output import note, prepare_file, show_json, write_file
from hcpf.errors import InputError

commands = typer.Typer(help="Compute the paper's figure and tables.", no_args_is_help=True)

Image = Annotated[Path, typer.Option("--output", "-o", help="Image to write: .png, .pdf or .svg.")]
Data = Annotated[
    Path, typer.Option("--data", "-d", help="Folder of Parquet files of user, item, value.")
]
Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for results and tables.")]
Components = Annotated[int, typer.Option("--components", "-K", help="Number of components.")]
Only = Annotated[list[str] | None, typer.Option("--only", help="A data set; may be repeated.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the split and of the fits.")]


@commands.command(
    "figure1",
    epilog=options.examples(
        "hcpf reproduce figure1", "hcpf reproduce figure1 -o figures/figure1.svg --json"
    ),
)
def figure1(output: Image = Path("figure1.png"), as_json: options.Json = False) -> None:
    """Figure 1: an observed value's distribution as the matrix gets sparser.

    An existing file is overwritten.
    """
    _draw_figure1(output)
    if as_json:
        show_json({"figure1": str(output)})


def _draw_figure1(output: Path) -> None:
    from hcpf.experiments import figure1

    image_format = output.suffix.removeprefix(".").lower()
    if image_format not in figure1.FORMATS:
        endings = ", ".join(f".{known}" for known in figure1.FORMATS)
        raise InputError(f"{output}: unknown image format. End its name in {endings}.")
    prepare_file(output)
    write_file(output, figure1.render(figure1.draw(), image_format))


def _reproduce_tables(
    names: tuple[str, ...],
    data: Path,
    output: Path,
    components: int,
    only: list[str] | None,
    seed: int,
    as_json: bool,
) -> None:
    """Compute what is missing in output/results.csv, then write the tables from all of it."""
    from dataclasses import asdict

    from hcpf.experiments import cells, claims, tables

    sets = cells.find_sets(data)
    unknown = [name for name in only or () if name not in sets]
    if unknown:
        raise InputError(f"{unknown[0]} is not among the data sets found: {', '.join(sets)}.")
    sets = {name: path for name, path in sets.items() if not only or name in only}
    settings = cells.Settings(n_components=components, random_state=seed)
    found = cells.run(sets, output / "results.csv", settings)
    chosen = [cell for cell in found if cell.dataset in sets and cell.n_components == components]
    for name in names:
        target = output / f"{name}-K{components}.md"
        prepare_file(target)
        text = claims.render(chosen) if name == "claims" else tables.render(name, chosen)
        if not as_json:
            typer.echo(text)
        write_file(target, text.encode())
    if as_json:
        show_json([asdict(cell) for cell in chosen])
    _report_failures(chosen)


def _report_failures(chosen: list[Any]) -> None:
    failed = [cell for cell in chosen if cell.error]
    for cell in failed:
        note(f"hcpf: failed: {cell.dataset}, {cell.model} on {cell.trained_on}: {cell.error}")
    if failed:
        raise typer.Exit(INCOMPLETE)


def _add_command(name: str, tables: tuple[str, ...], about: str, *, figure: bool = False) -> None:
    def command(
        data: Data,
        output: Folder = Path("reproduction"),
        components: Components = 50,
        only: Only = None,
        seed: Seed = 0,
        as_json: options.Json = False,
    ) -> None:
        if figure:
            _draw_figure1(output / "figure1.png")
        _reproduce_tables(tables, data, output, components, only, seed, as_json)

    lines = (
        f"hcpf reproduce {name} --data sets",
        f"hcpf reproduce {name} --data sets -K 20 --only msweb -o results",
    )
    text = f"{about} Rerun the same command to resume an interrupted run."
    commands.command(name, help=text, epilog=options.examples(*lines))(command)


_add_command("table3", ("table3",), "Table 3: test log-likelihood of the full matrix.")
_add_command("table4", ("table4",), "Table 4: test log-likelihood of observed entries.")
_add_command("table5", ("table5",), "Table 5: test AUC.")
_add_command(
    "all", ("table3", "table4", "table5", "claims"), "Tables 3, 4 and 5, and Figure 1.", figure=True
)
