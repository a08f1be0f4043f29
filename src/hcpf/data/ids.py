"""External ids (strings, integers or UUIDs), and their positions."""

import uuid
from collections import Counter
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
_MAX_COMPARED_IDS = 20_000  # known ids that a mistyped one is compared with


def check_ids(name: str, ids: Ids | None, expected: int) -> IdArray:
    """Return the ids as an array, or raise an InputError if they do not name each row once."""
    if ids is None:
        return np.arange(expected)
    array = check_length(name, as_ids(name, ids), expected)
    values = array.tolist()
    if len(set(values)) < len(values):
        repeated = next(value for value, count in Counter(values).items() if count > 1)
        raise InputError(f"{name}: the id {repeated!r} occurs more than once. Ids must be unique.")
    return array


def check_length(name: str, ids: IdArray, expected: int) -> IdArray:
    """Return the ids if there are as many as expected."""
    if ids.shape != (expected,):
        side = "row" if name == "users" else "column"
        raise InputError(
            f"{name} must be a list of {expected} ids, one per {side}, but its shape is "
            f"{ids.shape}."
        )
    return ids


def as_ids(name: str, ids: Any) -> IdArray:
    """Return ids of one kind in one form: int64 (uint64 beyond), or objects: str or UUID."""
    array = ids if isinstance(ids, np.ndarray) else _from_sequence(name, ids)
    kind = array.dtype.kind
    if kind in "iu":
        return array.astype(np.uint64 if array.dtype == np.uint64 else np.int64, copy=False)
    if kind in "UT":
        return array.astype(object)
    if kind != "O":
        raise InputError(f"{name}: ids must be {_KINDS}, but these are {array.dtype}.")
    types = {type(value) for value in array.flat}
    if types <= {str} or types <= {uuid.UUID}:
        return array
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in types):
        dtype = narrowest_type([int(value) for value in array.flat])
        if dtype is None:
            raise InputError(f"{name}: an id does not fit in 64 bits. Convert the ids to strings.")
        return array.astype(dtype)
    if all(issubclass(kind, str) for kind in types):
        return object_array([str(value) for value in array.flat]).reshape(array.shape)
    for value in array.flat:
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer | uuid.UUID):
            kind = type(value).__name__
            raise InputError(f"{name}: ids must be {_KINDS}, but {value!r} is {kind}.")
    raise InputError(f"{name}: ids must all be of one kind, {_KINDS}; these are mixed.")


def _from_sequence(name: str, ids: Any) -> IdArray:
    if isinstance(ids, str | bytes | uuid.UUID | int | np.generic):
        return object_array([plain(ids)]).reshape(())
    if isinstance(ids, set | frozenset | dict):
        raise InputError(
            f"{name}: ids must be a sequence, but a {type(ids).__name__} has no order."
        )
    if hasattr(ids, "to_numpy"):
        return np.asarray(ids)
    try:
        array = np.array(list(ids), dtype=object)
    except (TypeError, ValueError):
        raise InputError(f"{name}: ids must be {_KINDS}, got {type(ids).__name__}.") from None
    return object_array([plain(value) for value in array.flat]).reshape(array.shape)


class IdIndex:
    """The ids of one axis and their positions."""

    def __init__(self, name: str, ids: IdArray) -> None:
        self.name = name
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def positions(self, wanted: Any) -> NDArray[np.int64]:
        """Return the positions of ids; an InputError names the first unknown one."""
        ids = self._checked(wanted)
        positions = self._find(ids)
        if np.any(positions < 0):
            unknown = plain(ids[positions < 0].flat[0])
            raise InputError(f"{self.name}: unknown id {unknown!r}.{self._hint(unknown)}")
        return positions

    def known(self, wanted: Any) -> NDArray[np.int64]:
        """Return the positions of ids, -1 for unknown ones."""
        return self._find(self._checked(wanted))

    def _checked(self, wanted: Any) -> IdArray:
        ids = as_ids(self.name, wanted)
        mine, theirs = _describe(self.ids), _describe(ids)
        if ids.size and mine != theirs:
            others = [one for one in map(plain, ids.flat) if not str(one).isdecimal()]
            example = others[0] if others else plain(ids.flat[0])
            raise InputError(
                f"{self.name}: the fitted ids are {mine}, but these are {theirs}, for example "
                f"{example!r}.{self._hint(example)}"
            )
        return ids

    def _hint(self, unknown: Any) -> str:
        """Return a sentence with known ids that are similar to an unknown one, or an example."""
        texts = [str(plain(known)) for known in self.ids[:_MAX_COMPARED_IDS]]
        similar = get_close_matches(str(unknown), texts, n=3, cutoff=0.75)
        if similar:
            return f" Similar ids: {', '.join(similar)}."
        return f" Ids are {_describe(self.ids)}, for example {texts[0]}." if texts else ""

    def _find(self, ids: IdArray) -> NDArray[np.int64]:
        if self.ids.dtype.kind == "O":
            positions = [self._positions.get(value, -1) for value in ids.flat]
            return np.array(positions, dtype=np.int64).reshape(ids.shape)
        if not len(self.ids):
            return np.full(ids.shape, -1, dtype=np.int64)
        # NumPy would compare int64 and uint64 as float64, where large ids are equal. An id that the
        # cast changes is unknown, since the comparison below is exact.
        cast = ids.astype(self.ids.dtype, copy=False)
        rank = np.searchsorted(self.ids, cast, sorter=self._order)
        positions = self._order[np.minimum(rank, len(self.ids) - 1)]
        return np.where(self.ids[positions] == ids, positions, -1)

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {value: position for position, value in enumerate(self.ids)}

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.ids, kind="stable")


def _describe(ids: IdArray) -> str:
    """Return the kind of the ids, for messages."""
    if ids.dtype.kind != "O":
        return "integers"
    first = next(iter(ids.flat), "")
    return "strings" if isinstance(first, str) else "UUIDs"


def join(ids: IdArray, more: IdArray) -> tuple[IdArray, NDArray[np.int64]]:
    """Return all ids, those of ``ids`` first; and the positions of ``more`` among them."""
    positions = IdIndex("ids", ids).known(more)
    is_new = positions < 0
    positions[is_new] = len(ids) + np.arange(int(is_new.sum()))
    new = more[is_new]
    if ids.dtype != new.dtype:  # int64 and uint64 together would become float64
        numbers = [*ids.tolist(), *new.tolist()]
        dtype = narrowest_type(numbers)
        if dtype is None:
            raise InputError(
                f"The ids {min(numbers)} and {max(numbers)} do not fit in one 64-bit type. Convert "
                "the ids to strings."
            )
        ids, new = ids.astype(dtype), new.astype(dtype)
    return np.concatenate([ids, new]), positions


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
    """Return the type that holds all numbers: int64, else uint64, else None."""
    low, high = min(numbers, default=0), max(numbers, default=0)
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return None


def sort_ids(ids: IdArray, codes: NDArray[np.int32]) -> tuple[IdArray, NDArray[np.int32]]:
    """Sort ids, and change the codes that point to them."""
    order = np.argsort(ids, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return ids[order], rank[codes]
