"""Columns of values: numbers, and texts that stand for numbers, read batch by batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from hcpf._types import BoolArray
from hcpf.data.amounts import ParsedAmounts, parse_amounts
from hcpf.data.exact import inexact_integers
from hcpf.data.files.base import TEXT_TYPES
from hcpf.data.rows import BadRows, RowLocator
from hcpf.errors import InputError

ArrowArray = Any
"""A ``pyarrow.Array`` or ``ChunkedArray``, which have no type hints."""
pc: Any = compute  # its functions are made at run time, unseen by type checkers

Positions = NDArray[np.int64]

_PROBLEMS = {
    "missing": ("has no value", "Drop such rows: missing pairs have no row."),
    "not_numbers": ("has values that are not numbers", "Correct or drop such rows."),
    "not_finite": ("has values that are not finite", "Drop such rows."),
    "inexact": (
        "has integers that 64-bit floats cannot hold exactly",
        "Divide the values, for example by 1000.",
    ),
    "vanished": (
        "has values so small that 64-bit floats make them 0",
        "Multiply the values, for example by 1e100.",
    ),
}


_NO_VALUE = r"(?i)^\s*(n/?a|#n/a|null|none|nan|-)?\s*$"
"""Texts that programs and people write where there is no value."""
_DROP_BLANK = "drop_blank_values=True"


class ValueColumn:
    """Collects the values of the rows that are kept.

    With ``drop_blank``, rows without a value are not bad, and their value is NaN; None says that
    the caller has no such option.
    """

    def __init__(self, name: str, *, drop_blank: bool | None = None) -> None:
        self.name, self._drop_blank = name, drop_blank
        self._parts: list[Any] = []  # float64 arrays, and Arrow's dictionary arrays of text
        self._n_values = 0
        self._positions: dict[str, list[Positions]] = {problem: [] for problem in _PROBLEMS}
        self._exact_texts: dict[int, str] = {}  # of the first inexact integers, by position

    def add(self, column: ArrowArray, kept: BoolArray | None) -> None:
        """Add the next values, those of the rows that are kept."""
        first = 0
        for chunk in chunks_of(column):
            mask = None if kept is None else kept[first : first + len(chunk)]
            first += len(chunk)
            part = chunk if mask is None else chunk.filter(pa.array(mask))
            if pa.types.is_dictionary(part.type):
                part = part.cast(part.type.value_type)
            if part.type in TEXT_TYPES:
                self._parts.append(pc.dictionary_encode(part.cast(pa.large_string())))
            else:
                self._parts.append(self._numbers(part))
            self._n_values += len(part)

    def finish(
        self, decimal: str | None, bad_rows: BadRows, locator: RowLocator
    ) -> tuple[NDArray[np.float64], ParsedAmounts | None]:
        """Return all numbers, and how texts were parsed; what is wrong goes to ``bad_rows``."""
        texts, amounts = self._parse_texts(decimal)
        values = np.concatenate(self._parts) if self._parts else np.zeros(0)
        self._parts.clear()
        finite = np.isfinite(values)
        if not finite.all():
            known = [p for name in ("missing", "not_numbers") for p in self._positions[name]]
            finite[np.concatenate([*known, np.zeros(0, np.int64)])] = True
            self._positions["missing"].append(np.flatnonzero(~finite & np.isnan(values)))
            self._positions["not_finite"].append(np.flatnonzero(~finite & np.isinf(values)))
        for problem, parts in self._positions.items():
            positions = np.concatenate(parts) if parts else np.zeros(0, np.int64)
            if len(positions) and not (self._drop_blank and problem == "missing"):
                self._report(problem, positions, texts, values, bad_rows, locator)
        return values, amounts

    def _report(
        self, problem: str, positions: Positions, texts: dict[int, str], values: Any,
        bad_rows: BadRows, locator: RowLocator,
    ) -> None:  # fmt: skip
        message, advice = _PROBLEMS[problem]
        remedy = ""
        if problem == "missing":
            positions = np.sort(positions)
            if self._drop_blank is not None:
                advice, remedy = f"Pass {_DROP_BLANK} to drop such rows.", _DROP_BLANK
        shown = [
            texts.get(position, None if problem == "missing" else _Shown(values[position]))
            for position in positions[:3].tolist()
        ]
        bad_rows.add_kept(
            f"Column {self.name!r} {message}", advice, locator, positions, shown, remedy
        )

    def _numbers(self, column: ArrowArray) -> NDArray[np.float64]:
        arrow_type, types = column.type, pa.types
        if types.is_boolean(arrow_type):
            column = column.cast(pa.int8())
        elif types.is_integer(arrow_type):
            self._check_integers(column)
        elif not (types.is_floating(arrow_type) or types.is_decimal(arrow_type)):
            if column.null_count < len(column):
                raise InputError(
                    f"Column {self.name!r} holds {arrow_type}, but values must be numbers."
                )
            column = pa.nulls(len(column), pa.float64())
        if column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False)
            self._positions["missing"].append(self._n_values + np.flatnonzero(missing))
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)

    def _check_integers(self, column: ArrowArray) -> None:
        if column.type.bit_width < 64:
            return
        integers = pc.fill_null(column, 0).to_numpy()
        inexact = np.flatnonzero(inexact_integers(integers))
        self._positions["inexact"].append(self._n_values + inexact)
        for position in inexact[:3].tolist():
            self._exact_texts[self._n_values + position] = str(integers[position])

    def _parse_texts(self, decimal: str | None) -> tuple[dict[int, str], ParsedAmounts | None]:
        """Replace the parts of text by numbers; return the first bad texts by their positions."""
        encoded = [part for part in self._parts if not isinstance(part, np.ndarray)]
        shown: dict[int, str] = dict(self._exact_texts)
        if not encoded:
            return shown, None
        unified = pa.chunked_array(encoded).unify_dictionaries()
        texts = unified.chunk(0).dictionary
        blank = pc.match_substring_regex(texts, _NO_VALUE).to_numpy(zero_copy_only=False)
        amounts = parse_amounts(self.name, texts.filter(pa.array(~blank)), decimal)
        lookup = np.full(len(texts) + 1, np.nan)  # the last one is that of a missing text
        lookup[:-1][~blank] = amounts.values
        masks = {"missing": np.append(blank, True)}
        for name in ("not_numbers", "inexact", "vanished"):
            masks[name] = np.zeros(len(texts) + 1, np.bool_)
            masks[name][:-1][~blank] = getattr(amounts, name)
        chunks, first = iter(unified.chunks), 0
        for number, part in enumerate(self._parts):
            if not isinstance(part, np.ndarray):
                codes = pc.fill_null(next(chunks).indices, -1).to_numpy()
                self._parts[number] = lookup[codes]
                for name, mask in masks.items():
                    if mask[codes].any():
                        positions = np.flatnonzero(mask[codes])
                        self._positions[name].append(first + positions)
                        for position in positions[:3].tolist():
                            text = (
                                texts[code].as_py() if (code := int(codes[position])) >= 0 else ""
                            )
                            if text.strip():
                                shown[first + position] = text[:40]
            first += len(self._parts[number])
        return shown, amounts


class _Shown:
    """A number that messages show without quotes."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"{self._value:.17g}"


def chunks_of(column: ArrowArray) -> Iterator[ArrowArray]:
    """Yield the chunks that are not empty: an empty one may have no type."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return (chunk for chunk in chunks if len(chunk))
