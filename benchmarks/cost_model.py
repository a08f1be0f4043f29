"""A model of the time of a pass on many workers, checked against measurements, and taken further.

With E entries, U users, I items, K components, W workers of T threads, a pass takes

    entries   a E K / (W T)                    both half-steps of a worker's users
    users     b U K / (W T)                    their posteriors
    items     c I K / W + d I K                posteriors of a block; what every worker does for all
                                               items: clearing sums and reading the others' blocks
    network   16 I K (1 - 1/W) / speed         bytes that a worker sends, and as many received
    messages  m (2 (W - 1) + small(W))         one per block and peer; small sums, along a tree

Items are replicated: every worker keeps 36 I K bytes. The script reads what ``ray_overhead.py``
wrote with ``--json``, fits the constants of network and messages, prints model and measurement, and
then simulates clusters up to 1,000 workers. Without a file it uses the constants below: that of
entries was measured (see docs/benchmarks.md), the others are estimates.
"""

import argparse
import json
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path

import numpy as np

import common

BRANCHES, MAX_DIRECT = 16, 16  # as in hcpf.distributed.messages
SMALL_CALLS = 5  # of a pass: sums of K numbers, item counts, the end of a pass


@dataclass(frozen=True)
class Constants:
    """Seconds per unit of work on one thread, per byte, and per message."""

    entry: float = 0.77e-9
    row: float = 12e-9
    item: float = 12e-9
    replicated: float = 4e-9
    byte: float = 1 / 1.0e9
    message: float = 0.4e-3


@dataclass(frozen=True)
class Cluster:
    """Data, model and machines of a fit."""

    entries: float
    users: float
    items: float
    size: int
    workers: int
    threads: int
    gigabits: float
    """Network speed of a node, per second and direction."""

    def bytes_sent(self) -> float:
        """Bytes that a worker sends per pass: float64 sums, and two float32 arrays of factors."""
        return 16.0 * self.items * self.size * (1 - 1 / self.workers)

    def memory(self) -> float:
        """Bytes of a worker: entries in both orders, factors, and the sums of the items."""
        own = (16 * self.entries + 20 * self.users * self.size) / self.workers
        return own + 36 * self.items * self.size


def seconds(cluster: Cluster, at: Constants, byte: float | None = None) -> dict[str, float]:
    """Return where the time of a pass goes."""
    share = cluster.workers * cluster.threads
    rows, columns = cluster.users * cluster.size, cluster.items * cluster.size
    many = cluster.workers > 1
    byte = 8 / (cluster.gigabits * 1e9) if byte is None else byte
    return {
        "entries": at.entry * cluster.entries * cluster.size / share,
        "users": at.row * rows / share,
        "items": at.item * columns / share + many * at.replicated * columns,
        "network": cluster.bytes_sent() * byte,
        "messages": at.message * n_messages(cluster.workers),
    }


def n_messages(workers: int) -> float:
    """Return the messages that follow each other in a pass on the busiest worker."""
    if workers == 1:
        return 0.0
    blocks = 2.0 * (workers - 1)  # of the sums, and of the factors, to or from every other worker
    if workers <= MAX_DIRECT:
        return blocks + SMALL_CALLS * (workers - 1)
    levels = ceil(log(workers * (BRANCHES - 1) + 1) / log(BRANCHES)) - 1
    return blocks + SMALL_CALLS * 2 * levels * BRANCHES


def fitted(report: dict, at: Constants) -> Constants:
    """Return constants with those of network and messages as measured."""
    rows = report["exchanges"]
    design = np.array([[r["MB per worker"] * 1e6, 2.0 * (r["workers"] - 1)] for r in rows])
    target = np.array([r["ms"] / 1000 for r in rows])
    weight = 1 / target  # relative errors
    byte, message = np.linalg.lstsq(design * weight[:, None], np.ones(len(rows)), rcond=None)[0]
    return Constants(at.entry, at.row, at.item, at.replicated, max(byte, 0.0), max(message, 0.0))


