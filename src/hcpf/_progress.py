"""Progress bars for long work: on a terminal, on stderr, and only when it takes a while."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Protocol


class Advance(Protocol):
    """Moves the bar on by some amount, with a note next to it."""

    def __call__(self, amount: float, note: str = "") -> None: ...


_printers: list[Callable[[str], None]] = []
"""One per bar that is shown: prints a line above it."""


def announce(text: str) -> None:
    """Print above each bar that is shown what keeps it from moving, once per bar."""
    for print_once in _printers:
        print_once(text)


@contextmanager
def progress_bar(
    wanted: bool | None, title: str, total: float, *, default: bool = True
) -> Generator[Advance, None, None]:
    """Yield ``advance(amount, note)``; None shows a bar if stderr is a terminal and ``default``."""
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
    room = console.width // 2  # a long note is cut, not the title or the time
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=len(title))),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True, max_width=room)),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total, note="")
        print_once = cache(bar.console.print)
        _printers.append(print_once)
        try:
            yield lambda amount, note="": bar.update(task, advance=amount, note=note)
        finally:
            _printers.remove(print_once)
        bar.update(task, completed=total)  # what converged early, or was overestimated, is done
