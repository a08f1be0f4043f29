"""External ids: strings, whole numbers or UUIDs; from them to positions, and back."""

import uuid
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.data.canonical import IdArray, plain
from hcpf.errors import InputError

Ids = Sequence[Any] | IdArray

_KINDS = "str, int or UUID"
_COMPARED = 20_000  # ids that a mistyped one is compared with


def check_ids(name: str, ids: Ids | None, expected: int) -> IdArray:
    """Return the ids as an array, or raise an InputError if they do not name each row once."""
    if ids is None:
        return np.arange(expected)
    array = as_ids(name, ids)
    check_length(name, array, expected)
    repeated = _first_repeated(array)
    if repeated is not None:
        raise InputError(
            f"{name}: the id {plain(repeated)!r} occurs more than once. Ids must differ."
        )
    return array


def check_length(name: str, ids: IdArray, expected: int) -> IdArray:
    """Return the ids if there are as many as expected."""
    if ids.shape != (expected,):
        side = "rows" if name == "users" else "columns"
        raise InputError(
            f"{name} must be a list of {expected} ids, one for each of the {side}, but its shape "
            f"is {ids.shape}."
        )
    return ids


def as_ids(name: str, ids: Any) -> IdArray:
    """Ids of one kind in one form: int64 (uint64 beyond), or objects that are str or UUID."""
    array = ids if isinstance(ids, np.ndarray) else _from_sequence(name, ids)
    kind = array.dtype.kind
    if kind in "iu":
        return array.astype(np.uint64 if array.dtype == np.uint64 else np.int64, copy=False)
    if kind in "UT":
        return array.astype(object)
    if kind != "O":
        raise InputError(f"{name}: ids must be {_KINDS}, but these are {array.dtype}.")
    kinds = {type(value) for value in array.flat}
    if kinds <= {str} or kinds <= {uuid.UUID}:
        return array
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        return _whole_numbers(name, array)
    if all(issubclass(kind, str) for kind in kinds):
        return np.array([str(value) for value in array.flat], dtype=object).reshape(array.shape)
    for value in array.flat:
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer | uuid.UUID):
            kind = type(value).__name__
            raise InputError(f"{name}: ids must be {_KINDS}, but {value!r} is {kind}.")
    raise InputError(f"{name}: ids must all be of one kind, {_KINDS}; these are mixed.")


def _from_sequence(name: str, ids: Any) -> IdArray:
    if isinstance(ids, str | bytes | uuid.UUID | int | np.generic):
        out = np.empty((), dtype=object)
        out[()] = plain(ids)
        return out
    if isinstance(ids, set | frozenset | dict):
        raise InputError(f"{name}: ids must come in an order, but a {type(ids).__name__} has none.")
    if hasattr(ids, "to_numpy"):
        return np.asarray(ids)
    try:
        array = np.array(list(ids), dtype=object)
    except (TypeError, ValueError):
        raise InputError(f"{name}: ids must be {_KINDS}, got {type(ids).__name__}.") from None
    plainly = np.empty(array.shape, dtype=object)
    for place, value in enumerate(array.flat):
        plainly.flat[place] = plain(value)
    return plainly


def _whole_numbers(name: str, array: IdArray) -> IdArray:
    for dtype in (np.int64, np.uint64):
        try:
            return array.astype(dtype)
        except OverflowError:
            continue
    raise InputError(f"{name}: an id does not fit in 64 bits. Turn such ids into strings.")


def _first_repeated(array: IdArray) -> Any:
    if array.dtype.kind != "O":
        values, counts = np.unique(array, return_counts=True)
        return next(iter(values[counts > 1]), None)
    seen: set[Any] = set()
    for value in array:
        if value in seen:
            return value
        seen.add(value)
    return None


