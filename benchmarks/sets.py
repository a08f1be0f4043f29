"""Real data for the benchmarks: a folder with files NAME/NAME.parquet of user, item, value."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
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
    made.add_argument("--least", type=common.whole, default=1, help="skip smaller data sets")
    made.add_argument("--most", type=common.whole, default=10**9, help="skip larger data sets")
    return made


def each(args: Any) -> Iterator[tuple[str, Interactions]]:
    """The data sets asked for, by name."""
    for path in sorted(args.folder.glob("*/*.parquet")):
        if path.stem != path.parent.name or (args.only and path.stem not in args.only):
            continue
        if "value" not in pq.read_schema(path).names:
            continue
        if args.least <= pq.read_metadata(path).num_rows <= args.most:
            yield (
                path.stem,
                Interactions.read(path, user="user", item="item", value="value", progress=False),
            )
