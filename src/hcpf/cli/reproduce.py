"""``hcpf reproduce``: the paper's figure, tables and claims."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hcpf.cli import options
from hcpf.cli.errors import INCOMPLETE, PlainCommand, PlainGroup
from hcpf.cli.output import note, prepare_file, show_json, write_file
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.experiments.cells import Cell
    from hcpf.experiments.running import Plan

commands = typer.Typer(
    cls=PlainGroup, help="Compute the paper's figure and tables.", no_args_is_help=True
)

Image = Annotated[Path, typer.Option("--output", "-o", help="Image to write: .png, .pdf or .svg.")]
Data = Annotated[
    Path,
    typer.Option(
        "--data", "-d", help="Folder of Parquet files with the columns user, item and value."
    ),
]
Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for results and pages.")]
RecipeName = Annotated[
    Literal["paper", "default"],
    typer.Option("--recipe", help="Settings of the paper, or the defaults of HCPF with one fit."),
]
Solver = Annotated[
    Literal["cavi", "algorithm1", "auto"] | None,
    typer.Option(
        "--solver",
        show_default=False,
        help="Exact coordinate ascent, the paper's Algorithm 1, or auto. Default: cavi for the "
        "paper's recipe, auto for the default one.",
    ),
]
Components = Annotated[
    int | None,
    typer.Option(
        "--components",
        "-K",
        min=1,
        show_default=False,
        help="Number of components. Default: 160 for the paper's recipe, else 50.",
    ),
]
Splits = Annotated[
    int, typer.Option("--splits", min=1, help="Number of random splits per data set.")
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        show_default=False,
        help="Time to spend, for example 30m or 1h; results that would take longer are listed with "
        "their cost. Default: no limit.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Data set to use; may be repeated. Default: all."),
]


@commands.command(
    "figure1",
    cls=PlainCommand,
    epilog=options.examples(
        "hcpf reproduce figure1", "hcpf reproduce figure1 -o figures/figure1.svg --json"
    ),
)
def figure1(output: Image = Path("figure1.png"), as_json: options.Json = False) -> None:
    """Draw Figure 1: the distribution of an observed value as the matrix gets sparser.

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


def _reproduce(
    pages: tuple[str, ...],
    data: Path,
    output: Path,
    recipe: str,
    solver: str | None,
    components: int | None,
    splits: int,
    budget: str | None,
    only: list[str] | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Compute the cells that output/results.jsonl lacks, then write pages from all of it."""
    from hcpf.experiments import cells, running

    found = cells.find_sets(data)
    unknown = [name for name in only or () if name not in found]
    if unknown:
        raise InputError(f"{unknown[0]} is not among the data sets found: {', '.join(found)}.")
    chosen = {name: path for name, path in found.items() if not only or name in only}
    is_paper = recipe == "paper"
    settings = cells.Recipe(
        recipe,
        solver or ("cavi" if is_paper else "auto"),
        components or (160 if is_paper else 50),
    )
    limit = float("inf") if budget is None else running.parse_duration(budget)
    results = output / running.RESULTS
    prepare_file(results)
    plan = running.make_plan(pages, chosen, results, settings, splits)
    _show_cost(plan, results)
    running.run(
        plan, results, budget=limit, n_threads=threads,
        finished=lambda cell: _show_cell(cell, plan, as_json),
    )  # fmt: skip
    _write_pages(pages, output)
    if as_json:
        show_json([cells.without_blocks(cell) for cell in plan.finished])
    _report_rest(plan)


def _show_cost(plan: "Plan", results: Path) -> None:
    """Say what the run computes and what it is expected to cost, before it begins."""
    left = plan.left
    fits = sum(not cell.is_baseline for cell in left)
    note(
        f"hcpf: {plan.recipe}; {len(plan.sets)} data sets, {len(plan.cells):,} results, {fits:,} "
        f"fits left, about {_span(plan.cost(left))} on this machine. Each result is saved in "
        f"{results} at once; run the same command to resume."
    )
    for name, (number, seconds) in plan.cost_by_set().items():
        note(
            f"hcpf:   {name}: {plan.n_entries[name]:,} entries, {number} results left, "
            f"{_span(seconds)}"
        )


def _show_cell(cell: "Cell", plan: "Plan", quiet: bool) -> None:
    """Print a finished cell: ours, the paper's figure, and the baselines with the same element."""
    from hcpf.experiments import tables

    if cell.is_baseline and not cell.error:
        return  # shown with the models
    text = tables.describe(cell, plan.done)
    (note if quiet else typer.echo)(text)


def _write_pages(names: tuple[str, ...], output: Path) -> None:
    from hcpf import plots
    from hcpf.experiments import pages, running
    from hcpf.experiments.cells import read_results

    done = read_results(output / running.RESULTS)
    for name, text in pages.render(names, done).items():
        prepare_file(output / name)
        write_file(output / name, text.encode())
    if "claims" in names:
        for name, chart in plots.paper_claims(done).items():
            prepare_file(output / name)
            write_file(output / name, chart.to_svg().encode())


def _report_rest(plan: "Plan") -> None:
    failed = [cell for cell in plan.finished if cell.error]
    for cell in failed:
        note(f"hcpf: failed: {cell.dataset}, {cell.model} on {cell.trained_on}: {cell.error}")
    for name, (number, seconds) in plan.cost_by_set().items():
        note(f"hcpf: not computed: {name}, {number} results, about {_span(seconds)}")
    if failed or plan.left:
        raise typer.Exit(INCOMPLETE)


def _span(seconds: float) -> str:
    """Return a time in words.

    >>> _span(40), _span(400), _span(9000)
    ('40 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _add_command(name: str, pages: tuple[str, ...], about: str, *, figure: bool = False) -> None:
    def command(
        data: Data,
        output: Folder = Path("reproduction"),
        recipe: RecipeName = "paper",
        solver: Solver = None,
        components: Components = None,
        splits: Splits = 3,
        budget: Budget = None,
        only: Only = None,
        threads: options.Threads = None,
        as_json: options.Json = False,
    ) -> None:
        if figure:
            _draw_figure1(output / "figure1.png")
        _reproduce(
            pages, data, output, recipe, solver, components, splits, budget, only, threads, as_json
        )

    lines = (
        f"hcpf reproduce {name} --data sets --budget 1h",
        f"hcpf reproduce {name} --data sets --recipe default -K 20 --only msweb -o results",
    )
    text = f"{about} Rerun the same command to resume an interrupted run."
    commands.command(name, cls=PlainCommand, help=text, epilog=options.examples(*lines))(command)


_add_command("table3", ("table3",), "Compute Table 3: test log-likelihood of the full matrix.")
_add_command("table4", ("table4",), "Compute Table 4: test log-likelihood of observed entries.")
_add_command("table5", ("table5",), "Compute Table 5: test AUC.")
_EVERYTHING = ("table3", "table4", "table5", "claims")
_add_command("claims", _EVERYTHING, "Compute Tables 3, 4 and 5 and the claims of section 5.")
_add_command("all", _EVERYTHING, "Compute Tables 3, 4 and 5, the claims and Figure 1.", figure=True)
