"""Options shared by several commands."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_COLUMNS = "Columns"
_MODEL = "Model"


class Duplicates(StrEnum):
    """How the rows of a repeated pair are merged."""

    error = "error"
    sum = "sum"
    mean = "mean"
    last = "last"


class TrainOn(StrEnum):
    """The pairs that the model is trained on."""

    full = "full"
    observed = "observed"


class VaryBy(StrEnum):
    """Whose mean of one element is estimated apart, partially pooled."""

    user = "user"
    item = "item"
    both = "both"


class MeanSharing(StrEnum):
    """Means to compare: a shared one, or one per user, per item or both."""

    shared = "shared"
    user = "user"
    item = "item"
    both = "both"


class By(StrEnum):
    """The score that recommendations are ranked by."""

    consensus = "consensus"
    probability = "probability"
    value = "value"
    expected_value = "expected_value"


DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet or Arrow files, or quoted globs; or the word [b]retail[/b], the "
        "data set that comes with hcpf.",
        show_default=False,
    ),
]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Folder written by [b]hcpf fit[/b].")
]

User = Annotated[
    str | None,
    typer.Option(
        "--user", rich_help_panel=_COLUMNS,
        help="Column of the users: its name, or its position from 0. Default: guessed.",
    ),
]  # fmt: skip
Item = Annotated[
    str | None,
    typer.Option("--item", help="Column of the items. Default: guessed.",
                 rich_help_panel=_COLUMNS),
]  # fmt: skip
Value = Annotated[
    str | None,
    typer.Option(
        "--value", rich_help_panel=_COLUMNS,
        help="Column of the values; [b]none[/b] counts every row as 1. For retail: spend, quantity "
        "or invoices. Default: guessed.",
    ),
]  # fmt: skip
OnDuplicates = Annotated[
    Duplicates,
    typer.Option("--duplicates", help="How to merge the rows of a repeated pair.",
                 rich_help_panel=_COLUMNS),
]  # fmt: skip
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", rich_help_panel=_COLUMNS, show_default=False,
        help="Whether the first line of text files names the columns. Default: detected.",
    ),
]  # fmt: skip
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="Delimiter of text files. Default: detected.",
                 rich_help_panel=_COLUMNS),
]  # fmt: skip

ElementName = Annotated[
    str,
    typer.Option(
        "--element", "-e", rich_help_panel=_MODEL,
        help="Distribution of one element: auto, gamma, inverse_gaussian, normal, poisson, "
        "binomial, ..., or presence, which ignores the values. Initial parameters may follow, for "
        "example gamma:2,0.05.",
    ),
]  # fmt: skip
HurdleOption = Annotated[
    bool,
    typer.Option(
        "--hurdle", rich_help_panel=_MODEL,
        help="Model each value as a single element instead of a sum; use it for ratings. Requires "
        "--element; auto compares both.",
    ),
]  # fmt: skip
VaryByOption = Annotated[
    VaryBy | None,
    typer.Option(
        "--vary-by", rich_help_panel=_MODEL, show_default=False,
        help="Estimate a mean per user, per item or both (partial pooling). Requires --element; "
        "auto compares all four. Default: a shared mean.",
    ),
]  # fmt: skip
Components = Annotated[
    int,
    typer.Option("--components", "-K", min=1, metavar="N", help="Number of components.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
Fits = Annotated[
    int,
    typer.Option("--fits", min=1, metavar="N", help="Number of fits whose rates are averaged.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
TrainOnOption = Annotated[
    TrainOn,
    typer.Option(
        "--train-on", rich_help_panel=_MODEL,
        help="Pairs to train on: full (missing pairs are data) or observed (they are not).",
    ),
]  # fmt: skip
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="N", rich_help_panel=_MODEL,
                 help="Random seed; the same seed gives the same result."),
]  # fmt: skip
MaxIter = Annotated[
    int,
    typer.Option("--max-iter", min=1, metavar="N", help="Maximum number of passes over the data.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
Tolerance = Annotated[
    float,
    typer.Option(
        "--tol", min=0.0, metavar="SHARE", rich_help_panel=_MODEL,
        help="Stop when the relative ELBO change per pass falls below this value; 0 disables early "
        "stopping.",
    ),
]  # fmt: skip
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, metavar="N", rich_help_panel=_MODEL,
        help="Number of threads; it does not change the result. Default: all cores.",
    ),
]  # fmt: skip

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Checkpoint folder. Rerun the same command to resume an interrupted fit.",
    ),
]
Names = Annotated[
    str | None,
    typer.Option("--names", help="Table of item ids and names, or the word [b]retail[/b]."),
]
TableFile = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write: .parquet, .csv or .tsv.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout and nothing else.")]
