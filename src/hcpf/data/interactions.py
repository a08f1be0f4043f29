"""The observed entries of a users x items matrix, with the ids of its rows and columns."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf.data.canonical import CsrArray, Duplicates, IdArray, check_source, to_canonical
from hcpf.data.ids import Ids, as_ids, check_ids, check_length
from hcpf.errors import InputError

if TYPE_CHECKING:  # these load pyarrow
    from hcpf.data.files.opening import Paths
    from hcpf.data.read_options import Column, DuplicatesChoice, ExcludeItems, Returns
    from hcpf.data.shards.folder import Shards

logger = logging.getLogger("hcpf")

ValueArray = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Observed entries of a users x items matrix; every other pair is missing.

    Build one with ``read`` (files), ``from_frame`` (a data frame), ``from_arrays`` (ids and
    values), ``from_matrix`` or ``from_anndata``, which check their input; the constructor itself
    only takes what is already in the canonical form.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array
        Rows are users. A stored entry is an observed one, an explicit zero included. Column
        indices are sorted and unique within each row, values are float32 or float64, and the
        arrays are read-only.
    users, items : ndarray
        The ids of the rows and of the columns, unique on each axis.

    Examples
    --------
    >>> Interactions.from_matrix([[0, 3, 0], [5, 0, 0]], users=["ann", "bob"])
    Interactions(2 users x 3 items, 2 observed, sparsity 0.6667)
    """

    matrix: CsrArray
    users: IdArray
    items: IdArray

    def __post_init__(self) -> None:
        matrix = self.matrix
        if not (
            isinstance(matrix, sparse.csr_array)
            and matrix.ndim == 2
            and matrix.dtype in (np.float32, np.float64)
            and matrix.has_canonical_format
        ):
            raise InputError(
                "Interactions takes a canonical csr_array of float32 or float64. For anything "
                "else use Interactions.from_matrix()."
            )
        object.__setattr__(self, "matrix", _read_only_matrix(matrix))
        for name, expected in zip(("users", "items"), self.shape, strict=True):
            ids = check_length(name, as_ids(name, getattr(self, name)), expected)
            object.__setattr__(self, name, _read_only(ids))

    @classmethod
    def from_matrix(
        cls,
        X: Any,
        *,
        users: Ids | None = None,
        items: Ids | None = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Read a sparse or a dense matrix whose rows are users.

        Parameters
        ----------
        X : scipy sparse matrix or array of any format, or 2-D array
            Sparse: the stored entries are the observed ones, explicit zeros included. The formats
            that store whole blocks or diagonals (BSR, DIA) and dense arrays cannot tell an
            observed zero from a missing entry: there, zeros are missing. An array that already
            has the right form is used in place, not copied, so do not change it afterwards.
        users, items : sequences of str, int or UUID, optional
            The ids of the rows and of the columns; by default 0, 1, 2, ...
        duplicates : {"error", "sum", "mean", "last"}
            What to do with a pair that is stored more than once.

        Returns
        -------
        Interactions
            Values stay float32 or float64; bool, float16 and integers of up to 16 bits become
            float32, which holds them exactly, and all others float64.
        """
        source = check_source(X)
        row_ids = check_ids("users", users, source.shape[0])
        column_ids = check_ids("items", items, source.shape[1])
        return cls(to_canonical(source, duplicates, row_ids, column_ids), row_ids, column_ids)

    @classmethod
    def of_checked(cls, matrix: CsrArray, users: IdArray, items: IdArray) -> Self:
        """Return Interactions of parts in the canonical form, whose ids were checked before.

        Checking them takes longer than all else for a user who has just a few entries.
        """
        data = object.__new__(cls)
        parts = {"matrix": _read_only_matrix(matrix), "users": users, "items": items}
        vars(data).update(parts)
        return data

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: "Column",
        item: "Column",
        value: "Column | None" = None,
        duplicates: "DuplicatesChoice" = "auto",
        returns: "Returns" = "auto",
        drop_blank_ids: bool = False,
        drop_blank_values: bool = False,
        exclude_items: "ExcludeItems" = (),
        decimal: str | None = None,
    ) -> "Interactions":
        """Read a data frame with one row per observed pair, or per order.

        Parameters
        ----------
        frame : pandas, polars or Arrow data frame, or any other that narwhals knows
            Lazy frames are collected, the columns asked for only.
        user, item, value : str or int
            Columns by name, or by position from 0: an integer is always a position. Ids are
            strings, integers or UUIDs. Without a value every row counts 1.
        duplicates, returns, drop_blank_ids, drop_blank_values, exclude_items, decimal
            See `read`.

        Examples
        --------
        >>> import pyarrow
        >>> sales = pyarrow.table({"who": ["ann", "bob"], "what": ["tea", "tea"], "paid": [3, 5]})
        >>> Interactions.from_frame(sales, user="who", item="what", value="paid")
        Interactions(2 users x 1 items, 2 observed, sparsity 0)
        """
        from hcpf.data.frames import read_frame
        from hcpf.data.read_options import ReadOptions

        options = ReadOptions(
            duplicates=duplicates, returns=returns, drop_blank_ids=drop_blank_ids,
            drop_blank_values=drop_blank_values, exclude_items=exclude_items, decimal=decimal,
        )  # fmt: skip
        found = read_frame(frame, user, item, value, options)
        log_remarks(found.remarks)
        return found.data

    @classmethod
    def from_arrays(
        cls, users: Any, items: Any, values: Any = None, *, duplicates: Duplicates = "error"
    ) -> "Interactions":
        """Read parallel arrays of user ids, item ids and values (default: 1 each).

        Examples
        --------
        >>> data = Interactions.from_arrays(["ann", "bob"], ["tea", "milk"], [3.0, 5.0])
        >>> data.items.tolist()
        ['milk', 'tea']
        """
        from hcpf.data.frames import read_arrays

        return read_arrays(users, items, values, duplicates)

    @classmethod
    def read(
        cls,
        path: "Paths",
        *,
        user: "Column | None" = None,
        item: "Column | None" = None,
        value: "Column | None" = None,
        duplicates: "DuplicatesChoice" = "auto",
        returns: "Returns" = "auto",
        drop_blank_ids: bool = False,
        drop_blank_values: bool = False,
        exclude_items: "ExcludeItems" = (),
        decimal: str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        header: bool | None = True,
        sheet: str | None = None,
        sql: str | None = None,
        layer: str | None = None,
        use_raw: bool = False,
        progress: bool | None = None,
    ) -> "Interactions":
        """Read files with one row per observed pair, or per order; or an .h5ad file.

        Files are read batch by batch, and of Parquet only the columns asked for. What was decided
        about the content is logged to the logger ``hcpf``, a sentence each.

        Parameters
        ----------
        path : path, glob such as "sales-*.parquet", or a list of them
            The extension gives the format: text (.csv, .tsv, .txt), JSON lines (.jsonl, .ndjson),
            both perhaps compressed (.gz, .zst, ...); .parquet; .arrow; spreadsheets (.xlsx, .ods);
            databases (.sqlite, .db, .duckdb). Of a single AnnData file (.h5ad), one matrix is read,
            and of all other parameters only the last three apply.
        user, item, value : str or int
            Columns by name, or by position from 0. Without a value every row counts 1; a value such
            as "Quantity*UnitPrice" is the product of two columns. Ids in text files become integers
            only if nothing is lost: "007" stays text. Values may be amounts as people write them,
            such as £1,234.50 or 1.234,50 EUR.
        duplicates : {"auto", "error", "sum", "mean", "last"}
            What to do with a pair that has more than one row. "auto" sums them if the table has a
            column of dates, times or invoices (unless values are ratings); otherwise it is an
            error.
        returns : {"auto", "net", "drop", "keep", "error"}
            What to do with negative values. "net" subtracts them: all rows of a pair are summed,
            and pairs at or below 0 are left out. "drop" drops negative rows, and then pairs of 0;
            "keep" keeps them.
            "auto" is an error if less than half of the values of a column of amounts or counts are
            negative, and keeps them otherwise.
        drop_blank_ids : bool
            Whether to drop rows without a user or an item; otherwise they are an error.
        drop_blank_values : bool
            Whether to drop rows without a value: blank, NaN, or a text such as "n/a", "NULL" or
            "-"; otherwise they are an error.
        exclude_items : str, path or list of them
            Items to leave out, such as postage: ids, patterns with * and ?, or files with one per
            line.
        decimal : {".", ","}, optional
            The decimal mark of amounts in text. By default all values of the column decide it.
        encoding : str, optional
            Of text files. By default UTF-8 and UTF-16 are detected, and other files are taken for
            Windows-1252.
        delimiter : str, optional
            Of text files; by default detected from the first line.
        header : bool or None
            Whether the first line of text files and spreadsheets names the columns; None detects
            it.
        sheet : str, optional
            Name of the sheet of a spreadsheet; by default the first one with two columns.
        sql : str, optional
            Query for a database; by default its only table is read.
        layer, use_raw
            Of an .h5ad file; see ``from_anndata``.
        progress : bool, optional
            Whether to show a progress bar; by default only in a terminal.
        """
        from hcpf.data.annotated import find_h5ad, read_h5ad
        from hcpf.data.read_options import ReadOptions
        from hcpf.data.readers import FileSet, open_files

        options = ReadOptions(
            duplicates=duplicates, returns=returns, drop_blank_ids=drop_blank_ids,
            drop_blank_values=drop_blank_values, exclude_items=exclude_items, decimal=decimal,
            encoding=encoding, delimiter=delimiter, header=header, sheet=sheet, sql=sql,
            layer=layer, use_raw=use_raw,
        )  # fmt: skip
        h5ad = find_h5ad(path, user=user, item=item, value=value)
        if h5ad is not None:
            data, remarks = read_h5ad(h5ad, options, progress)
            log_remarks(remarks, logging.WARNING)
            return data
        if user is None or item is None:
            raise InputError(f"Reading {path} requires user= and item=, the columns of both.")
        files = FileSet.of(open_files(path, options), user, item, value, options)
        found = files.entries(progress=progress)
        log_remarks(found.remarks)
        return found.data

    @classmethod
    def from_anndata(
        cls, adata: Any, *, layer: str | None = None, use_raw: bool = False
    ) -> "Interactions":
        """Read cells x genes (observations x variables); zeros are missing.

        A matrix that is still in its file (``backed="r"``) is read in pieces. A warning of the
        logger "hcpf" names values that do not look like raw counts: negative ones and fractions.

        Parameters
        ----------
        adata : anndata.AnnData
            Names of observations and variables become the ids.
        layer : str, optional
            The layer to read instead of ``X``.
        use_raw : bool, default False
            Whether to read ``adata.raw``, whose variables may be others, instead of ``X``.
        """
        from hcpf.data.annotated import from_anndata

        data, remarks = from_anndata(adata, layer, use_raw)
        log_remarks(remarks, logging.WARNING)
        return data

    @property
    def n_users(self) -> int:
        """The number of rows."""
        return self.shape[0]

    @property
    def n_items(self) -> int:
        """The number of columns."""
        return self.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        n_users, n_items = self.matrix.shape
        return int(n_users), int(n_items)

    @property
    def n_observed(self) -> int:
        """The number of observed entries."""
        return int(self.matrix.nnz)

    @property
    def density(self) -> float:
        """The share of pairs that are observed."""
        return self.n_observed / (self.n_users * self.n_items)

    @property
    def sparsity(self) -> float:
        """The share of pairs that are missing."""
        return 1.0 - self.density

    @property
    def values(self) -> ValueArray:
        """The observed values, user by user, each user's in the order of the items."""
        return self.matrix.data

    def without(self, entries: NDArray[np.int64]) -> "Interactions":
        """Return the same interactions without the entries at some positions."""
        from hcpf.data.sampling import drop_entries

        matrix = drop_entries(self.matrix, entries)
        if sparse.issparse(matrix):
            return Interactions(matrix, self.users, self.items)
        data = object.__new__(Interactions)  # its entries stay on disk
        vars(data).update(matrix=matrix, users=self.users, items=self.items)
        return data

    def to_shards(self, folder: str | Path, *, n_shards: int = 1, append: bool = False) -> "Shards":
        """Write these interactions to a folder, from which they are read without being loaded.

        Users keep their order. Each shard holds a range of them with all their entries, about as
        many in each shard. The folder counts only when all of it is written.

        Parameters
        ----------
        folder : path
            A new folder, or one with shards if ``append``.
        n_shards : int
            The number of shards: 1 for one process, and at least as many as workers for several.
        append : bool
            Whether to add the users to shards that are there already, as further shards. They must
            be new users; items may be new or known.

        Returns
        -------
        Shards
            All that the folder holds.
        """
        from hcpf.data.shards.folder import write_shards

        return write_shards(self, folder, n_shards=n_shards, append=append)

    def __repr__(self) -> str:
        return (
            f"Interactions({self.n_users} users x {self.n_items} items, "
            f"{self.n_observed} observed, sparsity {self.sparsity:.4g})"
        )


def log_remarks(remarks: Iterable[str], level: int = logging.INFO) -> None:
    """Log what was decided or looks wrong, a sentence each."""
    for remark in remarks:
        logger.log(level, remark)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view; the caller's own array stays writable."""
    view = array.view()
    view.flags.writeable = False
    return view


def _read_only_matrix(matrix: CsrArray) -> CsrArray:
    parts = (_read_only(matrix.data), _read_only(matrix.indices), _read_only(matrix.indptr))
    frozen = sparse.csr_array(parts, shape=matrix.shape)
    frozen.has_canonical_format = True
    return frozen
