"""Options shared by several commands."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from hcpf import _defaults

Duplicates = Literal["auto", "error", "sum", "mean", "last"]
Returns = Literal["auto", "net", "drop", "keep", "error"]

_column = partial(typer.Option, metavar="COLUMN", rich_help_panel="Columns")
_rows = partial(typer.Option, rich_help_panel="Rows")
_file = partial(typer.Option, rich_help_panel="Files")
_model = model_option = partial(typer.Option, rich_help_panel="Model")

DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, JSON lines, Parquet, Arrow, Excel or OpenDocument files, a database, "
        "quoted globs, an AnnData file (.h5ad), or a folder written by [b]hcpf shard[/b]; or the "
        "word [b]retail[/b], the data set that comes with hcpf.",
        show_default=False,
    ),
]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Folder written by [b]hcpf fit[/b].")
]

User = Annotated[
    str | None,
    _column(
        "--user", help="Column of the users: its name, or its position from 0. Default: detected."
    ),
]
Item = Annotated[str | None, _column("--item", help="Column of the items. Default: detected.")]
Value = Annotated[
    str | None,
    _column(
        "--value",
        help="Column of the values, or a product such as 'Quantity*UnitPrice'; [b]none[/b] counts "
        "every row as 1. For retail: spend, quantity or invoices. Default: detected.",
    ),
]
OnDuplicates = Annotated[
    Duplicates,
    _rows(
        "--duplicates",
        metavar="RULE",
        help="How to merge the rows of a repeated pair: sum, mean, last, or error; auto sums them "
        "if a column has dates, times or invoices, and otherwise they are an error.",
    ),
]
OnReturns = Annotated[
    Returns,
    _rows(
        "--returns",
        metavar="RULE",
        help="Negative values: net subtracts them from the pair, drop drops these rows, and both "
        "leave out pairs at or below 0; keep keeps them; error refuses them, as auto does in "
        "amounts and counts.",
    ),
]
DropBlankIds = Annotated[
    bool, _rows("--drop-blank-ids", help="Drop rows without a user or without an item.")
]
DropBlankValues = Annotated[
    bool,
    _rows(
        "--drop-blank-values",
        help="Drop rows without a value: blank, or a text such as n/a or NULL.",
    ),
]
ExcludeItems = Annotated[
    list[str],
    _rows(
        "--exclude-items",
        metavar="FILE|PATTERN",
        show_default=False,
        help="Items to leave out, such as postage: an id, a pattern such as 'BANK*', or a file "
        "with one per line; may be repeated.",
    ),
]
Decimal = Annotated[
    str | None,
    _file(
        "--decimal",
        metavar=".|,",
        help="Decimal mark of amounts in text. Default: decided by all values of the column.",
    ),
]
Encoding = Annotated[
    str | None,
    _file(
        "--encoding",
        metavar="NAME",
        help="Encoding of text files, for example cp1252. Default: detected.",
    ),
]
Delimiter = Annotated[
    str | None,
    _file("--delimiter", metavar="CHARACTER", help="Delimiter of text files. Default: detected."),
]
Header = Annotated[
    bool | None,
    _file(
        "--header/--no-header",
        show_default=False,
        help="Whether the first line of text files and sheets names the columns. Default: "
        "detected.",
    ),
]
Sheet = Annotated[
    str | None,
    _file("--sheet", metavar="NAME", help="Sheet of a spreadsheet. Default: the first table."),
]
Sql = Annotated[
    str | None,
    _file(
        "--sql",
        metavar="QUERY",
        help="Query of an SQLite or DuckDB database. Default: its only table.",
    ),
]
Layer = Annotated[
    str | None,
    _file("--layer", metavar="NAME", help="Layer of an .h5ad file. Default: its X."),
]
UseRaw = Annotated[bool, _file("--use-raw", help="Read raw of an .h5ad file instead of its X.")]

ElementName = Annotated[
    str,
    _model(
        "--element",
        "-e",
        metavar="ELEMENT",
        help="Distribution of one element: auto, quick (by the values alone), gamma, "
        "inverse_gaussian, normal, poisson, binomial, ..., or presence, which ignores the values. "
        "Initial parameters may follow, for example gamma:2,0.05.",
    ),
]
Hurdle = Annotated[
    bool,
    _model(
        "--hurdle",
        help="Model each value as a single element instead of a sum; use it for ratings. Requires "
        "--element; auto compares both.",
    ),
]
VaryBy = Annotated[
    Literal["user", "item", "both"] | None,
    _model(
        "--vary-by",
        show_default=False,
        help="Estimate a mean per user, per item or both (partial pooling). Requires --element; "
        "auto compares all four. Default: a shared mean.",
    ),
]
Quick = Annotated[
    bool,
    _model(
        "--quick",
        help="A first look: one fit, unless --fits is given, with the most likely element of the "
        "values alone, unless --element is given, and no short fits.",
    ),
]
Recipe = Annotated[
    Literal["default", "paper"],
    _model(
        "--recipe",
        help="paper: the paper's priors, element fixed at maximum likelihood, K = 160, one fit by "
        "its Algorithm 1; other options then change what they name.",
    ),
]
SolverName = Annotated[
    Literal["algorithm1", "cavi"] | None,
    _model(
        "--solver",
        show_default=False,
        help="The paper's Algorithm 1, or coordinate ascent without minibatches and momentum. "
        "Default: algorithm1 with --recipe paper, otherwise minibatches and coordinate ascent.",
    ),
]
Components = Annotated[
    int, _model("--components", "-K", min=1, metavar="N", help="Number of components.")
]
Fits = Annotated[
    int, _model("--fits", min=1, metavar="N", help="Number of fits whose rates are averaged.")
]
TrainOn = Annotated[
    Literal["full", "observed"],
    _model(
        "--train-on",
        help="Pairs to train on: full (missing pairs are data) or observed (they are not).",
    ),
]
Seed = Annotated[
    int,
    _model("--seed", min=0, metavar="N", help="Random seed; the same seed gives the same result."),
]
MaxIter = Annotated[
    int, _model("--max-iter", min=1, metavar="N", help="Maximum number of passes over the data.")
]
Tolerance = Annotated[
    float | None,
    _model(
        "--tol",
        min=0.0,
        metavar="SHARE",
        show_default=False,
        help="Stop when the relative ELBO change per pass falls below this value; 0 disables early "
        f"stopping. Default: {_defaults.TOL}; 0 with Algorithm 1 of --recipe paper.",
    ),
]
Threads = Annotated[
    int | None,
    _model(
        "--threads",
        min=1,
        metavar="N",
        help="Number of threads; it does not change the result. Default: all cores.",
    ),
]

UserExposure = Annotated[
    str | None,
    _column(
        "--user-exposure",
        metavar="FILE:COLUMN",
        help="Known multiplier of the rates of each user, such as days observed: a column of a "
        "table that has the ids of the users, too. Default: 1.",
    ),
]
ItemExposure = Annotated[
    str | None,
    _column(
        "--item-exposure",
        metavar="FILE:COLUMN",
        help="Known multiplier of the rates of each item, such as days on sale. Default: 1.",
    ),
]
PairExposure = Annotated[
    float | None,
    typer.Option(
        "--exposure",
        metavar="X",
        help="Exposure of all pairs predicted. Default: that of their user and item in the fit.",
    ),
]

Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="PATH",
        help="Checkpoint folder or URL (s3://bucket/folder). Rerun the same command to resume an "
        "interrupted fit.",
    ),
]
EngineName = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--engine", help="Where training runs: in this process (local), or on a Ray cluster (ray)."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, metavar="N", help="Workers of --engine ray. Default: one per node."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="Ray cluster of --engine ray; auto takes the one of this machine. Default: start one "
        "on this machine.",
    ),
]
TestShare = Annotated[
    float, typer.Option("--test", help="Share of the observed entries to test on.")
]
Top = Annotated[int, typer.Option("--top", min=1, help="Length of the ranked lists.")]
Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        metavar="FILE",
        help="Table of item ids and names, for example the data, perhaps as FILE:COLUMN; or the "
        "word [b]retail[/b].",
    ),
]
TableFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write: .parquet, .csv, .tsv or .xlsx."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout and nothing else.")]


def examples(*lines: str) -> str:
    """Return examples as the text below the help of a command."""
    return "\n\n".join(["[b]Examples[/b]", *(f"  $ {line}" for line in lines)])
