"""Rows that cannot be used: where they are, and one message for all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hcpf._types import IntArray
from hcpf.errors import InputError

_MAX_SHOWN = 3


class BadRowsError(InputError):
    """Rows that cannot be used; the message names their file."""


class RowSource(Protocol):
    """Where rows come from: a file, or a data frame."""

    @property
    def label(self) -> str:
        """What messages call the source; empty for a frame."""
        ...

    @property
    def counting(self) -> str:
        """How rows are numbered, for messages."""
        ...

    def row_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers to show for rows counted from 0."""
        ...


class FrameRows:
    """The rows of a data frame or of arrays."""

    label = ""
    counting = "the first row is 1"

    def row_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers to show for rows counted from 0."""
        return [row + 1 for row in rows]


@dataclass
class _Segment:
    source: RowSource
    first: int
    """Of the source's rows, the number of those before the segment."""
    kept: IntArray | None
    """Which rows of the segment are kept; None for all."""
    n_rows: int


class RowLocator:
    """The source and the number there of every row that is kept."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []

    def add(self, source: RowSource, first: int, kept: IntArray | None, n_rows: int) -> None:
        """Add the next rows."""
        self._segments.append(_Segment(source, first, kept, n_rows))

    def rows_by_source(self) -> Iterator[tuple[RowSource, NDArray[np.int64]]]:
        """Yield the numbers of the kept rows in their source, counted from 0, in order."""
        for part in self._segments:
            kept = np.arange(part.n_rows) if part.kept is None else part.kept
            yield part.source, part.first + kept.astype(np.int64)

    def select(self, kept: NDArray[np.bool_]) -> "RowLocator":
        """Return the locator of the rows that a mask over the kept rows marks."""
        chosen, position = RowLocator(), 0
        for part in self._segments:
            mask = kept[position : position + part.n_rows]
            rows = (np.arange(part.n_rows) if part.kept is None else part.kept)[mask]
            chosen.add(part.source, part.first, rows, len(rows))
            position += part.n_rows
        return chosen

    def find(self, position: int) -> tuple[RowSource, int]:
        """Return the source of a kept row, and its number there, counted from 0."""
        for segment in self._segments:
            if position < segment.n_rows:
                row = position if segment.kept is None else int(segment.kept[position])
                return segment.source, segment.first + row
            position -= segment.n_rows
        raise IndexError(position)


@dataclass
class _Problem:
    message: str
    """What is wrong; where follows it."""
    advice: str
    remedy: str
    """The argument that fixes it; empty if there is none."""
    n_rows: int = 0
    examples: list[tuple[RowSource, int, Any]] = field(default_factory=list[Any])


class BadRows:
    """Collects bad rows by what is wrong with them, and raises one error about all."""

    def __init__(self) -> None:
        self._problems: dict[str, _Problem] = {}
        self._positions: list[NDArray[Any]] = []

    def add(
        self, message: str, advice: str, source: RowSource, rows: NDArray[Any], remedy: str = "",
        texts: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """Add rows of a source, counted from 0, perhaps with what they hold.

        The argument ``remedy`` drops or fixes them.
        """
        problem = self._problems.setdefault(message, _Problem(message, advice, remedy))
        problem.n_rows += len(rows)
        n_more = _MAX_SHOWN - len(problem.examples)
        for row, text in zip_longest(rows[:n_more].tolist(), texts[:n_more]):
            problem.examples.append((source, row, text))

    def add_kept(
        self, message: str, advice: str, locator: RowLocator, positions: NDArray[Any], texts: Any,
        remedy: str = "",
    ) -> None:  # fmt: skip
        """Add rows by their positions among all that are kept, with what they hold."""
        problem = self._problems.setdefault(message, _Problem(message, advice, remedy))
        self._positions.append(positions)
        problem.n_rows += len(positions)
        for position, text in zip(positions[:_MAX_SHOWN].tolist(), texts, strict=False):
            problem.examples.append((*locator.find(position), text))

    def raise_if_any(self) -> None:
        """Raise an InputError that shows the first three rows of every problem and their number."""
        if not (problems := self._found()):
            return
        source = problems[0].examples[0][0]
        texts = [*(_describe(problem, source) for problem in problems), *self._all_remedies()]
        text = " ".join(texts)
        raise BadRowsError(f"{source.label}: {text}" if source.label else text)

    def texts(self) -> list[str]:
        """Return a sentence or two per problem, and all remedies together at the end."""
        problems = [_describe(problem, problem.examples[0][0]) for problem in self._found()]
        return [*problems, *self._all_remedies()]

    def positions(self) -> NDArray[Any]:
        """Return the positions, among the kept rows, of those that are bad."""
        return np.concatenate([np.zeros(0, np.int64), *self._positions])

    def _found(self) -> list[_Problem]:
        return [problem for problem in self._problems.values() if problem.n_rows]

    def _all_remedies(self) -> list[str]:
        remedies = list(dict.fromkeys(p.remedy for p in self._found() if p.remedy))
        return [f"For all of these: {', '.join(remedies)}."] if len(remedies) > 1 else []


def _describe(problem: _Problem, source: RowSource) -> str:
    examples = [example for example in problem.examples if example[0] is source]
    examples = examples or problem.examples  # all in other files
    numbers = source.row_numbers([row for _, row, _ in examples])
    shown = [
        f"row {number}" if text is None else f"{text!r} in row {number}"
        for number, (_, _, text) in zip(numbers, examples, strict=True)
    ]
    has_texts = any(text is not None for _, _, text in examples)
    if not has_texts and len(shown) > 1:
        shown = [f"rows {numbers[0]}", *map(str, numbers[1:])]
    rows = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    total = f"{problem.n_rows:,} rows in total; " if problem.n_rows > len(shown) else ""
    what = f"{problem.message}{':' if has_texts else ' in'} {rows}"
    return f"{what} ({total}{source.counting}). {problem.advice}"
