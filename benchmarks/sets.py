"""Real data for the benchmarks: a folder with files NAME/NAME.parquet of user, item, value."""

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import common
from hcpf import Interactions


def parser(description: str | None, only: Sequence[str] | None = None) -> ArgumentParser:
    """The options of a benchmark over data sets; ``only`` are those it takes by default."""
    made = common.parser(description)
    made.add_argument("folder", type=Path)
    made.add_argument("--only", nargs="*", default=only, help="names of data sets")
    made.add_argument("-K", "--components", type=int, default=50)
    made.add_argument("--min-entries", type=common.whole, default=1, help="skip smaller data sets")
    made.add_argument("--max-entries", type=common.whole, default=10**9, help="skip larger ones")
    return made


def files(args: Any) -> list[Path]:
    """The files of the data sets asked for, smallest first."""
    paths = [path for path in args.folder.glob("*/*.parquet") if path.stem == path.parent.name]
    paths = [path for path in paths if not args.only or path.stem in args.only]
    paths = [path for path in paths if "value" in pq.read_schema(path).names]
    return [p for p in by_size(paths) if args.min_entries <= n_entries(p) <= args.max_entries]


def by_size(paths: Iterable[Path]) -> list[Path]:
    """The files in order of their entries."""
    return sorted(paths, key=lambda path: (n_entries(path), path.stem))


def n_entries(path: Path) -> int:
    return pq.read_metadata(path).num_rows


def read(path: Path) -> Interactions:
    """Read one data set."""
    return Interactions.read(path, user="user", item="item", value="value", progress=False)


def each(args: Any) -> Iterator[tuple[str, Interactions]]:
    """The data sets asked for, by name, smallest first."""
    return ((path.stem, read(path)) for path in files(args))
