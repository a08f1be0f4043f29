"""A model of the time of a pass on many workers, fitted to measurements, checked and taken further.

With E entries, U users, I items, K components, W workers of T threads, a pass takes

    entries   a E K / (W T)                    both half-steps of a worker's users
    rows      b (U + I) K / (W T)              posteriors of users, and of a block of the items
    copies    c I K                            what every worker does for all items
    bytes     16 I K (1 - 1/W) / speed         what a worker sends; it receives as much
    stored    s (number of stored arrays)      blocks of factors above 16 workers, in Ray's store
    messages  m (number of messages)           one per block and peer; small sums, along a tree

Items are replicated: every worker keeps 36 I K bytes. The script reads what ``ray_overhead.py``
wrote with ``--json``: a and b come from the passes of one thread, speed and m from the exchanges
(nonnegative least squares of relative errors); s was measured when all arrays were stored. Every
third row is left out of the fit and used to check it. Workers that share a machine share its cores,
so times of exchanges are divided by the workers per core. Then clusters up to 1,000 workers are
simulated.
"""

import argparse
import json
from dataclasses import dataclass, replace
from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

import common

BRANCHES, MAX_DIRECT = 16, 16  # as in hcpf.distributed.messages
SMALL_CALLS = 3  # of a pass: sums of K numbers per axis, and whether to stop
STORED_BYTES = 1 << 16
HELD_OUT = 3  # every third row


@dataclass(frozen=True)
class Constants:
    """Seconds per unit of work on one thread, per byte, per stored array and per message."""

    entry: float = 0.0
    row: float = 0.0
    copied: float = 2e-9
    """An estimate."""
    byte: float = 0.0
    stored: float = 1.7e-3
    """Of commit 174cc9d, where arrays above 100 kB were stored. The others are fitted."""
    message: float = 0.0


@dataclass(frozen=True)
class Cluster:
    """Data, model and machines of a fit."""

    entries: float
    users: float
    items: float
    size: int
    workers: int
    threads: int

    def bytes_sent(self) -> float:
        """Bytes that a worker sends per pass: float64 sums, and two float32 arrays of factors."""
        return 16.0 * self.items * self.size * (1 - 1 / self.workers)

    def stored(self) -> float:
        """Arrays that a worker puts into, or takes out of, the store in the two exchanges."""
        return n_stored(self.workers, self.items, self.size)

    def memory(self) -> float:
        """Bytes of a worker: entries in both orders, factors, and the sums of the items."""
        own = (16 * self.entries + 20 * self.users * self.size) / self.workers
        return own + 36 * self.items * self.size


def n_stored(workers: int, items: float, size: int) -> float:
    """Return the stored arrays that a worker reads: in a tree, the blocks of factors."""
    block = 8.0 * items * size / workers
    return float(workers * (workers > MAX_DIRECT) * (block > STORED_BYTES))


def n_messages(workers: int) -> float:
    """Return the messages of a pass on the busiest worker."""
    if workers == 1:
        return 0.0
    blocks = 2.0 * (workers - 1)  # of the sums, and of the factors, to or from every other worker
    if workers <= MAX_DIRECT:
        return blocks + SMALL_CALLS * (workers - 1)
    levels = ceil(log(workers * (BRANCHES - 1) + 1) / log(BRANCHES)) - 1
    return blocks + SMALL_CALLS * 2 * levels * BRANCHES


def seconds(cluster: Cluster, at: Constants, byte: float) -> dict[str, float]:
    """Return where the time of a pass goes; ``byte`` is the time of a byte on the network."""
    share, many = cluster.workers * cluster.threads, cluster.workers > 1
    columns = cluster.items * cluster.size
    return {
        "entries": at.entry * cluster.entries * cluster.size / share,
        "rows": at.row * (cluster.users * cluster.size + columns) / share,
        "copies": many * at.copied * columns,
        "bytes": many * cluster.bytes_sent() * max(byte, at.byte),
        "stored": many * at.stored * cluster.stored(),
        "messages": at.message * n_messages(cluster.workers),
    }


def _solve(design: Any, target: np.ndarray) -> np.ndarray:
    """Return the constants with the least relative errors on the rows that are not held out."""
    used = np.arange(len(target)) % HELD_OUT != HELD_OUT - 1
    weighted = np.asarray(design, dtype=float)[used] / target[used, None]
    scale = np.maximum(weighted.max(axis=0), 1e-300)
    return nnls(weighted / scale, np.ones(used.sum()))[0] / scale


def fitted(report: dict[str, Any], cores: int) -> Constants:
    """Return the constants that fit the measurements, without the rows that are held out."""
    work, moved = report["compute"], report["exchanges"]
    entry, row = _solve(
        [[r["entries"] * r["K"], (r["users"] + r["items"]) * r["K"]] for r in work],
        np.array([r["CPU s"] for r in work]),
    )
    byte, message = _solve(
        [_terms(r) for r in moved], np.array([_one_worker(r, cores) for r in moved])
    )
    return replace(Constants(), entry=entry, row=row, byte=byte, message=message)


def _terms(row: dict[str, Any]) -> tuple[float, float]:
    """Return bytes and messages of an exchange, of so few workers that nothing is stored."""
    return row["MB per worker"] * 1e6, 2.0 * (row["workers"] - 1)


