"""HTML from templates. Whatever is not markup already is escaped, so data can never become code."""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from string import Template
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def markup(value: Any) -> Markup:
    """Return ``value`` as HTML: markup as it is, anything else escaped.

    Examples
    --------
    >>> markup("<b>"), markup(Markup("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def joined(parts: Iterable[Any], between: str = "") -> Markup:
    """All parts as HTML, one after the other."""
    return Markup(between.join(markup(part) for part in parts))


def element(name: str, /, *content: Any, **attributes: Any) -> Markup:
    """One HTML element; attributes that are None are left out, ``_`` in a name becomes ``-``.

    Examples
    --------
    >>> element("td", "a < b", class_="number")
    '<td class="number">a &lt; b</td>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{joined(content)}</{name}>")


@cache
def source(name: str) -> str:
    """The text of a file beside the templates."""
    folder = resources.files("hcpf.report").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


def fill(name: str, /, **values: Any) -> Markup:
    """Fill a template, escaping what is not markup."""
    return Markup(Template(source(name)).substitute({k: markup(v) for k, v in values.items()}))


def embedded_json(data: Any) -> Markup:
    r"""JSON that can stand inside a script element, whatever its strings hold.

    Examples
    --------
    >>> embedded_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    numeric: Sequence[bool] | None = None,
    css: str = "",
    sortable: bool = False,
    id: str | None = None,
    row_attributes: Sequence[Mapping[str, Any]] | None = None,
) -> Markup:
    """A table with a caption; a cell may be (what to sort by, what to show).

    Parameters
    ----------
    caption
        What it shows; read out by screen readers, hidden on screen.
    header, rows
        Names of the columns, and their cells.
    numeric
        Which columns hold numbers; by default all but the first.
    css, id, row_attributes
        Classes of the table, its id, and attributes of each row.
    sortable
        Whether a click on a column's name sorts by it.
    """
    numbers = [j > 0 for j in range(len(header))] if numeric is None else list(numeric)
    kinds = ["number" if number else None for number in numbers]
    head = [
        element("th", element("button", name, type="button"), scope="col", class_=kind)
        if sortable
        else element("th", name, scope="col", class_=kind)
        for name, kind in zip(header, kinds, strict=True)
    ]
    lines: list[Markup] = []
    for place, row in enumerate(rows):
        cells = [_cell(value, kind) for value, kind in zip(row, kinds, strict=True)]
        extra = row_attributes[place] if row_attributes is not None else {}
        lines.append(element("tr", *cells, **extra))
    classes = f"{css} sortable".strip() if sortable else css
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *lines),
        class_=classes or None,
        id=id,
    )
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _cell(value: Any, kind: str | None) -> Markup:
    if isinstance(value, tuple):
        key, shown = value
        return element("td", shown, class_=kind, data_sort=key)
    return element("td", value, class_=kind)
