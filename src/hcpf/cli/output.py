"""Output: tables for a terminal, tab-separated rows for a pipe, JSON for machines, and files.

Results go to stdout, everything else to stderr. Files are checked before any work is done and are
complete or absent.
"""

import json
import math
import shutil
import sys
import textwrap
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel
    from hcpf.model.tables import Table

_BLOCKS = " ▏▎▍▌▋▊▉█"  # eighths of a character
_MAX_BAR_WIDTH = 50  # characters
_MAX_NOTE = 5000  # characters
_MIN_TEXT_WIDTH = 8  # characters of a text that is cut


def note(text: str) -> None:
    """Print to stderr what was decided or done; the name of a column may have megabytes."""
    if len(text) > _MAX_NOTE:
        text = f"{text[:_MAX_NOTE]} …"
    typer.echo(wrapped(text, at_terminal=sys.stderr.isatty()), err=True)


def note_period(model: "FittedModel") -> None:
    """Tell a person at a terminal which period probabilities refer to, if the data had dates."""
    period = model.words.period if model.value_model.train_on == "full" else ""
    if period and sys.stderr.isatty():
        note(f"A probability refers to a period as long as that of the data ({period}).")


def wrapped(text: str, *, at_terminal: bool, indent: str = "") -> str:
    """Return text with line breaks between words at a terminal, and none in a pipe."""
    if not at_terminal:
        return text
    return textwrap.fill(
        text, shutil.get_terminal_size().columns - 1, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def size(n_users: int, n_items: int) -> str:
    """Return the numbers of users and items in words.

    >>> size(1, 3648)
    '1 user x 3,648 items'
    """
    from hcpf.data.words import count

    return f"{count(n_users, 'user')} x {count(n_items, 'item')}"


def for_terminal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a prediction with its interval, and the numbers of entries behind it, as one text.

    >>> shown = for_terminal({"low": 4.0581, "high": 1061.27, "user_entries": 5})
    >>> shown["interval"], shown["entries"]
    ('4.058 – 1,061', '5 / –')
    """
    record = {"user_entries": None, "item_entries": None, **record}
    bounds = number(record["low"]), number(record["high"])
    entries = number(record["user_entries"]), number(record["item_entries"])
    return {**record, "interval": " – ".join(bounds), "entries": " / ".join(entries)}


def number(value: Any) -> str:
    """Return a number in text, with four digits.

    >>> number(1234567), number(0.123456), number(None), number(1234.5), number(0.00001234)
    ('1,234,567', '0.1235', '–', '1,234', '1.234e-05')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1000 and math.isfinite(value)):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:.4g}"


def or_dash(value: Any) -> str:
    """Return a text, or a dash for None."""
    return "–" if value is None else str(value)


def percent(value: float) -> str:
    """Return a share in percent.

    >>> percent(0.5), percent(0.98321), percent(0.0604), percent(0.0001)
    ('50.0%', '98.3%', '6.0%', '0.01%')
    """
    return f"{100 * value:.1f}%" if abs(value) >= 0.01 else f"{100 * value:.2g}%"


def duration(seconds: float | None) -> str:
    """Return a time in seconds.

    >>> duration(0.123), duration(12.345), duration(4321.0), duration(None)
    ('0.1 s', '12 s', '4,321 s', '–')
    """
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


@dataclass(frozen=True)
class Field:
    """A column of a table: its name in a pipe, its heading and its format at a terminal."""

    name: str
    heading: str
    show: Callable[[Any], str] = number
    right: bool = True
    wraps: bool = False
    """Whether a text that is too long takes several lines instead of being cut."""


