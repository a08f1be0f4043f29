"""Readable names of items: from a mapping, or from two columns of a file."""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hcpf.data.canonical import IdArray, plain
from hcpf.data.english import in_english, without_accents
from hcpf.data.files import TableFile, find_files, open_file
from hcpf.data.guess import same_items
from hcpf.errors import InputError

logger = logging.getLogger("hcpf")

NameSource = Mapping[Any, Any] | str | Path
"""A mapping of ids to names, or the path of a table with a column of either, or FILE:COLUMN."""


_NAME_WORDS = ("name", "description", "title", "label", "desc", "text")


def read_names(
    source: NameSource | None, items: IdArray, say: Callable[[str], None] = logger.info
) -> dict[str, str]:
    """Return names by the text of their ids.

    Ids match by their text because a CSV file has no other type. Empty names are dropped; of
    several names of an id, the most frequent one is taken.

    Parameters
    ----------
    source : mapping, path or None
        A mapping of ids to names; or a file, such as the one that a model was fitted to. Its ids
        are in the column that has most of the items and few other values. "FILE:COLUMN" tells
        which column has the names; without it, it is ``name``, ``description``, ``title`` or
        similar, the other one of two, or the one called like the ids (Product and Product code).
        None gives no names.
    items : ndarray
        Ids of the items to name. At least one of them needs a name.
    say : callable
        Takes a sentence about which columns were read.

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
        pairs = [(_text(key), name) for key, name in source.items()]
    elif isinstance(source, str | Path):
        known, (path, column) = {_text(item) for item in items}, _split(source)
        files = find_files(path)
        pairs = [pair for file in files for pair in _read_table(file, column, known, say)]
    else:
        raise InputError(
            f"names must be a mapping of ids to names or a file, got {type(source).__name__}."
        )
    names = {key: str(name) for key, name in pairs if name not in (None, "")}
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


def _split(source: str | Path) -> tuple[str, str | None]:
    """Return the path and the column of FILE:COLUMN; the column is None for a path alone."""
    path, _, column = str(source).rpartition(":")
    is_drive = len(path) == 1  # of Windows
    is_path = not path or is_drive or os.path.exists(source)  # noqa: PTH110  # of any length
    return (str(source), None) if is_path else (path, column)


def _read_table(
    path: Path, column: str | None, items: set[str], say: Callable[[str], None]
) -> Iterator[tuple[str, str]]:
    """Yield the ids of a file with the most frequent name of each."""
    file = open_file(path)
    name = _name_column(file, items) if column is None else column
    if name not in file.names:
        raise InputError(
            f"{path}: names: there is no column {name!r}. Columns: {', '.join(file.names)}."
        )
    key = id_column(file, name, items, "names")
    if (key, name) != ("id", "name"):
        say(f"{path.name}: names of items from {name}, by {key}.")
    names: dict[str, Counter[str]] = {}
    for (identity, text), number in _count_pairs(file, key, name).items():
        names.setdefault(identity, Counter())[text] += number
    for identity, counts in names.items():
        yield identity, counts.most_common(1)[0][0]


def _count_pairs(file: TableFile, first: str, second: str) -> Counter[tuple[str, str]]:
    """Return how often each pair of texts occurs, empty ones not counted."""
    counts: Counter[tuple[str, str]] = Counter()
    for one, other in file.pairs(first, second):
        texts = zip(one.to_pylist(), other.to_pylist(), strict=True)
        counts.update((str(a), str(b)) for a, b in texts if a is not None and b)
    return counts


def _name_column(file: TableFile, items: set[str]) -> str:
    words = [
        {in_english(word) for word in re.findall("[a-z]+", _spaced(name).lower())}
        for name in file.names
    ]
    for word in _NAME_WORDS:
        for name, mine in zip(file.names, words, strict=True):
            if word in mine:
                return name
    if len(file.names) == 2:
        return file.names[1]
    for one, other in same_items(file.columns):
        n_known = [_count_known(file, *pair, items)[0] for pair in ((one, other), (other, one))]
        if 0 in n_known and any(n_known):
            return one if n_known[0] == 0 else other
    raise InputError(
        f"{file.path}: names: cannot tell which column has the names of the items. Name it as in "
        f"'{file.path.name}:COLUMN', or use no names where the ids are names. Columns: "
        f"{', '.join(file.names)}."
    )


def _spaced(name: str) -> str:
    """Return the words of a name such as ProductName apart, without accents."""
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", without_accents(name))


def id_column(file: TableFile, name: str, items: set[str], purpose: str) -> str:
    """Return the column of a file that has the known ids in its first rows.

    Of the columns that have at least half as many of them as any other, it is that with the fewest
    other values: numbers of orders may contain all numbers of products. Of equal ones it is ``id``,
    else the first. ``name`` is the column that they are ids of, and ``items`` has the texts of the
    known ids.
    """
    others = sorted((other for other in file.names if other != name), key=lambda one: one != "id")
    counts = {other: _count_known(file, other, name, items) for other in others}
    most = max((n_known for n_known, _ in counts.values()), default=0)
    if most == 0:
        example = next(iter(items), "")
        raise InputError(
            f"{file.path}: {purpose}: no column has the ids of the data, for example {example!r}. "
            f"Columns: {', '.join(file.names)}."
        )
    likely = {key: share for key, (n_known, share) in counts.items() if 2 * n_known >= most}
    return max(likely, key=lambda key: likely[key])


def _count_known(file: TableFile, column: str, name: str, items: set[str]) -> tuple[int, float]:
    """Return how many known ids a column has in its first rows, and their share of its values."""
    try:
        batches = file.pairs(column, name, max_batches=1)
    except InputError:  # two columns have this name
        return 0, 0.0
    values = {_text(cell) for cells, _ in batches for cell in cells.to_pylist()}
    n_known = len(values & items)
    return n_known, n_known / max(len(values), 1)