def check(report: dict, at: Constants) -> None:
    """Print measured and modeled times."""
    rows = []
    for row in report["exchanges"]:
        messages = 2.0 * (row["workers"] - 1)
        model = 1000 * (at.byte * row["MB per worker"] * 1e6 + at.message * messages)
        rows.append({**row, "model ms": model, "ratio": model / row["ms"]})
    columns = {"workers": "d", "items": ",d", "K": "d", "MB per worker": ".1f", "ms": ".1f"}
    common.table(rows, {**columns, "model ms": ".1f", "ratio": ".2f"})
    if "local" not in report:
        return
    shape = report["entries"], report["users"], report["items"], report["components"]
    alone = Cluster(*shape, 1, report["workers"], 1.0)
    group = Cluster(*shape, report["workers"], 1, 1.0)
    local, ray = np.median(report["local"]), np.median(report["ray"])
    scale = local / sum(seconds(alone, at).values())  # the pace of the machine at the time
    parts = seconds(group, at, at.byte)
    compute = scale * (parts["entries"] + parts["users"] + parts["items"])
    model = compute + parts["network"] + parts["messages"]
    sent = report["per_pass"]["bytes_sent"]
    print(f"- a pass: model {model / local:.2f} times one process, measured {ray / local:.2f}")
    print(f"- bytes per worker: model {group.bytes_sent() / 1e6:.2f} MB, measured {sent / 1e6:.2f}")
    print(f"- pace of the machine: {scale:.2f} times the constants\n", flush=True)


def simulate(at: Constants) -> list[dict]:
    """Print where the time of a pass goes for growing clusters, at 32 threads per worker."""
    rows, parts = [], {}
    for entries, users, items, workers, gigabits in (
        (1e8, 5e5, 2e4, 1, 25), (1e9, 1e7, 1e5, 1, 25), (1e9, 1e7, 1e5, 8, 25),
        (1e10, 1e8, 1e5, 16, 25), (1e10, 1e8, 1e6, 100, 25), (1e11, 1e9, 1e5, 100, 25),
        (1e11, 1e9, 1e5, 1000, 25), (1e11, 1e9, 1e6, 100, 25), (1e11, 1e9, 1e6, 1000, 25),
        (1e11, 1e9, 1e6, 1000, 100), (1e11, 1e9, 1e7, 1000, 100),
    ):  # fmt: skip
        cluster = Cluster(entries, users, items, 64, workers, 32, gigabits)
        parts = seconds(cluster, at)
        total = sum(parts.values())
        rows.append({
            "E": f"{entries:.0e}", "U": f"{users:.0e}", "I": f"{items:.0e}", "W": workers,
            "Gbit/s": gigabits, "s per pass": total,
            **{name: part / total for name, part in parts.items()},
            "GB per worker": cluster.memory() / 1e9, "MB sent": cluster.bytes_sent() / 1e6,
        })  # fmt: skip
    columns = {**dict.fromkeys("EUI", ""), "W": "d", "Gbit/s": "d", "s per pass": ".2f"}
    columns |= dict.fromkeys(parts, ".0%")
    common.table(rows, {**columns, "GB per worker": ".0f", "MB sent": ",.0f"})
    return rows


def limits(at: Constants) -> None:
    """Print from how many items on replication costs more than the entries, and memory."""
    rows = []
    for workers, gigabits in ((8, 10), (8, 25), (100, 25), (100, 100), (1000, 25), (1000, 100)):
        per_worker = 1e8  # entries
        compute = at.entry * per_worker * 64 / 32
        per_item = 64 * (16 * (1 - 1 / workers) * 8 / (gigabits * 1e9) + at.replicated)
        rows.append({
            "workers": workers, "Gbit/s": gigabits,
            "items: half the pace": compute / per_item,
            "items: 64 GB": 64e9 / (36 * 64),
        })  # fmt: skip
    columns = {"workers": "d", "Gbit/s": "d"}
    common.table(rows, {**columns, "items: half the pace": ",.0f", "items: 64 GB": ",.0f"})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path, nargs="?", help="JSON of ray_overhead.py")
    args = parser.parse_args()
    at = Constants()
    common.start("Cost model of a pass on a cluster", str(args.report or "constants of the script"))
    if args.report is not None:
        report = json.loads(args.report.read_text())["results"]
        at = fitted(report, at)
        print(f"- network {1e-9 / at.byte:.2f} GB/s, a message {1e3 * at.message:.2f} ms\n")
        check(report, at)
    print("Clusters of workers with 32 threads, K = 64 (shares of the time of a pass):\n")
    simulate(at)
    print("Items from which on they cost as much as 100M entries per worker, K = 64, and the items")
    print("whose replicated state needs 64 GB; beyond, items must be partitioned:\n")
    limits(at)


if __name__ == "__main__":
    main()
