"""What a Ray cluster costs, compared with one process on the same data.

Turns are taken: one process with as many threads as there are workers, then the workers with one
thread each, on a cluster of this machine and on the same shards. Time per pass is (time of many -
time of few passes) / (many - few), so set-up drops out. CPU seconds are those of all workers
together: on a busy machine they tell more than time. Bytes are those of the arrays that a worker
sends to the others. The second table times the two large exchanges of a pass alone, for several
numbers of workers, items and components, and the third the CPU of a pass on one thread for several
shapes. ``cost_model.py`` takes its constants from the JSON of this script.
"""

import logging
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import common
from hcpf import HCPF, Interactions, RayEngine
from hcpf.core.collective import row_block
from hcpf.distributed.actor import RayNetwork, RayWorker
from hcpf.distributed.connection import connected
from hcpf.distributed.messages import MessageCollective
from hcpf.distributed.sockets import Connections

SIZES = (
    (1, 1), (500, 32), (1_000, 64), (5_000, 64), (10_000, 16), (10_000, 64), (20_000, 32),
    (20_000, 64), (40_000, 64),
)  # fmt: skip
"""Items and components of the exchanges."""
SHAPES = (
    (4_000_000, 40_000, 10_000), (1_000_000, 40_000, 10_000), (1_000_000, 160_000, 10_000),
    (2_000_000, 80_000, 5_000),
)  # fmt: skip
"""Entries, users and items of the passes of one thread."""


class Usage(logging.Handler):
    """Collects what the workers report."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[dict[str, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("Worker %d:") and isinstance(record.args, tuple):
            usage = asdict(record.args[1])
            if usage.pop("failures"):
                raise SystemExit("Workers could not connect to each other.")
            self.found.append(usage)


class Exchanger(RayWorker):
    """A worker that only exchanges arrays."""

    def exchange(
        self, peers: Any, addresses: Any, n_items: int, n_components: int, repeats: int
    ) -> list[float]:
        """Return the seconds of each exchange of a pass's items, the first one left out."""

        if self._comm is None:
            connections = Connections(self._rank, self._secret, addresses, self._mailbox)
            network = RayNetwork(self._rank, peers, self._mailbox, connections)
            self._comm = MessageCollective(network)
        comm = self._comm
        totals = np.ones((n_items, n_components))
        rows = row_block(comm.rank, comm.size, n_items)
        factors = np.ones((rows.stop - rows.start, 2, n_components), np.float32)
        seconds = []
        for _ in range(repeats + 1):
            comm.sum(np.ones(1))  # all begin together
            began = perf_counter()
            comm.sum_rows(totals)
            both = comm.gather(factors)
            factors = both[rows].copy()
            seconds.append(perf_counter() - began)
        return seconds[1:]


def exchanges(workers: int, sizes: Sequence[tuple[int, int]], repeats: int) -> list[dict]:
    """Time the exchange of the items of a pass, for several numbers of items and components."""
    import ray

    kind = ray.remote(num_cpus=0.1, concurrency_groups={"mail": 1})(Exchanger)
    group = [kind.remote(rank) for rank in range(workers)]
    secret = secrets.token_bytes(32)
    addresses = [p.address for p in ray.get([worker.place.remote(secret) for worker in group])]
    rows = []
    for n_items, n_components in sizes:
        runs = [
            worker.exchange.remote(group, addresses, n_items, n_components, repeats)
            for worker in group
        ]
        slowest = [max(times) for times in zip(*ray.get(runs), strict=True)]
        rows.append({
            "workers": workers,
            "items": n_items,
            "K": n_components,
            "MB per worker": 16 * n_items * n_components * (1 - 1 / workers) / common.MB,
            "ms": 1000 * median(slowest),
            "ms best": 1000 * min(slowest),
        })  # fmt: skip
    for worker in group:
        ray.kill(worker)
    return rows


def compute(args: Any) -> list[dict]:
    """Time the passes of one thread on several shapes of data."""
    rows = []
    for entries, users, items in SHAPES:
        data = Interactions.from_matrix(common.power_law_pairs(entries, users, items, args.seed))
        few, many = (fit_seconds(data, args, n, "local", 1)[1] for n in (2, 12))
        rows.append({
            "entries": entries, "users": users, "items": items, "K": args.components,
            "CPU s": (many - few) / 10,
        })  # fmt: skip
    return rows


