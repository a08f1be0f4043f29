"""Seconds per pass and peak memory of two checkouts of hcpf, taking turns in one run.

Each checkout runs in a process that imports its own code. A turn times some passes of one
checkout and then the same passes of the other, in alternating order, so that a busy machine hurts
both alike; the ratio is the median over the turns. A process keeps its luck with the memory pages
it was given, so several pairs of processes are started. Memory is the peak of a fresh process
that fits gamma values, with all settings given.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ELEMENTS = ("Degenerate", "Gamma", "Poisson", "Gamma, item")
MEMORY_PASSES = 12


def main() -> None:
    """Compare two checkouts, or serve as the process of one of them."""
    if "--serve" in sys.argv:
        sys.path.remove(str(HERE))  # the checkout's own benchmarks/common.py is on PYTHONPATH
        serve(json.loads(sys.argv[-1]))
        return
    import common

    parser = common.parser(__doc__)
    parser.add_argument("old", type=Path, help="checkout of the earlier commit")
    parser.add_argument("new", type=Path, nargs="?", default=HERE.parent, help="default: this one")
    parser.add_argument("--entries", type=common.whole, default=1_000_000)
    parser.add_argument("--users", type=common.whole, default=50_000)
    parser.add_argument("--items", type=common.whole, default=10_000)
    parser.add_argument("-K", "--components", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes")
    parser.add_argument("--turns", type=int, default=9, help="turns of each pair of processes")
    parser.add_argument("--passes", type=int, default=5, help="passes per turn")
    args = parser.parse_args()
    header = common.start(
        "Two commits",
        f"{args.entries:,} synthetic entries, {args.users:,} x {args.items:,}, "
        f"K = {args.components}, {args.threads} threads, seed {args.seed}",
    )
    checkouts = args.old.resolve(), args.new.resolve()
    print("- commits: old", common.commit(checkouts[0]), "new", common.commit(checkouts[1]), "\n")
    sizes = ("entries", "users", "items", "components", "threads", "seed")
    options = {name: getattr(args, name) for name in sizes}
    rows = time_in_turns(checkouts, options, args)
    columns = {"element": "", "old s": ".4f", "new s": ".4f", "ratio": ".3f", "of processes": ""}
    common.table(rows, columns)
    memory = [measure_memory(checkout, options, args.pairs) for checkout in checkouts]
    peaks = dict(zip(("old MB", "new MB"), memory, strict=True))
    common.table(
        [{"memory": "peak of a gamma fit", **peaks}], {"memory": "", **dict.fromkeys(peaks, ".1f")}
    )
    common.finish(header, {"rows": rows, "memory": peaks}, args.json)


# -- the process that compares --------------------------------------------------------------------


class Child:
    """A process that imports one checkout and runs passes on request."""

    def __init__(self, checkout: Path, options: dict[str, Any]) -> None:
        path = os.pathsep.join([str(checkout / "src"), str(checkout / "benchmarks")])
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path}, cwd=checkout,
        )  # fmt: skip

    def ask(self, **request: Any) -> float:
        """Send a request and return the number that answers it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("A checkout failed; see its error above.")
        return float(line)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def time_in_turns(
    checkouts: tuple[Path, Path], options: dict[str, Any], args: Any
) -> list[dict[str, Any]]:
    """Return a row per element: seconds of a pass in both checkouts, and their ratio."""
    seconds = {name: ([], []) for name in ELEMENTS}
    medians: dict[str, list[float]] = {name: [] for name in ELEMENTS}
    for _ in range(args.pairs):
        children = [Child(checkout, options) for checkout in checkouts]
        for name in ELEMENTS:
            ratios = []
            for child in children:
                child.ask(element=name, passes=2)
            for turn in range(args.turns):
                took = [0.0, 0.0]
                for which in (0, 1) if turn % 2 else (1, 0):
                    took[which] = (
                        children[which].ask(element=name, passes=args.passes) / args.passes
                    )
                    seconds[name][which].append(took[which])
                ratios.append(took[1] / took[0])
            medians[name].append(median(ratios))
        for child in children:
            child.close()
    return [
        {
            "element": name,
            "old s": min(old),
            "new s": min(new),
            "ratio": median(medians[name]),
            "of processes": f"{min(medians[name]):.3f} to {max(medians[name]):.3f}",
        }
        for name, (old, new) in seconds.items()
    ]


def measure_memory(checkout: Path, options: dict[str, Any], times: int) -> float:
    """Return the median peak memory of a fit in a fresh process, in MB."""
    peaks = []
    for _ in range(times):
        child = Child(checkout, options)
        peaks.append(child.ask(memory=True) / 1e6)
        child.close()
    return median(peaks)


# -- the process of one checkout ------------------------------------------------------------------


def serve(options: dict[str, Any]) -> None:
    """Answer requests for passes or a fit with the seconds or bytes they took."""
    import common

    pairs = common.power_law_pairs(
        options["entries"], options["users"], options["items"], options["seed"]
    )
    made: dict[str, Callable[[int], object]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("memory"):
            answer = fit_memory(pairs, options)
        else:
            name = request["element"]
            if name not in made:
                made.clear()
                made[name] = passes_of(name, pairs, options)
            began = perf_counter()
            made[name](request["passes"])
            answer = perf_counter() - began
        print(answer, flush=True)


def passes_of(name: str, pairs: Any, options: dict[str, Any]) -> Callable[[int], object]:
    """Return a function that makes passes, whatever the age of the checkout."""
    import common
    from hcpf import elements

    kind, _, vary_by = name.partition(", ")
    drawn = draw(kind, pairs, options)
    element = {"Degenerate": (), "Gamma": (2.0, 0.1), "Poisson": (3.0,)}[kind]
    try:
        from hcpf.core.value_model import ValueModel

        model = ValueModel(getattr(elements, kind)(*element), vary_by or None)
    except ImportError:  # before value models existed, an element knew what varies
        model = getattr(elements, kind)(*element, **({"per": vary_by} if vary_by else {}))
    return common.cavi(drawn, model, options["components"], options["seed"], options["threads"])


def draw(kind: str, pairs: Any, options: dict[str, Any]) -> Any:
    """Return the pairs with values that suit an element."""
    import common

    rng = np.random.default_rng(options["seed"] + 1)
    values = {
        "Degenerate": lambda: 1 + rng.poisson(1.0, pairs.nnz),
        "Gamma": lambda: rng.gamma(2.0, 10.0, pairs.nnz),
        "Poisson": lambda: rng.poisson(3.0, pairs.nnz),
    }[kind]()
    return common.with_values(pairs, values)


def fit_memory(pairs: Any, options: dict[str, Any]) -> float:
    """Return the peak memory of a fit with all settings given."""
    import common
    from hcpf import HCPF, elements

    model = HCPF(
        options["components"], element=elements.Gamma(2.0, 0.1), n_fits=1, solver="cavi",
        tempering=1.0, max_iter=MEMORY_PASSES, tol=0.0, random_state=0,
    )  # fmt: skip
    model.fit(draw("Gamma", pairs, options))
    return float(common.peak_bytes())


if __name__ == "__main__":
    main()
