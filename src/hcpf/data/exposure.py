"""Exposures as users give them: numbers by id, in order, or in a column."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.data.canonical import plain
from hcpf.data.ids import IdIndex
from hcpf.errors import InputError

MIN_EXPOSURE, MAX_EXPOSURE = 1e-9, 1e9
"""Beyond these the products of factors and exposures leave the range of float32."""


def resolve_exposure(
    given: Any, index: IdIndex, *, source: Any = None, default: FloatArray | None = None
) -> FloatArray | None:
    """Return the exposure of each id, checked; None if nothing is given.

    Parameters
    ----------
    given : None, number, array, mapping, Series, str or Path
        One number for all; numbers in the order of the ids; numbers by id; the name of a column of
        an AnnData (``source``); or "FILE:COLUMN", a table with a column of ids.
    index : IdIndex
        The ids of the users, or of the items.
    source : optional
        The data as given, of which an AnnData may have the column.
    default : ndarray, optional
        Exposures of the ids that a mapping or a file does not have, NaN for those without one.
    """
    if given is None:
        return None
    name, values = f"{_word(index)}_exposure", np.full(len(index), np.nan)
    if hasattr(given, "columns"):
        raise InputError(f"{name} is a data frame. Pass one of its columns.")
    if default is not None:
        values[:] = default
    if isinstance(given, str | Path):
        table = getattr(source, "obs" if index.name == "users" else "var", None)
        if table is not None and isinstance(given, str) and given in table:
            values[:] = _numbers(name, np.asarray(table[given]))
        else:
            _set_by_text(values, index, _read(name, str(given), index))
    elif isinstance(given, Mapping) or hasattr(given, "to_dict"):  # or a Series of pandas
        _set_by_id(name, values, index, list(given.items()))
    else:
        _set_in_order(name, values, index, given)
    return check_exposure(values, index)


def check_exposure(values: FloatArray, index: IdIndex) -> FloatArray:
    """Return exposures, or raise an InputError that names the first one that is not possible."""
    word, lacking = _word(index), np.isnan(values)
    if lacking.any():
        first, n_lacking = plain(index.ids[int(np.argmax(lacking))]), int(lacking.sum())
        raise InputError(
            f"{word}_exposure: the {word} {first!r} has none ({n_lacking:,} of {len(index):,} "
            f"{index.name} without one). Give a number above 0 for every {word}."
        )
    wrong = ~((values >= MIN_EXPOSURE) & (values <= MAX_EXPOSURE))
    if wrong.any():
        position = int(np.argmax(wrong))
        raise InputError(
            f"{word}_exposure: the {word} {plain(index.ids[position])!r} has {values[position]:g}, "
            f"but exposures must be between {MIN_EXPOSURE:g} and {MAX_EXPOSURE:g}. Remove "
            f"{index.name} that were never exposed, or use another unit."
        )
    return values


def _word(index: IdIndex) -> str:
    """Return what one of the ids names: "user" or "item"."""
    return index.name.removesuffix("s")


def pair_exposure(given: Any, shape: tuple[int, ...]) -> FloatArray | None:
    """Return exposures of pairs of some shape, checked; None if nothing is given."""
    if given is None:
        return None
    values = _numbers("exposure", np.asarray(given))
    if not np.all((values >= MIN_EXPOSURE) & (values <= MAX_EXPOSURE)):
        raise InputError(
            f"exposure must be between {MIN_EXPOSURE:g} and {MAX_EXPOSURE:g} for every pair; got "
            f"{given!r}."
        )
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise InputError(
            f"exposure of shape {values.shape} does not fit pairs of shape {shape}: give one "
            "number, or one per pair."
        ) from None


def _set_in_order(name: str, values: FloatArray, index: IdIndex, given: Any) -> None:
    numbers = _numbers(name, np.asarray(given))
    if numbers.ndim and numbers.shape != values.shape:
        raise InputError(
            f"{name} must be one number, {len(index):,} numbers in the order of the {index.name}, "
            f"or a mapping by id; its shape is {numbers.shape}."
        )
    values[:] = numbers


def _set_by_id(name: str, values: FloatArray, index: IdIndex, given: list[tuple[Any, Any]]) -> None:
    if not given:
        return
    ids, numbers = zip(*given, strict=True)
    positions = index.known(list(ids))
    known = positions >= 0
    n_given = np.bincount(positions[known], minlength=1)
    if n_given.max() > 1:  # a Series may have an id twice
        twice = plain(index.ids[int(np.argmax(n_given))])
        raise InputError(f"{name}: the {_word(index)} {twice!r} occurs more than once.")
    values[positions[known]] = _numbers(name, np.array(numbers, dtype=object))[known]


def _set_by_text(values: FloatArray, index: IdIndex, by_text: dict[str, float]) -> None:
    """Set what a file has; ids match by their text because a CSV file has no other type."""
    for position, identity in enumerate(index.ids):
        values[position] = by_text.get(str(plain(identity)), values[position])


def _numbers(name: str, given: Any) -> FloatArray:
    try:
        if given.dtype.kind in "bcmM":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers; got {given.ravel()[:3].tolist()!r}.") from None


def _read(name: str, text: str, index: IdIndex) -> dict[str, float]:
    """Return the numbers of "FILE:COLUMN" by the text of their ids."""
    from hcpf.data.files import find_files, open_file
    from hcpf.data.names import id_column

    path, colon, column = text.rpartition(":")
    if not colon or not path:
        raise InputError(
            f"{name}={text!r} is neither a column of the data nor FILE:COLUMN, for example "
            f"'{index.name}.csv:days'."
        )
    found: dict[str, float] = {}
    for one in find_files(path):
        file = open_file(one)
        if column not in file.names:
            raise InputError(
                f"{name}: {one} has no column {column!r}. Columns: {', '.join(file.names)}."
            )
        key = id_column(file, column, {str(plain(x)) for x in index.ids}, name)
        for ids, numbers in file.pairs(key, column):
            for identity, number in zip(ids.to_pylist(), numbers.to_pylist(), strict=True):
                _add(found, f"{name}: {one}", str(identity), number)
    return found


def _add(found: dict[str, float], where: str, identity: str, number: Any) -> None:
    try:
        value = float("nan" if number is None or number == "" else number)
    except (TypeError, ValueError):
        raise InputError(f"{where}: {identity!r} has {number!r}, which is not a number.") from None
    before = found.setdefault(identity, value)
    if before != value and not (np.isnan(before) and np.isnan(value)):
        raise InputError(
            f"{where}: {identity!r} occurs twice, with {before:g} and {value:g}. Give one exposure "
            "per id."
        )