def show_json(value: Any) -> None:
    """Print JSON to stdout; NaN and infinity, which JSON lacks, become null."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, uuid.UUID) else value


def show_rows(
    fields: Sequence[Field], records: Iterable[Mapping[str, Any]], title: str = ""
) -> None:
    """Print a table at a terminal; tab-separated rows under a header into a pipe."""
    if not sys.stdout.isatty():
        typer.echo("\t".join(field.name for field in fields))
        for record in records:
            typer.echo("\t".join(_cell(record[field.name]) for field in fields))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as ScreenTable
    from rich.text import Text

    records = list(records)
    cells = [[field.show(record[field.name]) for field in fields] for record in records]
    console = Console()
    widths = _widths(fields, cells, console.width)
    table = ScreenTable(
        box=box.SIMPLE_HEAD, title=Text(title) if title else None, title_justify="left",
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for field, width in zip(fields, widths, strict=True):
        side = "right" if field.right else "left"
        table.add_column(field.heading, justify=side, width=width, overflow="ellipsis")
    for record, row in zip(records, cells, strict=True):
        bold = "bold" if record.get("best") else None
        shown = (
            Text(cell, no_wrap=not field.wraps, overflow="fold" if field.wraps else "ellipsis")
            for field, cell in zip(fields, row, strict=True)
        )
        table.add_row(*shown, style=bold)
    console.print(table)


def _widths(fields: Sequence[Field], cells: list[list[str]], room: int) -> list[int]:
    """Return widths that fit cells and headings; the widest texts are cut, never a number."""
    widths = [
        max(
            _heading_width(field.heading),
            max((len(row[j]) for row in cells), default=0),
        )
        for j, field in enumerate(fields)
    ]
    texts = [j for j, field in enumerate(fields) if not field.right]
    over = sum(widths) + 2 * len(fields) + 2 - room
    while over > 0 and texts:
        widest = max(texts, key=lambda j: widths[j])
        if widths[widest] <= _MIN_TEXT_WIDTH:
            break
        widths[widest] -= 1
        over -= 1
    return widths


def _heading_width(heading: str) -> int:
    """Return the smallest width at which a heading takes at most two lines.

    >>> _heading_width("Share of the rate"), _heading_width("Rank")
    (8, 4)
    """
    words = heading.split()
    lines = ((" ".join(words[:n]), " ".join(words[n:])) for n in range(1, len(words) + 1))
    return min((max(map(len, pair)) for pair in lines), default=0)


def _cell(value: Any) -> str:
    """Return a value for a pipe: numbers that programs read, text without tabs or line breaks."""
    if value is None:
        return ""
    if isinstance(value, int | float) and math.isfinite(value):
        return number(value).replace(",", "")
    return str(value).replace("\t", " ").replace("\n", " ")


def show_facts(facts: Mapping[str, Any], title: str = "") -> None:
    """Print names and values, one per line."""
    if title:
        typer.secho(title, bold=True)  # which is dropped in a pipe
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        lines = value if isinstance(value, list) else [value]
        for position, line in enumerate(lines):
            text = f"  {name if position == 0 else '':<{width}}  {number(line)}"
            typer.echo(wrapped(text, at_terminal=sys.stdout.isatty(), indent=" " * (width + 4)))


def element_text(about: Mapping[str, Any]) -> str:
    """Return the description of a value model with the parameters of its element.

    >>> gamma = {"name": "gamma", "parameters": {"shape": 2.0, "rate": 0.05}}
    >>> element_text({"description": "gamma per item", "element": gamma})
    'gamma per item (shape 2, rate 0.05)'
    """
    given = about["element"]["parameters"].items()
    parameters = ", ".join(f"{name} {number(float(value))}" for name, value in given)
    return f"{about['description']} ({parameters})" if parameters else about["description"]


def elbo_text(about: Mapping[str, Any]) -> Any:
    """Return the ELBO, and the tempering if it is not that of the ordinary posterior."""
    if about["elbo"] is None or about["tempering"] == 1.0:
        return about["elbo"]
    return f"{number(about['elbo'])}, tempered by {about['tempering']:.4g}"


def ending_text(about: Mapping[str, Any]) -> str:
    """Return the number of passes and why training stopped.

    >>> about = {"passes": 40, "max_iter": 300, "tol": 1e-4, "fits": 4}
    >>> for ended in ("converged", "max_iter"):
    ...     ending_text({**about, "ended": ended})
    '40 in the first fit, all converged'
    '40 in the first fit, not all converged at the limit of 300'
    """
    is_one = about["fits"] == 1
    passes = f"{about['passes']:,}" + ("" if is_one else " in the first fit")
    if about["ended"] == "converged":
        return f"{passes}, {'converged' if is_one else 'all converged'}"
    if about["ended"] == "interrupted":
        return f"{passes}, interrupted by Ctrl-C"
    if about["tol"] == 0:
        return f"{passes}, without early stopping"
    limit = f"converged at the limit of {about['max_iter']}"
    return f"{passes}, not {limit}" if is_one else f"{passes}, not all {limit}"


def bars(bins: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line per bin of a histogram: its bounds, a bar, and its share."""
    total, highest = (function(bin["count"] for bin in bins) for function in (sum, max))
    labels = [_bin_label(bin["low"], bin["high"]) for bin in bins]
    margin = max(map(len, labels))
    width = max(10, min(_MAX_BAR_WIDTH, shutil.get_terminal_size().columns - margin - 14))
    lines: list[str] = []
    for label, bin in zip(labels, bins, strict=True):
        eighths = round(8 * width * bin["count"] / highest) or int(bin["count"] > 0)
        bar = "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
        lines.append(f"{label:>{margin}}  {bar:<{width}}  {100 * bin['count'] / total:5.1f}%")
    return lines


