"""Dates and times of rows, as files have them."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from hcpf.errors import InputError

pc: Any = compute  # its functions are made at run time, unseen by type checkers

Times = NDArray[np.datetime64]

_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d %b %Y", "%d-%b-%Y", "%b %d, %Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_SECONDS, _MILLISECONDS = (1e8, 1e10), (1e11, 1e13)  # since 1970, of the years 1973 to 2286


_DATE = (
    r"^\s*(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ]\s*\d{1,2}:\d{2}.*)?\s*$"
)


def are_dates(texts: Any) -> bool:
    """Return whether all texts of an Arrow array are dates, blank ones aside.

    >>> are_dates(pa.array(["1.12.2010 08:26", "", None])), are_dates(pa.array(["1.2.3"]))
    (True, False)
    """
    texts = texts.drop_null()
    texts = texts.filter(pc.not_equal(pc.utf8_trim_whitespace(texts), ""))
    return len(texts) > 0 and pc.all(pc.match_substring_regex(texts, _DATE)).as_py()


def parse_moment(text: str) -> np.datetime64:
    """Return a date or time as the command line takes it.

    >>> parse_moment("2011-10-01")
    np.datetime64('2011-10-01T00:00:00')
    """
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?", text.strip()):
        try:
            return np.datetime64(text.strip().replace(" ", "T"), "s")
        except ValueError:
            pass
    raise InputError(f"{text!r} is not a date. Write it as in 2011-10-01 or '2011-10-01 14:30'.")


def parse_times(name: str, chunks: Sequence[Any]) -> Times:
    """Return the times of the rows of a column; NaT where a row has none.

    Parameters
    ----------
    name : str
        The column, for messages.
    chunks : sequence of Arrow arrays
        Dates, timestamps, texts, or seconds or milliseconds since 1970.

    Examples
    --------
    >>> parse_times("day", [pa.array(["1.12.2010 08:26", None])])
    array(['2010-12-01T08:26:00',                 'NaT'],
          dtype='datetime64[s]')
    """
    column = pa.chunked_array(chunks).combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return _from_numbers(name, column)
    if not pa.types.is_temporal(column.type):
        column = _from_texts(name, column)
    return column.cast(pa.timestamp("s"), safe=False).to_numpy(zero_copy_only=False)


def _from_numbers(name: str, column: Any) -> Times:
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    known = numbers[np.isfinite(numbers)]
    for (low, high), unit in ((_SECONDS, 1.0), (_MILLISECONDS, 1e3)):
        if len(known) and low <= known.min() and known.max() <= high:
            seconds = np.where(np.isfinite(numbers), np.floor(numbers / unit), 0).astype(np.int64)
            times = seconds.astype("datetime64[s]")
            times[~np.isfinite(numbers)] = np.datetime64("NaT")
            return times
    example = f", such as {known[0]:.12g}" if len(known) else ""
    raise InputError(f"Column {name!r} has numbers that are not times{example}.")


def _from_texts(name: str, column: Any) -> Any:
    """Return texts as timestamps, in the one format that fits all of them."""
    encoded = pc.utf8_trim_whitespace(column.cast(pa.string())).dictionary_encode()
    texts = encoded.dictionary
    blank = pc.equal(texts, "")
    texts = pc.if_else(blank, pa.scalar(None, pa.string()), texts)
    if (integers := _integers(texts)) is not None:
        return pa.array(_from_numbers(name, integers)).take(encoded.indices)
    parsed = _parse(name, texts)
    return parsed.take(encoded.indices)


def _integers(texts: Any) -> Any | None:
    """Return texts of nine digits and more as integers; None if they are anything else."""
    if pc.all(pc.match_substring_regex(texts, r"^\d{9,15}$")).as_py():
        return texts.cast(pa.int64())
    return None


def _parse(name: str, texts: Any) -> Any:
    try:
        return pc.cast(texts, pa.timestamp("us", "UTC")).cast(pa.timestamp("s"), safe=False)
    except pa.ArrowInvalid:
        pass
    try:
        return pc.cast(texts, pa.timestamp("us")).cast(pa.timestamp("s"), safe=False)
    except pa.ArrowInvalid:
        pass
    fits: dict[str, Any] = {}
    for clock in _CLOCKS:
        for day in _DAYS:
            parsed = pc.strptime(texts, format=day + clock, unit="s", error_is_null=True)
            if parsed.null_count == texts.null_count and len(texts) > texts.null_count:
                fits[day + clock] = parsed
    if not fits:
        shown = next((text for text in texts.to_pylist() if text), "")
        raise InputError(
            f"Column {name!r} has dates that cannot be read, such as {shown!r}. Write them as in "
            "2011-10-01 or 1.10.2011."
        )
    first, *others = fits.values()
    if any(not first.equals(other) for other in others):
        formats = " or ".join(fits)
        raise InputError(
            f"Column {name!r} has dates that can be read in two ways ({formats}). Write them as in "
            "2011-10-01."
        )
    return first
