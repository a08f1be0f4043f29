"""Ids in Parquet files of one column."""

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from hcpf.data.canonical import IdArray
from hcpf.errors import HcpfError

_MAX_UNPACKING = 1000  # bytes that one byte of an id file may become


def write_ids(path: Path, ids: IdArray, error_type: type[HcpfError]) -> None:
    """Write ids as one column; ids that Parquet cannot hold raise ``error_type``."""
    if len(ids) and isinstance(ids.flat[0], uuid.UUID):
        column = pa.array([value.bytes for value in ids], pa.binary(16))
    else:
        try:
            column = pa.array(ids)
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise error_type(f"These ids cannot be saved: {error}.") from None
    parquet.write_table(pa.table({"id": column}), path)


def read_ids(path: Path, expected: int, error_type: type[HcpfError]) -> IdArray:
    """Read what ``write_ids`` wrote; refuse other numbers of ids before they are unpacked."""
    try:
        with parquet.ParquetFile(path, read_dictionary=["id"]) as file:
            _check_size(path, file.metadata, expected, error_type)
            column = file.read(["id"]).column("id").combine_chunks()
        order = None
        if isinstance(column, pa.DictionaryArray):
            # Repeated ids are not unpacked: a few bytes could become gigabytes.
            if len(column.dictionary) != len(column):
                raise error_type(f"{path.name} contains an id more than once.")
            # Not dictionary_decode, which loads pyarrow.compute.
            column, order = column.dictionary, column.indices.to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise error_type(f"{path.name} cannot be read: {error}.") from None
    if pa.types.is_integer(column.type) and not column.null_count:
        return np.from_dlpack(column)  # to_numpy would load pandas
    values = column.to_pylist()
    if order is not None:
        values = [None if j is None else values[j] for j in order]
    if pa.types.is_fixed_size_binary(column.type):
        values = [uuid.UUID(bytes=value) for value in values]
    elif not all(isinstance(value, str) for value in values):
        raise error_type(f"{path.name} contains values that are not ids.")
    ids = np.empty(len(values), dtype=object)
    ids[:] = values
    return ids


def _check_size(path: Path, about: Any, expected: int, error_type: type[HcpfError]) -> None:
    """Raise an error if a file has another number of ids, or unpacks to far more bytes."""
    if about.num_rows != expected:
        raise error_type(f"{path.name} has {about.num_rows} ids instead of {expected}.")
    unpacked = sum(about.row_group(j).total_byte_size for j in range(about.num_row_groups))
    if unpacked > max(_MAX_UNPACKING * path.stat().st_size, 1 << 26):
        raise error_type(f"{path.name} unpacks to {unpacked} bytes, which ids do not.")
