"""Pairs of ids in files, in the order of the rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from hcpf.data.frames import Column
from hcpf.data.readers import Wanted, find_files, reader_of
from hcpf.errors import InputError


def read_pairs(
    paths: str | Path, first: Column, second: Column, *, delimiter: str | None = None,
    header: bool = True,
) -> Iterator[tuple[list[Any], list[Any]]]:  # fmt: skip
    """Yield two columns of files batch by batch; text files give text."""
    wanted = Wanted(first, second, None, delimiter, header)
    for path in find_files(paths):
        try:
            for batch, _ in reader_of(path)(path, wanted):
                yield batch.column(0).to_pylist(), batch.column(1).to_pylist()
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            lines = str(error).splitlines() or [type(error).__name__]
            raise InputError(f"{path} cannot be read: {lines[0]}") from None
