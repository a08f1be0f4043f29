"""The section on typical values of users and items, of models with partial pooling."""

from typing import Any

import numpy as np

from hcpf.core.axis import Axis
from hcpf.model.fitted import FittedModel
from hcpf.model.typical_values import TypicalValues, pooled_axes, typical_values
from hcpf.report.markup import Markup, element, fill, joined, table
from hcpf.report.wording import counted, id_text, percent, short

_LEVEL = 0.9
_MEANING = {
    "user": "A user's typical value is the expected value of an observed pair.",
    "item": "An item's typical value is the expected value of an observed pair.",
    "both": "A user's typical value is the expected value of an observed pair with the median "
    "item; an item's, with the median user.",
}


def link(model: FittedModel) -> Markup:
    """Return the link to the section, if there is one."""
    return element("a", "Typical values", href="#typical") if pooled_axes(model) else Markup()


def sentence(model: FittedModel) -> str:
    """Return what the section on values says about partial pooling."""
    axes = [axis.word for axis in pooled_axes(model)]
    return f" Its mean differs per {' and '.join(axes)}; this is the overall mean." if axes else ""


def section(model: FittedModel, labels: list[str], rng: np.random.Generator) -> Markup:
    """Show typical values; nothing where all pairs share one mean."""
    axes = pooled_axes(model)
    if not axes:
        return Markup()
    found = [typical_values(model, axis) for axis in axes]
    return fill(
        "typical.html",
        axes=" and ".join(axis.word for axis in axes),
        meaning=_MEANING["both" if len(axes) == 2 else axes[0].word],
        level=percent(_LEVEL),
        points=joined(element("li", point) for one in found for point in _points(one)),
        tables=joined(_table(model, one, labels, rng) for one in found),
    )


def _points(found: TypicalValues) -> list[str]:
    low, middle, high = (short(float(x)) for x in found.levels)
    new_low, new_middle, new_high = (short(float(x)) for x in found.new)
    word = found.axis.word
    return [
        f"Half of the {word}s have a typical value below {middle}; 90% are between {low} and "
        f"{high}.",
        f"For a new {word}, without entries, the model expects {new_middle}, and with 90% "
        f"probability between {new_low} and {new_high}.",
    ]


def _table(
    model: FittedModel, found: TypicalValues, labels: list[str], rng: np.random.Generator
) -> Markup:
    rows = found.sample_rows(rng)
    low, high = found.intervals(rows, rng)
    cells: list[list[Any]] = []
    for j, row in enumerate(rows):
        name = labels[row] if found.axis is Axis.ITEMS else id_text(model.users[row])
        value, average = float(found.value[row]), float(found.average[row])
        interval = element("small", f"{short(float(low[j]))} – {short(float(high[j]))}")
        cells.append(
            [
                name,
                (value, joined([short(value), interval])),
                (int(found.entries[row]), f"{found.entries[row]:,}"),
                ("" if np.isnan(average) else average, short(average)),
            ]
        )
    word = found.axis.word
    table_id, title = f"typical-{word}s", f"Typical values of {word}s"
    shown = f"{counted(len(rows), word)} of {len(found.value):,}: those with most entries, the "
    shown += "highest and lowest values, and a random sample."
    if len(rows) == len(found.value):
        shown = f"All {counted(len(rows), word)}."
    search = element(
        "p",
        element("label", f"Search {word}s", for_=f"{table_id}-search"),
        Markup(
            f'<input id="{table_id}-search" type="search" autocomplete="off" spellcheck="false" '
            f'data-table="{table_id}">'
        ),
        element("output", for_=f"{table_id}-search", aria_live="polite"),
        class_="search",
    )
    header = [word.capitalize(), "Typical value", "Entries", "Their average"]
    return joined(
        [
            element("h3", title),
            element("p", f"{shown} Click the name of a column to sort."),
            search,
            table(title, header, cells, sortable=True, id=table_id, css="tall"),
        ]
    )
