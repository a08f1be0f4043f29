"""Cost per entry as the data grow, cost as K grows, and peak memory against the limit.

Users grow with the entries (20 each), items with their square root. Every case runs in its own
process, which reads data made by another one, so that peak memory is that of the fit. Iterations
are timed in turns with those of the first case: a shared machine may change its pace meanwhile.
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import common

SIZES = (1_000_000, 3_000_000, 10_000_000)
FULL = (1_000_000, 3_000_000, 10_000_000, 25_000_000, 50_000_000)
COMPONENTS = (16, 32, 64, 128, 256)
_TURNS = 10  # iterations of the first case between two of another


def sizes(entries: int) -> tuple[int, int]:
    """Users and items for a number of entries: 50,000 x 10,000 at a million."""
    return max(entries // 20, 100), max(round(10_000 * (entries / 1e6) ** 0.5), 100)


def make_data(args: argparse.Namespace) -> dict[str, Any]:
    """Draw the data of one case and store them (child process)."""
    import numpy as np

    from hcpf.elements import get

    users, items = sizes(args.entries[0])
    pairs = common.power_law_pairs(args.entries[0], users, items, args.seed)
    example = {"GA": (2.0, 1.0), "N": (3.5, 1.2), "BI": (5, 0.7), "ZTP": (3.0,), "HPF": ()}
    kind = get(args.element)
    if kind.acronym not in example:
        raise SystemExit(f"--element must be one of {', '.join(example)}.")
    values = np.ones(pairs.nnz, np.float32)
    if example[kind.acronym]:
        rng = np.random.default_rng(args.seed + 1)
        values = kind(*example[kind.acronym]).sample(np.ones(pairs.nnz), rng)
    common.save_matrix(common.with_values(pairs, values), args.folder)
    return {"users": users, "items": items}


def run_case(args: argparse.Namespace) -> dict[str, Any]:
    """Fit, read the peak, then time iterations (child process)."""

    from hcpf import HCPF

    matrix = common.load_matrix(args.folder)

    def fit(part: Any, components: int) -> HCPF:
        model = HCPF(
            components, element=args.element, max_iter=3, tol=0.0,
            random_state=args.seed, n_fits=1,
        )  # fmt: skip
        return model.fit(part, n_threads=args.threads, progress=False)

    fit(matrix[:2000, :2000], 8)  # kernels and libraries are loaded before memory is counted
    before = common.resident_bytes()
    fitted = fit(matrix, args.components[0])
    peak, value_model = common.peak_bytes(), fitted.value_model_
    del fitted
    run = common.cavi(matrix, value_model, args.components[0], args.seed, args.threads)
    first = common.load_matrix(args.first)
    run_first = common.cavi(first, value_model, args.first_components, args.seed, args.threads)
    run(1)
    times, times_of_first = [], [seconds_of(run_first, _TURNS)]
    for _ in range(args.repetitions):
        times.append(seconds_of(run, 1))
        times_of_first.append(seconds_of(run_first, _TURNS))
    return {"before": before, "peak": peak, "times": times, "times of the first": times_of_first}


def seconds_of(run: Any, iterations: int) -> float:
    """Seconds of an iteration, the one before it not counted."""
    run(1)
    began = perf_counter()
    run(iterations)
    return (perf_counter() - began) / iterations


def cases(
    args: argparse.Namespace, folder: Path, sizes_and_components: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Rows of a table, each data set and each case in a separate process."""
    shared = ("--element", args.element, "--seed", args.seed)
    shared += ("--threads", args.threads, "--repetitions", args.repetitions)
    if not sizes_and_components:
        return []
    first_size, first_components = sizes_and_components[0]
    first = folder / str(first_size)
    rows = []
    for entries, components in sizes_and_components:
        data = folder / str(entries)
        if not data.exists():
            common.child(
                "scaling.py", "--task", "data", "--entries", entries, "--folder", data, *shared
            )
        case = common.child(
            "scaling.py", "--task", "case", "--components", components, "--folder", data,
            "--first", first, "--first-components", first_components, *shared,
        )  # fmt: skip
        rows.append(describe(case, entries, components))
        rows[-1]["ratio"] = ratio_to_first(
            case, entries * components / (first_size * first_components)
        )
        if data != first:
            shutil.rmtree(data)
    shutil.rmtree(first)
    return rows


def ratio_to_first(case: dict[str, Any], work: float) -> float:
    """Cost per unit of work, over that of the first case just before and after."""
    beside = [(one + other) / 2 for one, other in pairwise(case["times of the first"])]
    return median(t / b for t, b in zip(case["times"], beside, strict=True)) / work


def describe(case: dict[str, Any], entries: int, components: int) -> dict[str, Any]:
    """One row: time in all and per entry, memory and its limit."""
    users, items = sizes(entries)
    seconds = median(case["times"])
    used = case["peak"] - case["before"]
    limit = common.memory_limit(entries, users, items, components)
    return {
        "entries": entries, "users": users, "items": items, "K": components,
        "s / iteration": seconds, "times": case["times"],
        "times of the first": case["times of the first"],
        "ns / entry": 1e9 * seconds / entries,
        "ns / (entry x K)": 1e9 * seconds / entries / components,
        "input MB": 8 * entries / common.MB, "process peak MB": case["peak"] / common.MB,
        "fit MB": used / common.MB, "limit MB": limit / common.MB, "within": used <= limit,
    }  # fmt: skip


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--entries", type=common.whole, nargs="+", help="sizes to run")
    parser.add_argument("--full", action="store_true", help="up to 50 million entries")
    parser.add_argument("-K", "--fixed", type=int, default=50, help="K while the entries grow")
    parser.add_argument("--components", type=int, nargs="*", default=COMPONENTS)
    parser.add_argument("--components-entries", type=common.whole, default=1_000_000)
    parser.add_argument("--element", default="GA", help="GA, N, BI, ZTP or HPF")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--task", choices=("data", "case"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first-components", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(make_data(args) if args.task == "data" else run_case(args)))
        return
    entries = args.entries or (FULL if args.full else SIZES)
    header = common.start(
        "Scaling",
        f"synthetic, power-law activity, {', '.join(f'{n:,}' for n in entries)} entries, element "
        f"{args.element}, {args.threads} threads, seed {args.seed}",
    )
    columns = {"entries": ",", "users": ",", "items": ",", "K": "d", "s / iteration": ".3f"}
    memory = {"ratio": ".2f", "process peak MB": ",.0f", "input MB": ",.0f", "fit MB": ",.0f"}
    memory |= {"limit MB": ",.0f", "within": ""}
    with common.workspace() as folder:  # a first case fills the kernel cache
        cases(args, folder, [(10_000, 8)])
        by_size = cases(args, folder, [(n, args.fixed) for n in entries])
        by_k = cases(args, folder, [(args.components_entries, k) for k in args.components])
    print("Entries grow, K fixed; ratio: cost per entry, in turns with the first row:\n")
    common.table(by_size, {**columns, "ns / entry": ".1f", **memory})
    print("K grows; ratio: cost per entry and component, in turns with the first row:\n")
    common.table(by_k, {**columns, "ns / (entry x K)": ".3f", **memory})
    common.finish(header, {"by_entries": by_size, "by_components": by_k}, args.json)


if __name__ == "__main__":
    main()
