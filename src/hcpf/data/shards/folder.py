"""`Shards`: interactions whose entries stay on disk."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import flag, whole
from hcpf.data.canonical import IdArray
from hcpf.data.id_files import read_ids
from hcpf.data.interactions import Interactions, log_remarks
from hcpf.data.sampling import sample_rows
from hcpf.data.shards.files import check_contents, map_array
from hcpf.data.shards.manifest import Manifest, ShardRecord, ValueSummary, read_manifest
from hcpf.data.shards.matrix import ShardArrays, StoredMatrix
from hcpf.data.shards.writing import (
    SCRATCH,
    Block,
    balanced_cuts,
    folder_writer,
    matrix_blocks,
    place_items,
    relabel,
    require_new_users,
    split_blocks,
)
from hcpf.errors import ParameterError, ShardError
from hcpf.io import as_mounted_path

if TYPE_CHECKING:
    from hcpf.data.files.opening import Paths
    from hcpf.data.read_options import Column, DuplicatesChoice, ExcludeItems, Returns


class Shards(Interactions):
    """Interactions in a folder on disk, in one or more shards of users.

    It is taken wherever Interactions are. Its ``matrix`` reads entries from memory-mapped files;
    what requires them in memory raises an InputError. Write shards with ``Interactions.to_shards``,
    ``Shards.from_files`` or ``simulate(..., shards=folder)``.

    Attributes
    ----------
    folder : Path
        Where the shards are.
    scratch : Path
        Where a fit writes its temporary files, 8 to 16 bytes per entry.
    digest : str
        A checksum of the whole content: folders that share it hold the same entries.

    Examples
    --------
    >>> import tempfile
    >>> data = Interactions.from_matrix([[0, 3, 0], [5, 0, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data.to_shards(Path(folder) / "shards", n_shards=2)
    Shards(2 users x 3 items, 3 observed, 2 shards)
    """

    folder: Path
    scratch: Path
    manifest: Manifest

    @classmethod
    def open(
        cls, folder: str | Path, *, check: bool = True, scratch: str | Path | None = None
    ) -> Self:
        """Open a folder of shards.

        Parameters
        ----------
        folder : path
            A folder written by ``to_shards``, ``from_files`` or ``hcpf shard``.
        check : bool
            Whether to compare every file with its checksum, which reads all of them once. The sizes
            of the files are always compared.
        scratch : path, optional
            A folder on a fast disk for the temporary files of a fit; by default the subfolder
            "scratch".
        """
        path = as_mounted_path("folder", folder)
        check = flag("check", check)
        manifest = read_manifest(path)
        _check_files(path, manifest.shards, check=check)
        return cls._of(path, manifest, scratch)

    @classmethod
    def from_files(
        cls,
        path: "Paths",
        folder: str | Path,
        *,
        user: "Column",
        item: "Column",
        value: "Column | None" = None,
        n_shards: int = 1,
        append: bool = False,
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
        progress: bool | None = None,
    ) -> Self:
        """Write the rows of files as shards without holding them in memory.

        The files are read once. Memory is bounded by the ids of users and items, about 130 bytes
        per integer and 210 per text, and 700 MB; the folder needs 16 bytes per row of temporary
        space.

        Parameters
        ----------
        path : path, glob such as "sales/*.parquet", folder, or a list of them
            Files as `Interactions.read` takes them, or folders of them, such as Spark writes.
        folder : path
            A new folder, or one with shards if ``append``.
        n_shards, append
            See `Interactions.to_shards`.
        user, item, value, duplicates, returns, drop_blank_ids, drop_blank_values, exclude_items,
        decimal, encoding, delimiter, header, sheet, sql, progress
            See `Interactions.read`. Amounts written as text require ``decimal``. Users and items
            of which ``returns`` leaves out all pairs, at or below 0, stay without entries.
        """
        from hcpf.data.read_options import ReadOptions
        from hcpf.data.readers import FileSet, open_files
        from hcpf.data.shards.streaming import stream_to_shards

        options = ReadOptions(
            duplicates=duplicates, returns=returns, drop_blank_ids=drop_blank_ids,
            drop_blank_values=drop_blank_values, exclude_items=exclude_items, decimal=decimal,
            encoding=encoding, delimiter=delimiter, header=header, sheet=sheet, sql=sql,
        )  # fmt: skip
        target = as_mounted_path("folder", folder)
        files = FileSet.of(open_files(path, options), user, item, value, options)
        manifest, remarks = stream_to_shards(
            files, target, n_shards=whole("n_shards", n_shards), append=flag("append", append),
            progress=progress,
        )  # fmt: skip
        log_remarks(remarks)
        return cls._of(target, manifest)

    @classmethod
    def _of(cls, path: Path, manifest: Manifest, scratch: str | Path | None = None) -> Self:
        name, record = manifest.items
        record.check_content(path / name)
        items = read_ids(path / name, manifest.n_items, ShardError)
        users = [
            read_ids(path / shard.name / "users.parquet", shard.n_users, ShardError)
            for shard in manifest.shards
        ]
        data = object.__new__(cls)
        folder = path / SCRATCH if scratch is None else as_mounted_path("scratch", scratch)
        vars(data).update(
            matrix=_matrix(path, manifest, manifest.shards, folder),
            users=users[0] if len(users) == 1 else np.concatenate(users),
            items=items,
            folder=path,
            scratch=folder,
            manifest=manifest,
        )
        return data

    @property
    def n_shards(self) -> int:
        """The number of shards."""
        return len(self.manifest.shards)

    @property
    def summary(self) -> ValueSummary:
        """Number, sum and range of the values."""
        return self.manifest.summary

    @property
    def digest(self) -> str:
        """A checksum of the whole content."""
        return self.manifest.digest

    def check(self, shards: Sequence[int] | None = None) -> None:
        """Compare the files of some shards (default: all) with their checksums."""
        chosen = range(self.n_shards) if shards is None else self._numbers(shards)
        records = [self.manifest.shards[number] for number in chosen]
        _check_files(self.folder, records, check=True)

    def part(self, shards: Sequence[int]) -> tuple[StoredMatrix, NDArray[np.int64]]:
        """Return the matrix of some shards, and the numbers of its users among all.

        This is what one of several workers needs. Shards are given by number, ascending.
        """
        numbers = self._numbers(shards)
        chosen = [self.manifest.shards[number] for number in numbers]
        ends = np.cumsum([0, *(shard.n_users for shard in self.manifest.shards)])
        users = [np.arange(ends[number], ends[number + 1]) for number in numbers]
        matrix = _matrix(self.folder, self.manifest, chosen, self.scratch)
        return matrix, np.concatenate(users)

    def _numbers(self, shards: Sequence[int]) -> list[int]:
        numbers = [whole("shards", number, least=0) for number in shards]
        if not numbers or numbers != sorted(set(numbers)) or numbers[-1] >= self.n_shards:
            raise ParameterError(
                f"shards must be ascending numbers from 0 to {self.n_shards - 1}; got {shards!r}."
            )
        return numbers

    def sample(self, max_entries: int, random_state: Any = None) -> Interactions:
        """Return randomly chosen users with all their entries, in memory.

        Parameters
        ----------
        max_entries : int
            About how many entries to take; all users if they have no more.
        random_state : int, Generator or None
            The same seed gives the same users.
        """
        rng = np.random.default_rng(random_state)
        rows = sample_rows(self.matrix, whole("max_entries", max_entries), rng)
        return Interactions(self.matrix[rows], self.users[rows], self.items)

    def to_memory(self) -> Interactions:
        """Return the same interactions with all entries in memory."""
        return Interactions(self.matrix[np.arange(self.n_users)], self.users, self.items)

    def __repr__(self) -> str:
        word = "shard" if self.n_shards == 1 else "shards"
        return (
            f"Shards({self.n_users} users x {self.n_items} items, {self.n_observed} observed, "
            f"{self.n_shards} {word})"
        )


def write_shards(
    data: Interactions, folder: str | Path, *, n_shards: int = 1, append: bool = False
) -> Shards:
    """Write interactions as shards of users; see ``Interactions.to_shards``."""
    path, n_shards = as_mounted_path("folder", folder), whole("n_shards", n_shards)
    matrix = data.matrix
    with folder_writer(path, append=flag("append", append)) as writer:
        writer.use_type(matrix.dtype)
        require_new_users(path, writer.before, data.users)
        items, positions = place_items(path, writer.before, data.items)
        cuts = balanced_cuts(np.diff(matrix.indptr), n_shards).tolist()
        for first, last in pairwise(cuts):
            blocks = (relabel(block, positions) for block in matrix_blocks(matrix, first, last))
            writer.add_shard(np.ascontiguousarray(data.users[first:last]), blocks, len(items))
        manifest = writer.commit(items)
    return Shards._of(path, manifest)  # pyright: ignore[reportPrivateUsage]


def write_blocks(
    folder: str | Path,
    blocks: Iterable[Block],
    cuts: NDArray[np.int64],
    items: IdArray,
    dtype: Any,
) -> Shards:
    """Write the entries of users 0, 1, 2, ... as shards that begin at ``cuts``."""
    path = as_mounted_path("shards", folder)
    with folder_writer(path, append=False) as writer:
        writer.use_type(dtype)
        for (first, last), own in zip(pairwise(cuts), split_blocks(blocks, cuts), strict=True):
            writer.add_shard(np.arange(first, last), own, len(items))
        manifest = writer.commit(items)
    return Shards._of(path, manifest)  # pyright: ignore[reportPrivateUsage]


def _check_files(folder: Path, shards: Sequence[ShardRecord], *, check: bool) -> None:
    files = [
        (folder / shard.name / name, record)
        for shard in shards
        for name, record in shard.files.items()
    ]
    for path, record in files:
        record.check_size(path)
    if check:
        check_contents(files)


def _matrix(
    folder: Path, manifest: Manifest, shards: Sequence[ShardRecord], scratch: Path
) -> StoredMatrix:
    arrays = [_map_shard(folder / shard.name, shard, manifest) for shard in shards]
    identity = " ".join([manifest.digest, *(shard.name for shard in shards)])
    return StoredMatrix(arrays, manifest.n_items, manifest.summary, identity, scratch)


def _map_shard(path: Path, shard: ShardRecord, manifest: Manifest) -> ShardArrays:
    n_entries, dtype = shard.n_entries, manifest.dtype
    item_pointer = map_array(path / "item_pointer.npy", np.int64, shard.n_items + 1)
    n_later = manifest.n_items - shard.n_items  # items that later shards have brought
    return ShardArrays(
        pointer=map_array(path / "pointer.npy", np.int64, shard.n_users + 1),
        index=map_array(path / "index.npy", np.int32, n_entries),
        value=map_array(path / "value.npy", dtype, n_entries),
        item_pointer=np.pad(item_pointer, (0, n_later), mode="edge"),
        item_index=map_array(path / "item_index.npy", np.int32, n_entries),
        item_value=map_array(path / "item_value.npy", dtype, n_entries),
    )
