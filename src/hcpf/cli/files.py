"""Output files: refused before any work is done, whole or not there, never replaced silently."""

import os
import secrets
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hcpf.cli.screen import note
from hcpf.errors import InputError

TABLES = (".parquet", ".csv", ".tsv")
_MANY = 1_000_000


def prepare_file(path: Path, *, overwrite: bool = True) -> None:
    """Find out before any work is done whether ``path`` can be written; make its folder."""
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it exists and is not a regular file.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already: pass --overwrite to replace it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"cannot write {path}: its path leads through a file.") from None
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: no permission to create files in {path.parent}.")


def prepare_table(path: Path, *, overwrite: bool) -> None:
    """The same for a table, whose ending tells the format."""
    if path.suffix.lower() not in TABLES:
        raise InputError(f"cannot tell the format of {path}: end its name in {', '.join(TABLES)}.")
    prepare_file(path, overwrite=overwrite)


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a name to write to; the file gets its own name when it is complete, and we say so."""
    target = path.resolve()  # a symbolic link stays one: what it points to is replaced
    existed = target.exists()
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        size = partial.stat().st_size
        partial.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        with suppress(OSError):  # what went wrong before matters more
            partial.unlink(missing_ok=True)
    note(f"{'Overwrote' if existed else 'Wrote'} {path} ({readable_size(size)}).")


def write_file(path: Path, content: bytes) -> None:
    """Write all of ``content`` or nothing, and say where it went and whether it replaced a file."""
    with replacing(path) as partial:
        partial.write_bytes(content)


def write_table(path: Path, parts: Iterable[Any], total: int = 0) -> int:
    """Write Arrow tables one after the other, as Parquet, CSV or TSV; returns the rows.

    A bar is shown at a terminal if the ``total`` of rows is known and not small.
    """
    from pyarrow import csv, parquet

    from hcpf._progress import progress_bar

    rows, writer = 0, None
    bar = progress_bar(None, "Writing", total, default=total > _MANY)
    with replacing(path) as partial, bar as advance:
        try:
            for table in parts:
                if writer is not None:
                    pass
                elif path.suffix.lower() == ".parquet":
                    writer = parquet.ParquetWriter(partial, table.schema)
                else:
                    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
                    options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
                    writer = csv.CSVWriter(str(partial), table.schema, write_options=options)
                writer.write_table(table)
                rows += table.num_rows
                advance(table.num_rows, f"{rows:,} rows")
            if writer is None:
                raise InputError("There is nothing to write.")
        finally:
            if writer is not None:
                writer.close()
    return rows


def readable_size(n_bytes: int) -> str:
    """Write a number of bytes for people.

    >>> readable_size(512), readable_size(81_920), readable_size(3_400_000)
    ('512 bytes', '82 kB', '3.4 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 999_500 else f"{n_bytes / 1e6:.1f} MB"
