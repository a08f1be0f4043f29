"""Fits to data on disk: time, anonymous memory and bytes read of each phase.

Phases: ``simulate`` writes shards as they are drawn, ``fit`` fits a model to them, and ``memory``
fits the same model to the same entries in memory. Each phase runs in a separate process, which
stores its figures in FOLDER; phases that are done are not run again, and a fit with
``--checkpoint`` resumes. Every pass adds a line to FOLDER/PHASE.jsonl, so a fit that is stopped
leaves its figures (the ELBO is that of the last evaluation). The anonymous memory (RssAnon) and the
bytes read are those of /proc, sampled.

    python benchmarks/out_of_core.py FOLDER --users 480189 --items 17770 --entries 1e8 \
        --components 64 --phases simulate fit memory
"""

import argparse
import json
import sys
import threading
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import common

PHASES = ("simulate", "fit", "memory")
_SAMPLE_SECONDS = 0.2


class Meter:
    """Seconds, CPU seconds, the peak of anonymous memory and bytes read and written since then."""

    def __init__(self) -> None:
        self._began, self._cpu, self._io = perf_counter(), process_time(), _io()
        self._peak, self._stop = _anonymous_bytes(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self._peak = max(self._peak, _anonymous_bytes())

    def finish(self) -> dict[str, float]:
        """Stop and return the figures."""
        self._stop.set()
        self._thread.join()
        return self.read()

    def read(self) -> dict[str, float]:
        """Return the figures so far."""
        now = _io()
        return {
            "s": perf_counter() - self._began,
            "CPU s": process_time() - self._cpu,
            "RssAnon GB": max(self._peak, _anonymous_bytes()) / 1e9,
            "read GB": (now["read_bytes"] - self._io["read_bytes"]) / 1e9,
            "written GB": (now["write_bytes"] - self._io["write_bytes"]) / 1e9,
        }


def log_passes(file: Path, meter: Meter) -> None:
    """Write a line to a file when set-up is done, and after each pass of the fits that follow."""
    from hcpf.training import loop

    advance = loop.advance_fit

    def write(fit: Any) -> None:
        checks = fit.state.history
        found = {"pass": fit.state.iteration, "ELBO": checks[-1].elbo if checks else None}
        with file.open("a") as lines:
            lines.write(json.dumps(found | meter.read()) + "\n")

    def logged(fit: Any) -> None:
        if fit.state.iteration == 0:
            write(fit)
        advance(fit)
        write(fit)

    loop.advance_fit = logged


def _anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def _io() -> dict[str, int]:
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(number) for name, number in (line.split(": ") for line in lines)}


def simulate(args: argparse.Namespace) -> dict[str, Any]:
    """Draw the entries into shards (child process)."""
    from hcpf import simulate

    meter = Meter()
    drawn = simulate(
        args.users, args.items, n_components=args.components, random_state=args.seed,
        density=args.entries / args.users / args.items, shards=args.folder / "shards",
        n_shards=args.shards, progress=False,
    )  # fmt: skip
    data = drawn.interactions
    sizes = {"users": data.n_users, "items": data.n_items, "entries": data.n_observed}
    return {**sizes, "whole": meter.finish()}


def fit(args: argparse.Namespace) -> dict[str, Any]:
    """Fit a model to the shards, or to their entries in memory (child process)."""
    from hcpf import HCPF, Checkpoints, Interactions, Shards

    sample = Interactions.from_matrix([[0, 1.5, 2.5], [1, 0, 3.5], [2, 4.5, 0]])
    run: dict[str, Any] = {"n_threads": args.threads, "progress": False}
    settings: dict[str, Any] = {
        "element": "gamma", "n_fits": 1, "tempering": 1.0, "solver": args.solver,
        "max_iter": args.passes, "tol": args.tol, "random_state": args.seed,
    }  # fmt: skip
    HCPF(2, **settings).fit(sample, **run)  # kernels are loaded
    data: Interactions = Shards.open(args.folder / "shards", check=False)
    if args.phase == "memory":
        data = data.to_memory()
    elif args.checkpoint:
        run["checkpoint"] = Checkpoints(args.folder / "checkpoint", every_seconds=900.0)
    meter, began = Meter(), perf_counter()
    log_passes(args.folder / f"{args.phase}.jsonl", meter)
    model = HCPF(args.components, **settings).fit(data, **run)
    found: dict[str, Any] = {"whole": meter.finish()}
    history = [vars(check) for check in model.history_]
    found["set-up s"] = perf_counter() - began - history[-1]["seconds"]
    return found | {"passes": model.n_iter_, "history": history, "element": repr(model.element_)}


def main() -> None:
    """Run the phases that are asked for and not yet done, and print all that are."""
    parser = common.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--users", type=common.whole, default=100_000)
    parser.add_argument("--items", type=common.whole, default=10_000)
    parser.add_argument("--entries", type=float, default=1e7)
    parser.add_argument("--components", type=int, default=32)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=list(PHASES))
    parser.add_argument("--phase", choices=PHASES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.phase is not None:
        print(json.dumps(simulate(args) if args.phase == "simulate" else fit(args)))
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    header = common.start("Out of core", f"simulated, {args.entries:,.0f} entries expected")
    results: dict[str, Any] = {}
    for phase in args.phases:
        file = args.folder / f"{phase}.json"
        if not file.exists():
            found = common.child("out_of_core.py", *sys.argv[1:], "--phase", phase)
            file.write_text(json.dumps(found, indent=1))
        results[phase] = json.loads(file.read_text())
    _report(results)
    common.finish(header, results, args.json)


def _report(results: dict[str, Any]) -> None:
    rows = [
        {
            "phase": phase, **found["whole"], "set-up s": found.get("set-up s"),
            "passes": found.get("passes"),
            "ELBO": found["history"][-1]["elbo"] if "history" in found else None,
        }
        for phase, found in results.items()
    ]  # fmt: skip
    formats = {
        "phase": "", "s": ",.0f", "CPU s": ",.0f", "RssAnon GB": ".2f", "read GB": ",.1f",
        "written GB": ",.1f", "set-up s": ",.0f", "passes": ",.0f", "ELBO": ",.8g",
    }  # fmt: skip
    common.table(rows, formats)


if __name__ == "__main__":
    main()
