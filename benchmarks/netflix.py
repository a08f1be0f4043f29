"""The largest set of the paper: 100 million simulated entries, 480,189 x 17,770, K = 160.

Without --fit: seconds of one coordinate ascent iteration, and peak memory. With it: a whole fit
to convergence. The data are simulated in a separate process; --data keeps them in a folder.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

import common

MINUTES, GIGABYTES = 30.0, 6.0
SECONDS = "fit s", "CPU s", "main thread CPU s"
"""What a fit takes. What the main thread does alone is twice its part less that of both."""


def make_data(args: argparse.Namespace) -> dict[str, Any]:
    """Simulate and store the data (child process)."""
    from hcpf import simulate

    drawn = simulate(like="netflix", scale=args.scale, random_state=args.seed, progress=False)
    common.save_matrix(drawn.interactions.matrix, args.folder)
    return {}


def iterate(args: argparse.Namespace) -> dict[str, Any]:
    """Time iterations (child process)."""
    from hcpf.core.value_model import ValueModel
    from hcpf.elements import Binomial

    def value_model(part: Any) -> ValueModel:
        return ValueModel(Binomial.estimate(part.data))

    matrix = common.load_matrix(args.folder)
    warm = matrix[:2000, :2000]
    common.cavi(warm, value_model(warm), 8, args.seed, args.threads)(1)
    began = perf_counter()
    run = common.cavi(matrix, value_model(matrix), args.components, args.seed, args.threads)
    laid_out, times = perf_counter() - began, []
    for _ in range(args.repetitions):
        began = perf_counter()
        run(1)
        times.append(perf_counter() - began)
    return {**_describe(matrix), "set-up s": laid_out, "times": times, "iteration s": min(times)}


def fit(args: argparse.Namespace) -> dict[str, Any]:
    """Fit to convergence (child process)."""
    from hcpf import HCPF

    matrix = common.load_matrix(args.folder)
    settings: dict[str, Any] = {"element": "BI", "n_fits": 1}
    run: dict[str, Any] = {"n_threads": args.threads, "progress": False}
    HCPF(8, max_iter=3, **settings).fit(matrix[:2000, :2000], **run)  # kernels are loaded
    clocks = perf_counter, process_time, thread_time
    began = [clock() for clock in clocks]
    model = HCPF(args.components, random_state=args.seed, **settings).fit(matrix, **run)
    seconds = [clock() - start for clock, start in zip(clocks, began, strict=True)]
    found = {**_describe(matrix), **dict(zip(SECONDS, seconds, strict=True))}
    found |= {"passes": model.n_iter_, "ELBO": model.history_[-1].elbo}
    return found | {"history": [vars(check) for check in model.history_]}


def _describe(matrix: Any) -> dict[str, Any]:
    users, items = matrix.shape
    return {"entries": matrix.nnz, "users": users, "items": items, "peak": common.peak_bytes()}


TASKS = {"data": make_data, "iterate": iterate, "fit": fit}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-K", "--components", type=int, default=160)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of rows and columns")
    parser.add_argument("--fit", action="store_true", help="a whole fit instead of iterations")
    parser.add_argument("--repetitions", type=int, default=3, help="iterations to time")
    parser.add_argument("--data", type=Path, help="folder to keep data in, or to find them")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(TASKS[args.task](args)))
        return
    header = common.start(
        "Netflix size",
        f"simulated like netflix, scale {args.scale:g}, K = {args.components}, "
        f"{args.threads} threads, seed {args.seed}",
    )
    shared = ("--components", args.components, "--scale", args.scale, "--threads", args.threads)
    shared += ("--seed", args.seed, "--repetitions", args.repetitions)
    with common.workspace() as temporary:
        folder = args.data or temporary
        if not (folder / "shape.npy").exists():
            common.child("netflix.py", "--task", "data", "--folder", folder, *shared)
        task = "fit" if args.fit else "iterate"
        row = common.child("netflix.py", "--task", task, "--folder", folder, *shared)
    size = (row["entries"], row["users"], row["items"], args.components)
    row["peak GB"] = row["peak"] / 1e9
    row["limit GB"] = (common.memory_limit(*size) + 8 * row["entries"]) / 1e9
    row["met"] = row["peak GB"] < GIGABYTES and row.get("fit s", 0.0) < 60 * MINUTES
    columns = {"entries": ",", "users": ",", "items": ","}
    if args.fit:
        columns |= dict.fromkeys(SECONDS, ",.1f") | {"passes": "d", "ELBO": ",.0f"}
    columns |= {} if args.fit else {"set-up s": ".2f", "iteration s": ".3f"}
    print(f"Targets: a fit under {MINUTES:g} minutes, peak memory under {GIGABYTES:g} GB.")
    print("The limit is the design's, input included, libraries not.\n")
    common.table([row], {**columns, "peak GB": ".2f", "limit GB": ".2f", "met": ""})
    common.finish(header, {"rows": [row]}, args.json)


if __name__ == "__main__":
    main()
