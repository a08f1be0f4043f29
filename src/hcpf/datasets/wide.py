"""Wide tables, a row for each gene or molecule: Geuvadis and the Merck challenge."""

import csv as text_csv
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from scipy import sparse

from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Stream, Wanted, open_files, reading
from hcpf.datasets.tables import check_duplicates
from hcpf.errors import InputError

_MERCK = Wanted(
    "the Merck challenge: ACT*_training.csv with MOLECULE, Act and the descriptors D_...",
    ("ACT*_training.csv",),
    many=True,
)
_GEUVADIS = Wanted(
    "Geuvadis expression: a table separated by tabs with TargetID, Gene_Symbol, Chr, Coord and "
    "the samples, such as GD462.GeneQuantRPKM.50FN.samplename.resk10.txt.gz",
    ("GD*.txt",),
)
_BLOCK = 1 << 24  # bytes read at once; a row of many columns must fit in


@dataclass
class _Cells:
    """The cells that are not 0, of one table after another."""

    delimiter: str
    leading: tuple[str, ...]
    """The columns before the values, the ids of the rows first; capitals do not count."""
    dtype: type[np.float32] | type[np.float64]
    rows: dict[str, int] = field(default_factory=dict[str, int])
    columns: dict[str, int] = field(default_factory=dict[str, int])
    _row: list[NDArray[np.int32]] = field(default_factory=list[NDArray[np.int32]])
    _column: list[NDArray[np.int32]] = field(default_factory=list[NDArray[np.int32]])
    _value: list[NDArray[Any]] = field(default_factory=list[NDArray[Any]])

    def add_table(self, stream: Stream) -> None:
        """Take in a table that begins with the names of its columns."""
        header = stream.readline().decode("utf-8-sig").rstrip("\r\n")
        names = next(text_csv.reader([header], delimiter=self.delimiter), [])
        found = tuple(name.lower() for name in names[: len(self.leading)])
        if found != tuple(name.lower() for name in self.leading):
            raise InputError(f"its first columns are {', '.join(names[: len(self.leading)])!r}")
        if len(names) == len(self.leading):
            raise InputError("it has no columns of values")
        if len(set(names)) < len(names):
            raise InputError("two of its columns have the same name")
        codes = self._codes(self.columns, names[len(self.leading) :])
        values = pa.float32() if self.dtype is np.float32 else pa.float64()
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=_BLOCK, column_names=names),
            parse_options=csv.ParseOptions(delimiter=self.delimiter),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, values)
                | dict.fromkeys(names[: len(self.leading)], pa.string()),
                include_columns=[names[0], *names[len(self.leading) :]],
            ),
        )
        for batch in reader:
            self._add_batch(batch, codes)

    def matrix(self) -> Any:
        """All cells as a sparse matrix, repeated ones side by side."""
        if not self._value or not sum(map(len, self._value)):
            raise InputError("it has no value other than 0")
        parts = [np.concatenate(part) for part in (self._value, self._row, self._column)]
        shape = len(self.rows), len(self.columns)
        return sparse.coo_array((parts[0], (parts[1], parts[2])), shape=shape)

    def _add_batch(self, batch: Any, codes: NDArray[np.int32]) -> None:
        dense = np.empty((len(codes), batch.num_rows), self.dtype)
        for place, column in enumerate(batch.columns[1:]):
            dense[place] = column.to_numpy(zero_copy_only=False)
        if np.isnan(dense).any():
            raise InputError("a cell is empty or not a number")
        column, row = np.nonzero(dense)
        rows = self._codes(self.rows, batch.column(0).to_pylist())
        self._row.append(rows[row])
        self._column.append(codes[column])
        self._value.append(dense[column, row])

    @staticmethod
    def _codes(known: dict[str, int], names: list[str]) -> NDArray[np.int32]:
        return np.array([known.setdefault(name, len(known)) for name in names], np.int32)


def _read(path: PathLike, wanted: Wanted, cells: _Cells, duplicates: Duplicates) -> Interactions:
    check_duplicates(duplicates)
    with reading(path, wanted):
        for stream in open_files(path, wanted):
            cells.add_table(stream)
        matrix = cells.matrix()
    try:
        return Interactions.from_matrix(
            matrix, users=list(cells.rows), items=list(cells.columns), duplicates=duplicates
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def merck(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    """Read the Merck molecular activity challenge: molecules x descriptors, how often they occur.

    The measured activity (``Act``) is not read.

    Parameters
    ----------
    path : path
        One ``ACT*_training.csv``; or a folder or an archive (``TrainingSet.zip``), of which all
        are read. Descriptors that a file does not have are missing for its molecules.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a molecule that is there more than once. The published files have none.
    """
    return _read(path, _MERCK, _Cells(",", ("MOLECULE", "Act"), np.float32), duplicates)


def geuvadis(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    """Read Geuvadis: genes x people, the expression.

    Parameters
    ----------
    path : path
        Such as ``GD462.GeneQuantRPKM.50FN.samplename.resk10.txt.gz`` or
        ``GD660.GeneQuantRPKM.txt``, packed or not. Zeros are missing. The tables with ``resk10``
        in their names are corrected for hidden factors and hold negative values too.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a gene that is there more than once. The published files have none.
    """
    leading = ("TargetID", "Gene_Symbol", "Chr", "Coord")
    return _read(path, _GEUVADIS, _Cells("\t", leading, np.float64), duplicates)
