"""The section on what is usual for users and items, where theta varies between them."""

from typing import Any

import numpy as np

from hcpf.estimator import HCPF
from hcpf.report.markup import Markup, element, fill, joined, table
from hcpf.report.usual_values import Usual, usual, varying_sides
from hcpf.report.wording import counted, id_text, percent, short

_LEVEL = 0.9
_MEANING = {
    "users": "The usual value of a user is what to expect of an observed pair of theirs.",
    "items": "The usual value of an item is what to expect of an observed pair with it.",
    "both": "The usual value of a user is what to expect of an observed pair with a middling item; "
    "that of an item, with a middling user.",
}


def link(model: HCPF) -> Markup:
    """The link to the section, if there is one."""
    return element("a", "What is usual", href="#usual") if varying_sides(model) else Markup()


def sentence(model: HCPF) -> str:
    """What the section on values says of it."""
    sides = varying_sides(model)
    if not sides:
        return ""
    return f" Its mean differs between {' and '.join(sides)}; these are the average of all."


def habits(model: HCPF, labels: list[str], rng: np.random.Generator) -> Markup:
    """What is usual for whom; nothing where all are alike."""
    sides = varying_sides(model)
    if not sides:
        return Markup()
    found = [usual(model, side) for side in sides]
    return fill(
        "usual.html",
        who=" and ".join(sides),
        meaning=_MEANING["both" if len(sides) == 2 else sides[0]],
        level=percent(_LEVEL),
        points=joined(element("li", point) for one in found for point in _points(one)),
        tables=joined(_table(model, one, labels, rng) for one in found),
    )


def _points(found: Usual) -> list[str]:
    low, middle, high = (short(float(x)) for x in found.levels)
    new_low, new_middle, new_high = (short(float(x)) for x in found.new)
    one, many = found.side[:-1], found.side
    return [
        f"Half of the {many} have a usual value below {middle}; nine in ten lie between {low} and "
        f"{high}.",
        f"Of a new {one}, with no entry yet, the model expects {new_middle}, and with 90% "
        f"probability between {new_low} and {new_high}.",
    ]


def _table(model: HCPF, found: Usual, labels: list[str], rng: np.random.Generator) -> Markup:
    rows = found.shown(rng)
    low, high = found.between(rows, rng)
    one = found.side[:-1]
    header = [one.capitalize(), "Usual value", "Entries", "Their average"]
    cells: list[list[Any]] = []
    for j, row in enumerate(rows):
        name = labels[row] if found.side == "items" else id_text(model.users_[row])
        value, average = float(found.value[row]), float(found.average[row])
        between = element("small", f"{short(float(low[j]))} – {short(float(high[j]))}")
        cells.append(
            [
                name,
                (value, joined([short(value), between])),
                (int(found.entries[row]), f"{found.entries[row]:,}"),
                ("" if np.isnan(average) else average, short(average)),
            ]
        )
    place = f"usual-{found.side}"
    said = f"{counted(len(rows), one)} of {len(found.value):,}: those with most entries, the most "
    said += "unusual, and a random sample. Click the name of a column to sort."
    if len(rows) == len(found.value):
        said = f"All {counted(len(rows), one)}. Click the name of a column to sort."
    search = element(
        "p",
        element("label", f"Search {found.side}", for_=f"{place}-search"),
        Markup(
            f'<input id="{place}-search" type="search" autocomplete="off" spellcheck="false" '
            f'data-table="{place}">'
        ),
        element("output", for_=f"{place}-search", aria_live="polite"),
        class_="search",
    )
    shown = table(
        f"What is usual, {found.side}", header, cells, sortable=True, id=place, css="tall"
    )
    return joined(
        [element("h3", f"Usual values of {found.side}"), element("p", said), search, shown]
    )