def fit_seconds(
    data: Interactions, args: Any, passes: int, engine: Any, threads: int
) -> np.ndarray:
    """Seconds of training alone, by the clock of the history, and CPU seconds of this process."""
    model = HCPF(
        args.components, element="degenerate", n_fits=1, tempering=1.0, solver="cavi",
        learn_element=False, max_iter=passes, tol=0.0, random_state=args.seed,
    )  # fmt: skip
    began = process_time()
    model.fit(data, n_threads=threads, engine=engine)
    return np.array([model.history_[-1].seconds, process_time() - began])


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--entries", type=common.whole, default=10_000_000)
    parser.add_argument("--users", type=common.whole, default=100_000)
    parser.add_argument("--items", type=common.whole, default=10_000)
    parser.add_argument("--components", "-K", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--passes", type=int, nargs=2, default=(2, 12), metavar=("FEW", "MANY"))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--exchanges", type=int, default=10, help="repetitions of an exchange")
    args = parser.parse_args()
    pairs = common.power_law_pairs(args.entries, args.users, args.items, args.seed)
    header = common.start(
        "Overhead of Ray",
        f"{args.entries:,} entries, {args.users:,} x {args.items:,}, K = {args.components}",
    )
    usage = Usage()
    logging.getLogger("hcpf").addHandler(usage)
    logging.getLogger("hcpf").setLevel(logging.INFO)
    folder = tempfile.TemporaryDirectory()
    data = Interactions.from_matrix(pairs).to_shards(
        Path(folder.name) / "shards", n_shards=args.workers
    )
    del pairs
    few, many = args.passes
    local: list[np.ndarray] = []
    remote: list[np.ndarray] = []
    with connected(None, args.workers):
        engine = RayEngine(workers=args.workers)
        for _ in range(args.turns):
            for found, kind, threads in ((local, "local", args.workers), (remote, engine, 1)):
                short = fit_seconds(data, args, few, kind, threads)
                found.append((fit_seconds(data, args, many, kind, threads) - short) / (many - few))
        ratios = [float(mine[0] / other[0]) for mine, other in zip(remote, local, strict=True)]
        last, before = usage.found[-args.workers :], usage.found[-2 * args.workers : -args.workers]
        per_pass = {
            name: sum(b[name] - a[name] for a, b in zip(before, last, strict=True))
            / (args.workers * (many - few))
            for name in last[0]
        }
        local_cpu = float(median(found[1] for found in local))
        local, remote = ([float(x[0]) for x in found] for found in (local, remote))
        rows = [
            {"engine": "one process", "s per pass": median(local), "CPU s": local_cpu},
            {
                "engine": f"Ray, {args.workers} workers",
                "s per pass": median(remote),
                "ratio": median(ratios),
                "MB sent": per_pass["bytes_sent"] / common.MB,
                "calls": per_pass["calls"],
                "s waiting": per_pass["waited_seconds"],
                "CPU s": args.workers * per_pass["cpu_seconds"],
                "CPU ratio": args.workers * per_pass["cpu_seconds"] / local_cpu,
            },
        ]
        columns = {
            "engine": "", "s per pass": ".3f", "ratio": ".2f", "MB sent": ".2f", "calls": ".0f",
            "s waiting": ".3f", "CPU s": ".3f", "CPU ratio": ".2f",
        }  # fmt: skip
        common.table(rows, columns)
        moved = [row for n in (2, 3, 4) for row in exchanges(n, SIZES, args.exchanges)]
    work = compute(args)
    common.table(work, {"entries": ",d", "users": ",d", "items": ",d", "K": "d", "CPU s": ".4f"})
    common.table(
        moved,
        {
            "workers": "d",
            "items": ",d",
            "K": "d",
            "MB per worker": ".2f",
            "ms": ".1f",
            "ms best": ".1f",
        },
    )
    facts = {"local": local, "ray": remote, "ratios": ratios, "per_pass": per_pass}
    facts["local_cpu"] = local_cpu
    facts |= {"few": few, "many": many, "entries": args.entries, "users": args.users}
    facts |= {"items": args.items, "components": args.components, "workers": args.workers}
    common.finish(header, {**facts, "exchanges": moved, "compute": work}, args.json)


if __name__ == "__main__":
    main()
