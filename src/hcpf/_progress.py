"""Progress bars for long work: on a terminal, on stderr, and only when it takes a while."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Protocol


class Advance(Protocol):
    """Moves the bar on by some amount, with a note next to it."""

    def __call__(self, amount: float, note: str = "") -> None: ...


_NUMBERS_WIDTH = 24
"""Characters of the percentage, both times and the spaces between columns."""
_BAR_WIDTHS = (10, 40)
"""Characters of the bar: at least, at most."""

_printers: list[Callable[[str], None]] = []
"""One per bar that is shown: prints a line above it."""


def announce(text: str) -> None:
    """Print above each bar that is shown what keeps it from moving, once per bar."""
    for print_once in _printers:
        print_once(text)


@contextmanager
def progress_bar(
    wanted: bool | None, title: str, total: float, *, default: bool = True, is_even: bool = True,
    is_estimate: bool = False,
) -> Generator[Advance, None, None]:  # fmt: skip
    """Yield ``advance(amount, note)``; None shows a bar if stderr is a terminal and ``default``.

    The time left is shown if steps are even, that is, take about equally long. A total that is an
    estimate grows where it was too low, so that the bar is full only at the end.
    """
    if wanted is None:
        wanted = default and sys.stderr.isatty()
    if not wanted:
        yield lambda amount, note="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    console = Console(stderr=True)
    free = console.width - len(title) - _NUMBERS_WIDTH
    bar_column = BarColumn()
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=len(title))),
        bar_column,
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        *([TimeRemainingColumn()] * is_even),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total, note="")
        print_once = cache(bar.console.print)
        _printers.append(print_once)

        def advance(amount: float, note: str = "") -> None:
            # A long note is cut, and the bar makes room for it: never the title or the time.
            room = max(0, min(console.width // 2, free - _BAR_WIDTHS[0]))
            text = note if len(note) <= room else f"{note[: max(room - 1, 0)]}…"
            bar_column.bar_width = min(max(free - len(text), _BAR_WIDTHS[0]), _BAR_WIDTHS[1])
            state = bar.tasks[0]
            done = state.completed + amount
            bar.update(
                task, completed=done, note=text,
                total=max(state.total or 0.0, done + 1.0) if is_estimate else None,
            )  # fmt: skip

        try:
            yield advance
        finally:
            _printers.remove(print_once)
        bar.update(task, completed=bar.tasks[0].total)  # what ended early is done
