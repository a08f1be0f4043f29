"""Items to exclude, by id, by pattern, or listed in a file."""

import csv
import fnmatch
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hcpf.data.files.base import file_errors
from hcpf.data.files.encodings import detect_encoding, open_bytes
from hcpf.data.files.text import guess_delimiter
from hcpf.data.read_options import ExcludeItems
from hcpf.errors import InputError

Matcher = Callable[[Any], bool]


def item_matcher(exclude: ExcludeItems) -> Matcher | None:
    """Return a function that tells whether an item is excluded; None if none is.

    Examples
    --------
    >>> matches = item_matcher(["POST", "BANK*"])
    >>> [matches(item) for item in ("POST", "POSTER", "BANK CHARGES", 7)]
    [True, False, True, False]
    """
    given = [exclude] if isinstance(exclude, str | Path | int) else exclude
    try:
        wanted = [pattern for entry in given for pattern in _patterns(entry)]
    except TypeError:
        raise InputError(
            "exclude_items must be an id, a pattern, a file or a list of them, got "
            f"{type(exclude).__name__}."
        ) from None
    if not wanted:
        return None
    exact = {text for text in wanted if not _is_pattern(text)}
    patterns = "|".join(fnmatch.translate(text) for text in wanted if _is_pattern(text))
    match = re.compile(patterns).match if patterns else None
    return lambda item: str(item) in exact or bool(match and match(str(item)))


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _patterns(entry: Any) -> Iterator[str]:
    if isinstance(entry, bool) or not isinstance(entry, str | Path | int):
        raise InputError(
            f"exclude_items must contain ids, patterns or files, got {type(entry).__name__}."
        )
    if isinstance(entry, int) or not _is_file(entry):
        if isinstance(entry, Path):
            raise InputError(f"exclude_items: {entry} is not a file.")
        yield str(entry)
        return
    path = Path(entry)
    with file_errors(path), open_bytes(path) as file:
        text = bytes(file.read()).decode(detect_encoding(path)).removeprefix("\ufeff")
        # A header does no harm: it is not the id of an item.
        for record in csv.reader(io.StringIO(text, ""), delimiter=guess_delimiter(text)):
            if record and record[0].strip():
                yield record[0].strip()


def _is_file(entry: str | Path) -> bool:
    try:
        return Path(entry).is_file()
    except (OSError, ValueError):  # an id may be no possible name of a file
        return False
