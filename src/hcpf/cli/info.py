"""``hcpf info``."""

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.errors import name_options
from hcpf.cli.inputs import (
    MANIFEST,
    Source,
    in_memory,
    is_shard_folder,
    load_model,
    parse_ids,
    read_names,
    with_source,
)
from hcpf.cli.output import (
    Field,
    bars,
    duration,
    elbo_text,
    element_text,
    ending_text,
    note_period,
    number,
    percent,
    readable_size,
    show_facts,
    show_json,
    show_rows,
    size,
    wrapped,
)
from hcpf.errors import InputError


@with_source
def info(
    source: Annotated[
        Source,
        typer.Argument(
            metavar="MODEL|DATA",
            help="Folder written by [b]hcpf fit[/b], or data in any form that it takes.",
            show_default=False,
        ),
    ],
    names: options.Names = None,
    as_json: options.Json = False,
) -> None:
    """Describe data (size, values, suitable elements, warnings), a saved model, or one of its rows.

    Of data, the values of repeated pairs are added up. Rows that a fit would refuse are listed with
    the options that fix them, and omitted from the numbers. With a model, --user ID or --item ID
    describes that user or item: its entries, its typical value, and its most probable new pairs.
    """
    folder = Path(source.data[0])
    if folder.is_dir() and not is_shard_folder(source.data):
        if len(source.data) > 1:
            raise InputError("Pass one model, or files.")
        if not (folder / MANIFEST).exists():
            raise InputError(f"{folder} is not a model. For files, write '{folder}/*.csv'.")
        if source.user is not None or source.item is not None:
            _tell_row(folder, source.user, source.item, names, as_json)
            return
        about = _describe_model(folder, names)
        show_json(about) if as_json else _show_model(about)
        return
    about = _describe_data(source)
    show_json(about) if as_json else _show_data(about)


def _describe_data(source: Source) -> dict[str, Any]:
    import numpy as np

    from hcpf.data.summary import summarize
    from hcpf.training.resolve import most_likely_element

    found = source.read(lenient=True)
    whole = found.data
    data = in_memory(whole)
    about = {
        "kind": "data", "reading": list(found.remarks), "problems": list(found.problems),
        **summarize(data, found.n_repeated).as_dict(),
    }  # fmt: skip
    if data.n_observed < whole.n_observed:  # the values are those of a sample
        about |= {
            "users": whole.n_users, "items": whole.n_items, "observed": whole.n_observed,
            "sparsity": whole.sparsity,
        }  # fmt: skip
    values = data.values.astype(np.float64)
    about["most_likely"] = most_likely_element(values).name if np.ptp(values) else "degenerate"
    about["warnings"] = [name_options(text) for text in about["warnings"]]
    return about


def _show_data(about: dict[str, Any]) -> None:
    if about["reading"]:
        _show_list("Reading", about["reading"])
        typer.echo("")
    if about["problems"]:
        _show_list(
            "Problems (a fit refuses these rows; the numbers below assume the options named here)",
            about["problems"],
        )
        typer.echo("")
    values, per_user, per_item = (
        about[name] for name in ("values", "entries_per_user", "entries_per_item")
    )
    show_facts(
        {
            "size": size(about["users"], about["items"]),
            "observed": f"{about['observed']:,} ({percent(1 - about['sparsity'])} of all pairs)",
            "entries per user": f"median {number(per_user['median'])}, max {per_user['max']:,}",
            "entries per item": f"median {number(per_item['median'])}, max {per_item['max']:,}",
            "values": ("integers " if values["integer"] else "")
            + f"from {number(values['min'])} to {number(values['max'])}, "
            f"median {number(values['median'])}, mean {number(values['mean'])}",
        },
        "Data",
    )
    typer.secho("\nValues", bold=True)
    for line in bars(about["histogram"]):
        typer.echo(f"  {line}")
    elements = {"applicable": ", ".join(about["elements"]), "most likely": about["most_likely"]}
    show_facts(elements, "\nElements")
    if about["warnings"]:
        typer.echo("")
        _show_list("Warnings", about["warnings"])


def _show_list(title: str, texts: list[str]) -> None:
    at_terminal = sys.stdout.isatty()
    typer.secho(wrapped(title, at_terminal=at_terminal), bold=True)
    for text in texts:
        typer.echo(wrapped(f"  - {text}", at_terminal=at_terminal, indent="    "))


def _describe_model(folder: Path, names: str | None) -> dict[str, Any]:
    from hcpf.model.inspect import describe_model, describe_typical_values

    model = load_model(folder)
    manifest = json.loads((folder / MANIFEST).read_bytes())["manifest"]
    written = datetime.fromtimestamp((folder / MANIFEST).stat().st_mtime, UTC)
    return {
        "kind": "model",
        "path": str(folder),
        **describe_model(model),
        "typical_values": describe_typical_values(model, read_names(names, model.items)),
        "written": written.isoformat(timespec="seconds"),
        "version": manifest.get("hcpf"),
        "bytes": sum(file.stat().st_size for file in folder.iterdir()),
    }