class IdIndex:
    """The ids of one side, and where each of them is."""

    def __init__(self, name: str, ids: IdArray) -> None:
        self.name = name
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def positions(self, wanted: Any) -> NDArray[np.int64]:
        """Where the given ids are; an InputError names the first that is not there."""
        asked = self._like_mine(wanted)
        found = self._find(asked)
        if np.any(found < 0):
            strange = plain(asked[found < 0].flat[0])
            raise InputError(
                f"{self.name}: {strange!r} was not among those fitted{self.hint(strange)}"
            )
        return found

    def hint(self, strange: Any) -> str:
        """Known ids that look like one that is not known, else an example of them."""
        some = [str(plain(one)) for one in self.ids[:_COMPARED]]
        alike = get_close_matches(str(strange), some, n=3, cutoff=0.75)
        if alike:
            return f"; did you mean {' or '.join(alike)}?"
        return f"; known ids look like {some[0]}." if some else "."

    def known(self, wanted: Any) -> NDArray[np.int64]:
        """Where the given ids are, -1 for those that are not there."""
        return self._find(self._like_mine(wanted))

    def _like_mine(self, wanted: Any) -> IdArray:
        asked = as_ids(self.name, wanted)
        mine, theirs = _describe(self.ids), _describe(asked)
        if asked.size and mine != theirs:
            raise InputError(f"{self.name}: the fitted ids are {mine}, but these are {theirs}.")
        return asked

    def _find(self, asked: IdArray) -> NDArray[np.int64]:
        if self.ids.dtype.kind == "O":
            places = self._places
            found = [places.get(value, -1) for value in asked.flat]
            return np.array(found, dtype=np.int64).reshape(asked.shape)
        if not len(self.ids):
            return np.full(asked.shape, -1, dtype=np.int64)
        order = self._order
        # NumPy would compare int64 and uint64 as float64, which cannot tell large ids apart. An id
        # that the cast changes is found not to be there when compared below, which is exact.
        alike = asked.astype(self.ids.dtype, copy=False)
        place = np.minimum(np.searchsorted(self.ids, alike, sorter=order), len(self.ids) - 1)
        found = order[place]
        return np.where(self.ids[found] == asked, found, -1)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {value: place for place, value in enumerate(self.ids)}

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.ids, kind="stable")


def _describe(ids: IdArray) -> str:
    """The kind of ids, as a message names it."""
    if ids.dtype.kind != "O":
        return "whole numbers"
    first = next(iter(ids.flat), "")
    return "strings" if isinstance(first, str) else "UUIDs"


def join(ids: IdArray, more: IdArray) -> tuple[IdArray, NDArray[np.int64]]:
    """All ids, first those of ``ids``; and where each of ``more`` is among them."""
    place = IdIndex("ids", ids).known(more)
    new = place < 0
    place[new] = len(ids) + np.arange(int(new.sum()))
    return np.concatenate(_of_one_type(ids, more[new])), place


def _of_one_type(ids: IdArray, more: IdArray) -> tuple[IdArray, IdArray]:
    """Both as the type that holds all of them; int64 and uint64 would become float64."""
    if ids.dtype == more.dtype:
        return ids, more
    for dtype in (np.int64, np.uint64):
        first, second = ids.astype(dtype), more.astype(dtype)
        if np.array_equal(first, ids) and np.array_equal(second, more):
            return first, second
    raise InputError(
        f"The ids {plain(min(ids.min(), more.min()))} and {plain(max(ids.max(), more.max()))} do "
        "not fit in one 64-bit type. Turn such ids into strings."
    )


def integers_if_exact(ids: Sequence[str]) -> IdArray:
    """Return text ids as integers if, and only if, nothing is lost ("007" stays text)."""
    try:
        numbers = [int(value) for value in ids]
    except ValueError:
        return object_array(ids)
    same = all(str(number) == value for number, value in zip(numbers, ids, strict=True))
    dtype = narrowest_type(numbers)
    return object_array(ids) if dtype is None or not same else np.array(numbers, dtype=dtype)


def object_array(values: Sequence[Any]) -> IdArray:
    """Return a one-dimensional array of Python objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def narrowest_type(numbers: Sequence[int]) -> type[np.int64] | type[np.uint64] | None:
    """The type that holds all the whole numbers: int64, else uint64, else none."""
    least, greatest = min(numbers, default=0), max(numbers, default=0)
    for dtype in (np.int64, np.uint64):
        limits = np.iinfo(dtype)
        if limits.min <= least and greatest <= limits.max:
            return dtype
    return None


def sort_ids(ids: IdArray, codes: NDArray[np.int32]) -> tuple[IdArray, NDArray[np.int32]]:
    """Sort ids that are in order of appearance, and the codes that point to them."""
    order = np.argsort(ids, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return ids[order], rank[codes]
