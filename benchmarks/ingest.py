"""A Parquet file with string ids becomes Interactions: seconds and peak memory.

The file is written, and read, in separate processes.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import common

SECONDS, GIGABYTES = 60.0, 4.0
USERS, ITEMS, GROUP = 500_000, 50_000, 1_000_000


def make_file(args: argparse.Namespace) -> dict[str, Any]:
    """Write the file, a million rows at a time (child process)."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(args.seed)
    users = pa.array([f"customer-{j:08d}" for j in rng.permutation(USERS)])
    items = pa.array([f"sku/{j:06d}" for j in rng.permutation(ITEMS)])
    writer = None
    for first in range(0, args.rows, GROUP):
        size = min(GROUP, args.rows - first)
        pick = (
            (USERS * rng.random(size) ** 2).astype(int),
            (ITEMS * rng.random(size) ** 3).astype(int),
        )
        table = pa.table({
            "customer": users.take(pa.array(pick[0])),
            "product": items.take(pa.array(pick[1])),
            "spend": rng.gamma(2.0, 10.0, size),
        })  # fmt: skip
        writer = writer or parquet.ParquetWriter(args.file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return {}


def read_file(args: argparse.Namespace) -> dict[str, Any]:
    """Read the file (child process)."""
    from hcpf import Interactions

    began = perf_counter()
    data = Interactions.read(
        args.file, user="customer", item="product", value="spend", duplicates="sum",
        progress=False,
    )  # fmt: skip
    return {
        "seconds": perf_counter() - began, "peak": common.peak_bytes(),
        "users": data.n_users, "items": data.n_items, "pairs": data.n_observed,
    }  # fmt: skip


TASKS = {"make": make_file, "read": read_file}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rows", type=common.whole, default=20_000_000)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(TASKS[args.task](args)))
        return
    header = common.start("Reading Parquet", f"{args.rows:,} rows, string ids, seed {args.seed}")
    with common.workspace() as folder:
        shared = ("--rows", args.rows, "--seed", args.seed, "--file", folder / "sales.parquet")
        common.child("ingest.py", "--task", "make", *shared)
        row = common.child("ingest.py", "--task", "read", *shared)
    row["rows"], row["peak GB"] = args.rows, row["peak"] / 1e9
    row["met"] = row["seconds"] < SECONDS and row["peak GB"] < GIGABYTES
    print(f"Targets for 20 million rows: under {SECONDS:g} s and {GIGABYTES:g} GB.\n")
    columns = {"rows": ",", "users": ",", "items": ",", "pairs": ",", "seconds": ".1f"}
    common.table([row], {**columns, "peak GB": ".2f", "met": ""})
    common.finish(header, {"rows": [row]}, args.json)


if __name__ == "__main__":
    main()
