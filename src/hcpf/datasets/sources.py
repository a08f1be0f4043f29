"""Published data sets: their files, opened plain, compressed, in archives or in folders."""

import bz2
import fnmatch
import gzip
import io
import logging
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from hcpf._checks import one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.columns import TripleBuilder
from hcpf.data.files.base import Columns
from hcpf.data.interactions import Interactions
from hcpf.datasets.layouts import Layout, Stream
from hcpf.errors import InputError, ParameterError

PathLike = str | Path
Layouts = Sequence[Layout]

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.bz", ".tbz2", ".tar.xz")
_ARCHIVES = (*_TAR, ".zip")
_UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_PEEK_BYTES = 1 << 16

_UNREADABLE = (
    OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
    tarfile.TarError, pa.ArrowException,
    RuntimeError,  # an encrypted or unknown kind of zip
)  # fmt: skip

logger = logging.getLogger("hcpf")


@dataclass(frozen=True, repr=False)
class PublishedDataset:
    """A reader of a published data set, called with the path of its file, folder or archive.

    Parameters of a call: ``path``; ``duplicates`` ("error", "sum", "mean" or "last"), how to merge
    several rows of a pair; and the option of the data set, if it has one.

    Examples
    --------
    >>> from hcpf import datasets
    >>> datasets.steam
    PublishedDataset(steam-200k.csv; behavior: play, purchase; duplicates: sum)
    """

    expected: str
    """Description of the format, for error messages."""
    files: tuple[str, ...]
    """Patterns of the files to take from an archive or a folder; case does not matter."""
    layouts: Layouts | Mapping[Any, Layouts]
    """The layouts of the files, or those per choice of the option; the first is the default."""
    duplicates: Duplicates
    """How several rows of a pair are merged by default."""
    option: str | None = None
    """The name of the option."""
    many: bool = False
    """Whether all matching files are read; otherwise there must be only one."""

    def __repr__(self) -> str:
        parts = [", ".join(self.files), f"duplicates: {self.duplicates}"]
        if isinstance(self.layouts, Mapping):
            parts.insert(1, f"{self.option}: {', '.join(map(str, self.layouts))}")
        return f"PublishedDataset({'; '.join(parts)})"

    def __call__(
        self, path: PathLike, *, duplicates: Duplicates | None = None, **options: Any
    ) -> Interactions:
        """Read the data set; rows without an id or with a value of 0 or less are dropped."""
        layouts = self._layouts(options)

        def layout_of(line: str) -> Layout:
            for layout in layouts:
                if layout.matches(line):
                    return layout
            raise InputError(f"its first line is {line if len(line) <= 60 else line[:60] + '…'!r}")

        return self.read(path, duplicates or self.duplicates, layout_of)

    def _layouts(self, options: dict[str, Any]) -> Layouts:
        known = ", ".join(filter(None, ["duplicates", self.option]))
        for name in options:
            if name != self.option:
                raise ParameterError(f"There is no option {name!r}. Options: {known}.")
        if not isinstance(self.layouts, Mapping):
            return self.layouts
        choices = list(self.layouts)
        choice = options.get(self.option or "", choices[0])
        if not any(type(choice) is type(one) and choice == one for one in choices):
            allowed = ", ".join(map(str, choices))
            raise ParameterError(f"{self.option} must be one of {allowed}; got {choice!r}.")
        return self.layouts[choice]

    def read(
        self, path: PathLike, duplicates: Duplicates, layout_of: Callable[[str], Layout]
    ) -> Interactions:
        """Read every file in the layout that ``layout_of`` returns for its first line."""
        one_of("duplicates", duplicates, get_args(Duplicates))  # before a long file is read
        builder = TripleBuilder(Columns("user", "item", "value"), text_ids=True)
        with self._errors(path):
            for stream in self._open(path):
                layout_of(_first_line(stream)).add(builder, stream)
            triples = builder.finish()
        if builder.n_dropped:
            logger.info("%s: dropped %d rows.", path, builder.n_dropped)
        try:
            return triples.to_interactions(duplicates)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @contextmanager
    def _errors(self, path: PathLike) -> Generator[None]:
        """Name the path and the expected format in every error of the block."""
        try:
            yield
        except InputError as error:
            reason = str(error).rstrip(".")
        except _UNREADABLE as error:
            lines = str(error).strip().splitlines()
            reason = f"it cannot be read, {lines[0].rstrip('.') if lines else type(error).__name__}"
        else:
            return
        raise InputError(f"{path}: {reason}. Expected {self.expected}.")

    def _open(self, path: PathLike) -> Iterator[Stream]:
        """Yield the files, each open until the next is asked for.

        A single file is read whatever its name; archives and folders are searched by name.
        """
        location = _existing(path)
        paths = [location]
        if location.is_dir():
            paths = [path for path in sorted(location.rglob("*")) if path.is_file()]
            paths = [path for path in paths if not _is_archive(path)]
        by_name = location.is_dir() or _is_archive(location)
        taken: list[str] = []
        for path in paths:
            with path.open("rb") as file:
                for name, stream in _unpacked(path.name, file):
                    if by_name and not self._matches(name):
                        continue
                    taken.append(name)
                    if len(taken) > 1 and not self.many:
                        raise InputError(
                            f"it has more than one such file ({', '.join(taken)}). Pass the path "
                            "of one of them"
                        )
                    yield stream
        if not taken:
            raise InputError(f"there is no {' or '.join(self.files)} in it")

    def _matches(self, name: str) -> bool:
        base = name.replace("\\", "/").rsplit("/", 1)[-1].lower()
        # macOS adds files that begin with "._" to archives.
        return not base.startswith("._") and any(
            fnmatch.fnmatchcase(base, pattern.lower()) for pattern in self.files
        )


def _first_line(stream: Stream) -> str:
    """Return the first line without consuming it."""
    line, newline, _ = stream.peek(_PEEK_BYTES).partition(b"\n")
    if not line and not newline:
        raise InputError("it is empty")
    return line.decode("latin-1").removeprefix("ï»¿").rstrip("\r")


def _existing(path: PathLike) -> Path:
    if not isinstance(path, str | Path):
        raise InputError(f"a path is needed, got {type(path).__name__}")
    location = Path(path).expanduser()
    if not location.exists():
        raise InputError("there is no such file or folder")
    return location


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith(_ARCHIVES)


def _unpacked(name: str, file: Any) -> Iterator[tuple[str, Stream]]:
    """Yield the files of an archive and of archives in it, or the one file decompressed."""
    lower = name.lower()
    if lower.endswith(_TAR):
        with tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                content: Any = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield from _unpacked(member.name, content)
    elif lower.endswith(".zip"):
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as content:
                        yield from _unpacked(entry.filename, content)
    elif (suffix := Path(lower).suffix) in _UNPACK:
        with _UNPACK[suffix](file, "rb") as content:
            yield from _unpacked(name[: -len(suffix)], content)
    else:
        with io.BufferedReader(file, _PEEK_BYTES) as stream:
            yield name, stream
