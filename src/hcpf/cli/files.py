"""Output files: checked before any work is done, complete or absent, never replaced silently."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hcpf.cli.screen import note
from hcpf.errors import InputError


def prepare_file(path: Path, *, overwrite: bool = True) -> None:
    """Check before any work is done that ``path`` can be written, and make its folder."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be written: it exists and is not a regular file.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already. Pass --overwrite to replace it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{path} cannot be written: its path leads through a file.") from None
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: no permission to write to {path.parent}.")


def prepare_table(path: Path, *, overwrite: bool) -> None:
    """Check the same for a table, whose ending tells the format."""
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