def _bin_label(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    return " – ".join(f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}" for x in (low, high))


def prepare_file(path: Path, *, overwrite: bool = True) -> None:
    """Check before any work is done that ``path`` can be written, and make its folder."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be written: it exists and is not a regular file.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already. Pass --overwrite to replace it.")
    prepare_folder(path)


def prepare_folder(path: Path) -> None:
    """Make the folder that ``path`` is to be written to, and check that it can be written to."""
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file is the only sure test: permissions say little of a full or a read-only disk.
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(b"hcpf")
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{path} cannot be written: its path leads through a file.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None


def prepare_table(path: Path, *, overwrite: bool) -> None:
    """Check the same for a table, whose extension gives the format."""
    from hcpf.model.tables import FILE_ENDINGS

    if path.suffix.lower() not in FILE_ENDINGS:
        raise InputError(f"{path}: unknown format. End its name in {', '.join(FILE_ENDINGS)}.")
    prepare_file(path, overwrite=overwrite)


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a temporary path whose file replaces ``path`` when it is complete; report it."""
    from hcpf.io import atomic_path

    existed = path.exists()
    try:
        with atomic_path(path) as partial:
            yield partial
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    note_written(path, replaced=existed)


def write_file(path: Path, content: bytes) -> None:
    """Write all of ``content`` or nothing, and report it."""
    with replacing(path) as partial:
        partial.write_bytes(content)


def write_table(path: Path, parts: "Iterable[Table]", *, overwrite: bool, total: int = 0) -> int:
    """Write tables to one file, report it, and return the number of rows.

    A progress bar is shown where the total of rows is known. Parquet keeps full precision; text
    files and spreadsheets have four significant digits.
    """
    from hcpf.model.tables import write_tables

    existed = path.exists()
    if path.suffix.lower() != ".parquet":
        parts = (part.rounded() for part in parts)
    progress = None if total else False
    rows = write_tables(path, parts, overwrite=overwrite, total=total, progress=progress)
    note_written(path, replaced=existed)
    return rows


def note_written(path: Path, *, replaced: bool) -> int:
    """Report on stderr what was written; return the bytes of the file, or of a folder's files."""
    files = list(path.iterdir()) if path.is_dir() else [path]
    n_bytes = sum(file.stat().st_size for file in files)
    note(f"{'Overwrote' if replaced else 'Wrote'} {path} ({readable_size(n_bytes)}).")
    return n_bytes


def readable_size(n_bytes: int) -> str:
    """Return a number of bytes in text.

    >>> readable_size(512), readable_size(81_920), readable_size(3_400_000)
    ('512 bytes', '82 kB', '3.4 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 999_500 else f"{n_bytes / 1e6:.1f} MB"
