"""Readable names of items: from a mapping, or from the first two columns of a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hcpf.data.canonical import IdArray, plain
from hcpf.data.detect import detect_layout
from hcpf.data.readers import find_files, read_pairs
from hcpf.errors import InputError

NameSource = Mapping[Any, Any] | str | Path
"""A mapping of ids to names, or the path of a table with a column of either."""


def read_names(source: NameSource | None, items: IdArray) -> dict[str, str]:
    """Return names by the text of their ids.

    Ids match by their text because a CSV file has no other type. Empty names are dropped.

    Parameters
    ----------
    source : mapping, path or None
        A mapping of ids to names; or a CSV, TSV, Parquet or Arrow file with the columns ``id`` and
        ``name``, or else with ids in the first column and names in the second. None gives no names.
    items : ndarray
        Ids of the items to name. At least one of them needs a name.

    Returns
    -------
    dict
        Names by ``str(id)``; those of ids outside ``items`` are kept.

    Examples
    --------
    >>> import numpy as np
    >>> read_names({7: "tea", 9: None}, np.array([7, 8]))
    {'7': 'tea'}
    """
    if source is None:
        return {}
    if isinstance(source, Mapping):
        pairs = list(source.items())
    elif isinstance(source, str | Path):
        pairs = [pair for path in find_files(source) for pair in _read_table(path)]
    else:
        raise InputError(
            f"names must be a mapping of ids to names or a file, got {type(source).__name__}."
        )
    names = {_text(key): str(name) for key, name in pairs if name not in (None, "")}
    if not any(_text(item) in names for item in items):
        example = f", for example {_text(items[0])!r}" if len(items) else ""
        raise InputError(
            f"names: none of the {len(names):,} named ids is an item of the model. Use the ids of "
            f"its items{example}."
        )
    return names


def item_labels(items: IdArray, names: Mapping[str, str]) -> list[str]:
    """Return the name of each item, and its id where it has no name.

    Examples
    --------
    >>> import numpy as np
    >>> item_labels(np.array([7, 8]), {"7": "tea"})
    ['tea', '8']
    """
    return [names.get(_text(item)) or _text(item) for item in items]


def _text(value: Any) -> str:
    return str(plain(value))


def _read_table(path: Path) -> list[tuple[Any, Any]]:
    layout = detect_layout(path)
    columns = ("id", "name") if {"id", "name"} <= set(layout.names) else (0, 1)
    batches = read_pairs(path, *columns, header=layout.header)
    return [pair for ids, names in batches for pair in zip(ids, names, strict=True)]