def _one_worker(row: dict[str, Any], cores: int) -> float:
    """Return the seconds of an exchange with a core per worker."""
    return row["ms"] / 1000 / max(1.0, row["workers"] / cores)


def check(report: dict[str, Any], at: Constants, cores: int) -> None:
    """Print measured and modelled times."""
    rows = []
    for number, row in enumerate(report["exchanges"]):
        parts = np.dot(_terms(row), [at.byte, at.message])
        model = 1000 * float(parts) * max(1.0, row["workers"] / cores)
        held_out = number % HELD_OUT == HELD_OUT - 1
        rows.append({
            **row, "model ms": model, "ratio": model / row["ms"],
            "held out": "yes" if held_out else "",
        })  # fmt: skip
    columns = {"workers": "d", "items": ",d", "K": "d", "MB per worker": ".1f", "ms": ".1f"}
    common.table(rows, {**columns, "model ms": ".1f", "ratio": ".2f", "held out": ""})
    for name, kept in (("fitted", ""), ("held out", "yes")):
        ratios = [row["ratio"] for row in rows if row["held out"] == kept]
        print(f"- model / measured, {name}: {min(ratios):.2f} to {max(ratios):.2f}, "
              f"median {np.median(ratios):.2f}")  # fmt: skip
    for number, row in enumerate(report["compute"]):
        rates = at.entry * row["entries"] + at.row * (row["users"] + row["items"])
        held_out = ", held out" if number % HELD_OUT == HELD_OUT - 1 else ""
        print(f"- pass on one thread, {row['entries']:,} entries, {row['users']:,} users: "
              f"model / measured {rates * row['K'] / row['CPU s']:.2f}{held_out}")  # fmt: skip
    shape = report["entries"], report["users"], report["items"], report["components"]
    group = Cluster(*shape, report["workers"], 1)
    model = sum(seconds(group, at, at.byte).values())
    ray = float(np.median(report["ray"]))
    sent = report["per_pass"]["bytes_sent"]
    print(f"- a pass on {report['workers']} workers, not fitted: model {model:.3f} s, measured "
          f"{ray:.3f}, ratio {model / ray:.2f}")  # fmt: skip
    print(f"- bytes per worker: model {group.bytes_sent() / 1e6:.2f} MB, measured {sent / 1e6:.2f}")


def simulate(at: Constants) -> None:
    """Print where the time of a pass goes for growing clusters, at 32 threads per worker."""
    rows, parts = [], {}
    for entries, users, items, workers, gigabits in (
        (1e8, 5e5, 2e4, 1, 25), (1e9, 1e7, 1e5, 1, 25), (1e9, 1e7, 1e5, 8, 25),
        (1e10, 1e8, 1e5, 16, 25), (1e10, 1e8, 1e6, 100, 25), (1e11, 1e9, 1e5, 100, 25),
        (1e11, 1e9, 1e5, 1000, 25), (1e11, 1e9, 1e6, 100, 25), (1e11, 1e9, 1e6, 1000, 25),
        (1e11, 1e9, 1e6, 1000, 100), (1e11, 1e9, 1e7, 1000, 100),
    ):  # fmt: skip
        cluster = Cluster(entries, users, items, 64, workers, 32)
        parts = seconds(cluster, at, 8 / (gigabits * 1e9))
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


def limits(at: Constants) -> None:
    """Print from how many items on their bytes and copies cost as much as the entries, or 64 GB."""
    rows = []
    for workers, gigabits in ((8, 10), (8, 25), (100, 25), (100, 100), (1000, 25), (1000, 100)):
        per_worker = 1e8  # entries
        compute = at.entry * per_worker * 64 / 32
        byte = max(8 / (gigabits * 1e9), at.byte)
        per_item = 64 * (16 * (1 - 1 / workers) * byte + at.copied)
        rows.append({
            "workers": workers, "Gbit/s": gigabits,
            "items: half the pace": compute / per_item,
            "items: 64 GB": 64e9 / (36 * 64),
        })  # fmt: skip
    columns = {"workers": "d", "Gbit/s": "d"}
    common.table(rows, {**columns, "items: half the pace": ",.0f", "items: 64 GB": ",.0f"})


def main() -> None:
    """Fit the constants, check them and simulate clusters."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path, help="JSON of ray_overhead.py")
    args = parser.parse_args()
    common.start("Cost model of a pass on a cluster", str(args.report))
    report = json.loads(args.report.read_text())
    cores, results = report["machine"]["cores"], report["results"]
    at = fitted(results, cores)
    print(f"- entry and component {1e9 * at.entry:.3f} ns, row and component {1e9 * at.row:.2f} ns")
    print(f"- {1e-9 / max(at.byte, 1e-15):.2f} GB/s, a stored array {1e3 * at.stored:.2f} ms, "
          f"a message {1e3 * at.message:.2f} ms\n")  # fmt: skip
    check(results, at, cores)
    print("\nClusters of workers with 32 threads, K = 64 (shares of the time of a pass):\n")
    simulate(at)
    print("Items whose bytes and copies cost as much as 100M entries per worker, K = 64, and those")
    print("whose replicated state needs 64 GB; beyond, items must be partitioned:\n")
    limits(at)


if __name__ == "__main__":
    main()
