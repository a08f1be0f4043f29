"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_COLUMNS = "Columns"
_MODEL = "Model"


class Duplicates(StrEnum):
    """What to do with a pair that has more than one row."""

    error = "error"
    sum = "sum"
    mean = "mean"
    last = "last"


class TrainOn(StrEnum):
    """What the model is trained on."""

    full = "full"
    observed = "observed"
    binary = "binary"


class Per(StrEnum):
    """Who has a theta, and so a mean of one element, of their own."""

    user = "user"
    item = "item"
    both = "both"


class Ways(StrEnum):
    """All ways in which an element can be compared."""

    shared = "shared"
    user = "user"
    item = "item"
    both = "both"


class By(StrEnum):
    """What recommendations are ranked by."""

    consensus = "consensus"
    probability = "probability"
    response = "response"
    expected = "expected"


DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet or Arrow files, or globs in quotes; or the word [b]retail[/b], "
        "the data set that comes with hcpf.",
        show_default=False,
    ),
]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that [b]hcpf fit[/b] wrote.")
]

User = Annotated[
    str | None,
    typer.Option(
        "--user", help="Column of the users: its name, or its place from 0. Guessed if left out.",
        rich_help_panel=_COLUMNS,
    ),
]  # fmt: skip
Item = Annotated[
    str | None,
    typer.Option("--item", help="Column of the items.", rich_help_panel=_COLUMNS),
]
Response = Annotated[
    str | None,
    typer.Option(
        "--response", rich_help_panel=_COLUMNS,
        help="Column of the values; [b]none[/b] counts every row as 1. Of retail: spend, "
        "quantity or invoices.",
    ),
]  # fmt: skip
OnDuplicates = Annotated[
    Duplicates,
    typer.Option(
        "--duplicates", help="What to do with a pair that has more than one row.",
        rich_help_panel=_COLUMNS,
    ),
]  # fmt: skip
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", rich_help_panel=_COLUMNS, show_default=False,
        help="Whether the first line of text files names the columns. Guessed if left out.",
    ),
]  # fmt: skip
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="Of text files. Guessed if left out.",
                 rich_help_panel=_COLUMNS),
]  # fmt: skip

ElementName = Annotated[
    str,
    typer.Option(
        "--element", "-e", rich_help_panel=_MODEL,
        help="What a value is made of: auto, gamma, inverse_gaussian, normal, poisson, binomial, "
        "... or with first parameters, as gamma:2,0.05.",
    ),
]  # fmt: skip
Once = Annotated[
    bool,
    typer.Option(
        "--once", rich_help_panel=_MODEL,
        help="An observed value is one element, however large the rate of its pair: for ratings, "
        "say. Left out: a sum of elements with --element, else as the "
        "data suggest.",
    ),
]  # fmt: skip
PerWhat = Annotated[
    Per | None,
    typer.Option(
        "--per", rich_help_panel=_MODEL, show_default=False,
        help="Whether each user, each item or both have a mean of one element of their own: what "
        "a customer usually spends, what a product usually costs. Left out: one mean for all with "
        "--element, else as the data suggest.",
    ),
]  # fmt: skip
Components = Annotated[
    int,
    typer.Option("--components", "-K", min=1, metavar="N", help="Number of components.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
Fits = Annotated[
    int,
    typer.Option("--fits", min=1, metavar="N", help="Fits from different seeds, averaged.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
OnWhat = Annotated[
    TrainOn,
    typer.Option(
        "--train-on", rich_help_panel=_MODEL,
        help="All pairs, missing ones included; observed entries only; or only which pairs are "
        "observed.",
    ),
]  # fmt: skip
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same result.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
MaxIter = Annotated[
    int,
    typer.Option("--max-iter", min=1, metavar="N", help="The most passes over the data.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
Tolerance = Annotated[
    float,
    typer.Option(
        "--tol", min=0.0, metavar="SHARE", rich_help_panel=_MODEL,
        help="Stop when a pass changes the bound by less than this share; 0 never does.",
    ),
]  # fmt: skip
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, metavar="N",
        help="Threads; all cores if left out. The result is the same.",
        rich_help_panel=_MODEL,
    ),
]  # fmt: skip

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Folder to go on from: the same command, stopped and started again, takes up where "
        "it was.",
    ),
]
Names = Annotated[
    str | None, typer.Option("--names", help="File of item ids and their names; or retail.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout, and nothing else.")]
