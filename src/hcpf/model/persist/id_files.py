"""Ids as Parquet files."""

import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from hcpf.data.canonical import IdArray
from hcpf.errors import ModelError


def write_ids(path: Path, ids: IdArray) -> None:
    """Write ids as one column."""
    if len(ids) and isinstance(ids.flat[0], uuid.UUID):
        column = pa.array([value.bytes for value in ids], pa.binary(16))
    else:
        try:
            column = pa.array(ids)
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise ModelError(f"These ids cannot be saved: {error}.") from None
    parquet.write_table(pa.table({"id": column}), path)


def read_ids(path: Path) -> IdArray:
    """Read what ``write_ids`` wrote."""
    try:
        column = parquet.read_table(path).column("id").combine_chunks()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ModelError(f"{path.name} cannot be read: {error}.") from None
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()
    values = column.to_pylist()
    if pa.types.is_fixed_size_binary(column.type):
        values = [uuid.UUID(bytes=value) for value in values]
    elif not all(isinstance(value, str) for value in values):
        raise ModelError(f"{path.name} holds something other than ids.")
    ids = np.empty(len(values), dtype=object)
    ids[:] = values
    return ids