def _show_model(about: dict[str, Any]) -> None:
    priors = {
        axis: ", ".join(
            f"{name.removeprefix(axis + '_').replace('_', ' ')} {number(value)}"
            for name, value in about["priors"].items()
            if name.startswith(axis)
        )
        for axis in ("user", "item")
    }
    exposures = [
        f"{axis}s: {number(one['low'])} to {number(one['high'])}, median {number(one['median'])}"
        for axis, one in about["exposure"].items()
        if one is not None
    ]
    observed = "the training data were not saved"
    if about["observed"] is not None:
        observed = f"{about['observed']:,} observed ({percent(1 - about['sparsity'])})"
    show_facts(
        {
            "data": f"{size(about['users'], about['items'])}, {observed}",
            "trained on": {"full": "all pairs", "observed": "observed pairs"}[about["train_on"]],
            "element": element_text(about),
            "components": about["components"],
            "fits": about["fits"],
            "priors": [f"users: {priors['user']}", f"items: {priors['item']}"],
            **({"exposures": exposures} if exposures else {}),
            "passes": ending_text(about),
            "ELBO": elbo_text(about),
            "fit time": duration(about["seconds"]) + " for the first fit" * (about["fits"] > 1),
            "written": f"{about['written']} by hcpf {about['version']}",
            "on disk": readable_size(about["bytes"]),
        },
        f"Model {about['path']}",
    )
    for axis, typical in (about["typical_values"] or {}).items():
        _show_typical_values(axis, typical, crossed=len(about["typical_values"]) == 2)


def _tell_row(
    folder: Path, user: str | None, item: str | None, names: str | None, as_json: bool
) -> None:
    """Describe one user or item of a model."""
    from hcpf.core.axis import Axis
    from hcpf.model.inspect import describe_row

    if user is not None and item is not None:
        raise InputError("Pass --user or --item. For a pair: hcpf predict, hcpf explain.")
    model = load_model(folder)
    axis, text = (Axis.USERS, user) if user is not None else (Axis.ITEMS, item)
    index = model.index[axis]
    about = describe_row(model, axis, parse_ids(index, [text])[0])
    known = read_names(names, model.items)
    for row in [about, *about["largest"], *(about["next"] or [])]:
        if known and "item" in row:
            row["name"] = known.get(str(row["item"]), "")
    if as_json:
        show_json(about)
        return
    _show_row(about, axis.word, bool(known))
    note_period(model)


def _show_row(about: dict[str, Any], word: str, named: bool) -> None:
    other = {"user": "item", "item": "user"}[word]
    name = f" ({about['name']})" if about.get("name") else ""
    n_entries = about["entries"]
    facts = {
        "entries": f"{n_entries:,}, sum {number(about['total'])}, "
        f"average {number(about['average'])}"
    }
    if about["typical_value"] is not None:
        rests = "1 entry" if n_entries == 1 else f"{n_entries:,} entries"
        facts["typical value"] = (
            f"{number(about['typical_value'])}, which rests on {rests}; the median {word} has "
            f"{number(about['typical_of_all'])}"
        )
    show_facts(facts, f"{word.capitalize()} {about[word]}{name}")
    partner = [
        Field(other, other.capitalize(), str, right=False),
        *([Field("name", "Name", str, right=False)] if named and other == "item" else []),
    ]
    typer.secho("\nLargest entries", bold=True)
    show_rows([*partner, Field("value", "Value")], about["largest"])
    if about["next"]:
        typer.secho("\nMost likely next", bold=True)
        columns = [
            Field("probability", "Probability", percent), Field("value", "Value if observed"),
            Field("low", "90% from"), Field("high", "To"),
        ]  # fmt: skip
        show_rows([*partner, *columns], about["next"])


def _show_typical_values(word: str, about: dict[str, Any], *, crossed: bool) -> None:
    other = {"user": "item", "item": "user"}[word]
    facts = {
        f"estimates of {word}s": _levels_text(about["fitted"]),
        f"prior of a new {word}": _levels_text(about["new"]),
    }
    partner = f", with the median {other}" if crossed else ""
    show_facts(facts, f"\nTypical value per {word}{partner}")
    typer.echo("")
    named = any(row.get("name") for row in about["highest"] + about["lowest"])
    fields = [
        Field("end", "", right=False),
        Field("id", word.capitalize(), str, right=False),
        *([Field("name", "Name", lambda value: value or "–", right=False)] if named else []),
        Field("typical_value", "Typical value"),
        Field("entries", "Entries"),
        Field("average", "Average of entries"),
    ]
    show_rows(fields, [{**row, "end": end} for end in ("highest", "lowest") for row in about[end]])


def _levels_text(levels: dict[str, float]) -> str:
    # All three get the decimals that give the median three significant digits.
    size = abs(float(levels["median"]))
    decimals = min(max(2 - math.floor(math.log10(size)), 0), 8) if size > 0 else 2
    low, median, high = (f"{levels[name]:,.{decimals}f}" for name in ("low", "median", "high"))
    return f"median {median}, 90% between {low} and {high}"
