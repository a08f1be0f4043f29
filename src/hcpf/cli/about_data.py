"""What data look like, which elements suit them, and what to beware of."""

import sys
from typing import TYPE_CHECKING, Any

import typer

from hcpf.cli.histogram import bars, histogram
from hcpf.cli.screen import number, percent, show_facts, wrapped

if TYPE_CHECKING:
    from hcpf._types import FloatArray
    from hcpf.data.interactions import Interactions

_NEAR_BINARY = 0.95
_DENSE = 0.4  # share of the pairs that are observed
_TAIL = 0.5  # share of the total that a hundredth of the values holds
_ENOUGH = 200  # values, for a hundredth of them to mean anything
_DOMINATING = 0.1
_SINGLE = 0.3


def describe_data(data: "Interactions", surplus: int) -> dict[str, Any]:
    """Data as JSON; ``surplus`` rows repeated a pair and were merged."""
    import numpy as np

    from hcpf.training.recipes import likeliest_element

    values = data.values.astype(np.float64)
    per_user = np.diff(data.matrix.indptr)
    per_item = np.bincount(data.matrix.indices, minlength=data.n_items)
    quantiles = np.quantile(values, [0.0, 0.5, 0.99, 1.0])
    return {
        "kind": "data",
        "users": data.n_users,
        "items": data.n_items,
        "observed": data.n_observed,
        "sparsity": data.sparsity,
        "surplus_rows": surplus,
        "per_user": _spread(per_user),
        "per_item": _spread(per_item),
        "values": {
            "least": quantiles[0], "median": quantiles[1], "mean": values.mean(),
            "percentile_99": quantiles[2], "greatest": quantiles[3],
            "whole_numbers": bool(np.all(values == np.floor(values))),
        },
        "histogram": histogram(values),
        "elements": applicable(values),
        "likeliest": likeliest_element(values).name if np.ptp(values) else "degenerate",
        "warnings": warnings(data, values, surplus),
    }  # fmt: skip


def _spread(counts: Any) -> dict[str, float]:
    import numpy as np

    return {
        "median": float(np.median(counts)), "greatest": int(counts.max()),
        "none": int(np.sum(counts == 0)), "one": int(np.sum(counts == 1)),
    }  # fmt: skip


def applicable(values: "FloatArray") -> list[str]:
    """The elements that can give such values."""
    import numpy as np

    from hcpf.elements import ALL

    return [element.name for element in ALL if bool(np.all(element.support.contains(values)))]


def warnings(data: "Interactions", values: "FloatArray", surplus: int) -> list[str]:
    """What to beware of, each with what can be done about it."""
    import numpy as np

    found: list[str] = []
    if surplus:
        repeat = "row repeats" if surplus == 1 else "rows repeat"
        found.append(f"{surplus:,} {repeat} a pair: hcpf fit needs --duplicates sum, mean or last.")
    distinct, counts = np.unique(values, return_counts=True)
    most = int(np.argmax(counts))
    share = counts[most] / len(values)
    if len(distinct) == 1:
        found.append(
            f"every value is {distinct[0]:g}: only which pairs are observed can be learnt "
            "(--train-on binary)."
        )
    elif share > _NEAR_BINARY:
        found.append(
            f"nearly binary: {percent(share)} of the values are {distinct[most]:g}; "
            "--train-on binary may do as well."
        )
    if 1.0 - data.sparsity > _DENSE and len(distinct) > 1:
        found.append(
            f"dense: {percent(1.0 - data.sparsity)} of all pairs are observed, so that a value is "
            "a sum of many elements; with --once, which auto tries too, it is one."
        )
    found += _tail(values)
    found += _dominance(data)
    found += _thin(data)
    return found


def _tail(values: "FloatArray") -> list[str]:
    import numpy as np

    if values.min() < 0 or values.sum() <= 0:
        return []
    top = np.sort(values)[-max(1, len(values) // 100) :]
    share = float(top.sum() / values.sum())
    concentrated = share > _TAIL and len(values) >= _ENOUGH
    if not concentrated and values.max() < 1000 * max(float(np.median(values)), 1e-300):
        return []
    return [
        f"heavy tail: 1% of the values hold {percent(share)} of the total, and the greatest is "
        f"{number(float(values.max() / max(np.median(values), 1e-300)))} times the median; compare "
        "inverse_gaussian, or cap such values."
    ]


def _dominance(data: "Interactions") -> list[str]:
    import numpy as np

    found: list[str] = []
    for side, axis, ids in (("user", 1, data.users), ("item", 0, data.items)):
        if len(ids) < 20:
            continue
        total = np.abs(data.matrix).sum(axis=axis)
        place = int(np.argmax(total))
        share = float(total[place] / max(total.sum(), 1e-300))
        if share > _DOMINATING:
            found.append(f"one {side}, {ids[place]}, has {percent(share)} of the total.")
    return found


def _thin(data: "Interactions") -> list[str]:
    import numpy as np

    found: list[str] = []
    columns = np.bincount(data.matrix.indices, minlength=data.n_items)
    for side, counts in (("users", np.diff(data.matrix.indptr)), ("items", columns)):
        empty, single = int(np.sum(counts == 0)), float(np.mean(counts == 1))
        if empty:
            found.append(f"{empty:,} {side} have no entry: nothing can be learnt of them.")
        if single > _SINGLE:
            found.append(
                f"{percent(single)} of the {side} have one entry: little is known of them."
            )
    return found


def show_data(about: dict[str, Any]) -> None:
    """Print it for people."""
    values = about["values"]
    show_facts(
        {
            "size": f"{about['users']:,} users x {about['items']:,} items",
            "observed": f"{about['observed']:,} ({percent(1 - about['sparsity'])} of all pairs)",
            "entries by user": f"a median of {number(about['per_user']['median'])}, "
            f"{about['per_user']['greatest']:,} at most",
            "entries by item": f"a median of {number(about['per_item']['median'])}, "
            f"{about['per_item']['greatest']:,} at most",
            "values": ("whole numbers " if values["whole_numbers"] else "")
            + f"from {number(values['least'])} to {number(values['greatest'])}, "
            f"median {number(values['median'])}, mean {number(values['mean'])}",
        },
        "Data",
    )
    typer.secho("\nValues", bold=True)
    for line in bars(about["histogram"]):
        typer.echo(f"  {line}")
    names = ", ".join(about["elements"])
    show_facts({"apply": names, "likeliest": about["likeliest"]}, "\nElements")
    if about["warnings"]:
        typer.secho("\nBeware", bold=True)
        for text in about["warnings"]:
            typer.echo(wrapped(f"  - {text}", at_terminal=sys.stdout.isatty(), indent="    "))
