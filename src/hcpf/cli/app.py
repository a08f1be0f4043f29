"""The application: commands, their examples, and the options of all of them."""

import logging
from collections.abc import Callable
from typing import Annotated, Any

import typer

from hcpf.cli import (
    compare,
    components,
    evaluate,
    explain,
    fit,
    info,
    options,
    predict,
    recommend,
    report,
    reproduce,
    shard,
    similar,
    simulate,
    update,
)
from hcpf.cli.errors import OneLineErrors, PlainCommand, name_options
from hcpf.cli.output import note

app = typer.Typer(
    name="hcpf",
    cls=OneLineErrors,
    help="Fit and use hierarchical compound Poisson factorization: which pairs are observed, and "
    "with what values.",
    epilog="Exit codes: 0 success, 1 an error in one line, 2 wrong usage or incomplete results, "
    "130 Ctrl-C. Results go to stdout (a table, tab-separated rows in a pipe, or --json), "
    "everything else to stderr.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

_COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "fit": (
        fit.fit,
        (
            "hcpf fit retail -o retail-model -K 20",
            "hcpf fit 'sales-*.parquet' -o model --user customer --item sku --value spend",
            "hcpf fit ratings.csv -o model --element binomial --hurdle --vary-by item",
        ),
    ),
    "shard": (
        shard.shard,
        (
            "hcpf shard 'sales/*.parquet' -o shards --user customer --item sku --value spend",
            "hcpf shard new-customers.csv -o shards --append",
        ),
    ),
    "evaluate": (
        evaluate.evaluate,
        (
            "hcpf evaluate retail -K 20 --element gamma",
            "hcpf evaluate ratings.csv --json",
            "hcpf evaluate orders.csv --by-time 2011-10-01",
        ),
    ),
    "compare": (
        compare.compare,
        (
            "hcpf compare retail --quick",
            "hcpf compare ratings.csv -K 20 --only binomial --only poisson",
        ),
    ),
    "recommend": (
        recommend.recommend,
        (
            "hcpf recommend model 12347 12348 -n 5",
            "hcpf recommend model 12347 --by expected_value --names retail",
            "hcpf recommend model --basket 85123A=12.50 --basket 22423",
            "hcpf recommend model --all --details --names retail -o campaign.csv",
        ),
    ),
    "fold-in": (
        recommend.fold_in,
        (
            "hcpf fold-in model new-customers.csv",
            "hcpf fold-in model new-customers.csv --details -o lists.csv",
        ),
    ),
    "predict": (
        predict.predict,
        (
            "hcpf predict model --user 12347 --item 85123A",
            "hcpf predict model --pairs wanted.csv --json",
            "hcpf predict model --all -o everything.parquet",
        ),
    ),
    "explain": (
        explain.explain,
        ("hcpf explain model 12347 22720", "hcpf explain model 12347 22720 --names retail"),
    ),
    "similar": (
        similar.similar,
        ("hcpf similar model 22720 --names retail", "hcpf similar model 12347 --users -n 5"),
    ),
    "components": (
        components.components,
        (
            "hcpf components model --names retail",
            "hcpf components model --kind scaled --top 50 -o genes.csv",
        ),
    ),
    "update": (
        update.update,
        (
            "hcpf update model december.csv --duplicates sum",
            "hcpf update model december.csv --duplicates sum -o december-model",
        ),
    ),
    "simulate": (
        simulate.simulate,
        (
            "hcpf simulate 2000 500 -o sales.csv --element gamma:2,0.05 --density 0.02",
            "hcpf simulate --like netflix --scale 0.01 -o small.parquet",
        ),
    ),
    "info": (info.info, ("hcpf info retail", "hcpf info sales.csv", "hcpf info model --json")),
    "report": (
        report.report,
        (
            "hcpf report model -o report.html",
            "hcpf report model -o report.html --evaluation scores.json --names retail",
        ),
    ),
}


def _flowing(text: str) -> str:
    """Return paragraphs without the line breaks of the source, which typer would keep."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


for _name, (_command, _lines) in _COMMANDS.items():
    _register = app.command(
        _name,
        cls=PlainCommand,
        help=_flowing(_command.__doc__ or ""),
        epilog=options.examples(*_lines),
        no_args_is_help=True,
    )
    _register(_command)
app.add_typer(reproduce.commands, name="reproduce")


def _print_version(wanted: bool) -> None:
    if wanted:
        from hcpf._version import __version__

        typer.echo(f"hcpf {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log every step to stderr.")
    ] = False,
) -> None:
    logger = logging.getLogger("hcpf")
    for old in [handler for handler in logger.handlers if isinstance(handler, _Stderr)]:
        logger.removeHandler(old)
    logger.setLevel(logging.INFO if verbose else logging.NOTSET)
    logger.addHandler(_Stderr(logging.INFO if verbose else logging.WARNING))


class _Stderr(logging.Handler):
    """A handler for the current stderr, which tests replace; it names options, not arguments."""

    def emit(self, record: Any) -> None:
        note(name_options(self.format(record)))
