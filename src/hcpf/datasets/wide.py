"""Readers of wide tables, with a row per gene or molecule: Geuvadis and the Merck challenge."""

import csv as text_csv
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from scipy import sparse

from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Source, Stream, read_source
from hcpf.errors import InputError

_MERCK = Source(
    "the Merck challenge: ACT*_training.csv with MOLECULE, Act and the descriptors D_...",
    ("ACT*_training.csv",),
    many=True,
)
_GEUVADIS = Source(
    "Geuvadis expression: a table separated by tabs with TargetID, Gene_Symbol, Chr, Coord and "
    "the samples, such as GD462.GeneQuantRPKM.50FN.samplename.resk10.txt.gz",
    ("GD*.txt",),
)
_BLOCK_BYTES = 1 << 24  # read at once; a row of many columns must fit in


def merck(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    """Read the Merck molecular activity challenge: molecules x descriptors, how often they occur.

    The measured activity (``Act``) is not read.

    Parameters
    ----------
    path : path
        One ``ACT*_training.csv``; or a folder or an archive (``TrainingSet.zip``), of which all
        are read. Descriptors that a file does not have are missing for its molecules.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a molecule. The published files have none.
    """
    table = _WideTable(",", ("MOLECULE", "Act"), np.float32)
    return read_source(path, _MERCK, duplicates, table.add, table.finish)


def geuvadis(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    """Read Geuvadis: genes x people, the expression.

    Parameters
    ----------
    path : path
        Such as ``GD462.GeneQuantRPKM.50FN.samplename.resk10.txt.gz`` or
        ``GD660.GeneQuantRPKM.txt``, packed or not. Zeros are missing. The tables with ``resk10``
        in their names are corrected for hidden factors and hold negative values too.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a gene. The published files have none.
    """
    table = _WideTable("\t", ("TargetID", "Gene_Symbol", "Chr", "Coord"), np.float64)
    return read_source(path, _GEUVADIS, duplicates, table.add, table.finish)


class _WideTable:
    """The cells other than 0 of one or more files.

    ``leading`` are the columns before the values, the ids of the rows first.
    """

    def __init__(self, delimiter: str, leading: Sequence[str], dtype: type[Any]) -> None:
        self._delimiter, self._leading, self._dtype = delimiter, leading, np.dtype(dtype)
        self._rows: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._entries: list[tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32]]] = []

    def add(self, stream: Stream) -> None:
        """Add a file that begins with the names of its columns."""
        names = self._names(stream.readline().decode("utf-8-sig").rstrip("\r\n"))
        leading, others = names[: len(self._leading)], names[len(self._leading) :]
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES, column_names=names),
            parse_options=csv.ParseOptions(delimiter=self._delimiter),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(others, pa.from_numpy_dtype(self._dtype))
                | dict.fromkeys(leading, pa.string()),
                include_columns=[names[0], *others],
            ),
        )
        column_codes = _codes(self._columns, others)
        for batch in reader:
            dense = np.empty((len(others), batch.num_rows), self._dtype)
            for position, column in enumerate(batch.columns[1:]):
                dense[position] = column.to_numpy(zero_copy_only=False)
            if np.isnan(dense).any():
                raise InputError("a cell is empty or not a number")
            column, row = np.nonzero(dense)
            row_codes = _codes(self._rows, batch.column(0).to_pylist())
            self._entries.append((dense[column, row], row_codes[row], column_codes[column]))

    def finish(self) -> Callable[[Duplicates], Interactions]:
        """Check that there are entries; return how to merge them."""
        if not any(len(values) for values, _, _ in self._entries):
            raise InputError("it has no value other than 0")
        values, rows, columns = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        shape = len(self._rows), len(self._columns)
        matrix: Any = sparse.coo_array((values, (rows, columns)), shape=shape)
        users, items = list(self._rows), list(self._columns)
        build = partial(Interactions.from_matrix, matrix, users=users, items=items)
        return lambda duplicates: build(duplicates=duplicates)

    def _names(self, header: str) -> list[str]:
        names = next(text_csv.reader([header], delimiter=self._delimiter), [])
        leading = names[: len(self._leading)]
        if [name.lower() for name in leading] != [name.lower() for name in self._leading]:
            raise InputError(f"its first columns are {', '.join(leading)!r}")
        if len(names) == len(leading):
            raise InputError("it has no columns of values")
        if len(set(names)) < len(names):
            raise InputError("two of its columns have the same name")
        return names


def _codes(known: dict[str, int], names: list[str]) -> NDArray[np.int32]:
    return np.array([known.setdefault(name, len(known)) for name in names], np.int32)
