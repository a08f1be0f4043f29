"""CPU seconds of our half-step against the same sums written by hand in C++, for K = 64.

``kernel_twin.cpp`` is compiled for this machine (g++ -O3 -march=native) and gets our arrays: the
entries, factors and tables. Both run in this process on one thread and take turns, a pass (both
axes) each; the ratio is the median over the turns. Ours also sets the posteriors, checks for the
slow path and serves any K and any pooling, which the twin does not. Before timing, the sums of the
twin are compared with ours.
"""

import ctypes
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import numpy as np

import common
from hcpf import elements
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL
from hcpf.core.half_step import accumulate, half_step
from hcpf.core.posterior import axis_prior
from hcpf.core.priors import Priors
from hcpf.core.shard import ShardData, ShardSource
from hcpf.core.threads import kernel_threads
from hcpf.core.value_model import ValueModel
from hcpf.training.solvers.cavi import cavi_pass
from hcpf.training.start import start_from_noise

COMPONENTS = 64  # the twin's
FLAGS = ("-O3", "-march=native", "-mprefer-vector-width=512", "-shared", "-fPIC")
GOALS = {"Degenerate": 1.6, "Binomial": 2.0, "Gamma": 2.0}
WARM_UP = 10  # passes before the comparison, so that rates are those of a fit
KEPT = 32  # rows of sums in memory while the twin is timed; ours keeps as many


class Entries(ctypes.Structure):
    """The twin's view of the entries of one axis."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("start", "stop", "index", "coordinate")),
        ("rows", ctypes.c_int64),
        ("size", ctypes.c_int64),
    )


class Table(ctypes.Structure):
    """The twin's view of the table of E[n]."""

    _fields_ = (
        ("pieces", ctypes.c_void_p),
        ("segments", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("first_code", ctypes.c_int32),
        ("low", ctypes.c_float),
        ("high", ctypes.c_float),
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--entries", type=common.whole, default=200_000)
    parser.add_argument("--users", type=common.whole, default=10_000)
    parser.add_argument("--items", type=common.whole, default=2_000)
    parser.add_argument("--turns", type=int, default=60)
    args = parser.parse_args()
    header = common.start(
        "Kernel against C++",
        f"{args.entries:,} synthetic entries, {args.users:,} x {args.items:,}, K = {COMPONENTS}, "
        f"1 thread, seed {args.seed}",
    )
    pairs = common.power_law_pairs(args.entries, args.users, args.items, args.seed)
    with common.workspace() as folder, kernel_threads(1):
        library = compile_twin(folder)
        rows = [compare(name, pairs, library, args) for name in GOALS]
    columns = {"element": "", "ours ns": ".2f", "C++ ns": ".2f", "ratio of these": ".2f"}
    columns |= {"ratio": ".2f", "half of the turns": "", "goal": ".1f"}
    print("Best CPU nanoseconds per entry and half-step; the ratio is the median over the turns.\n")
    common.table(rows, columns)
    common.finish(header, {"rows": rows}, args.json)


def compile_twin(folder: Path) -> Any:
    """Compile the twin and load it."""
    source, target = Path(__file__).with_suffix(".cpp"), folder / "twin.so"
    subprocess.run(["g++", *FLAGS, "-o", str(target), str(source)], check=True)
    library = ctypes.CDLL(str(target))
    library.twin.restype = ctypes.c_int64
    return library


def compare(name: str, pairs: Any, library: Any, args: Any) -> dict[str, Any]:
    """Return a row of the table: both times of an entry, and their ratio."""
    element, values = draw(name, pairs.nnz, args.seed)
    data = ShardData.whole(common.with_values(pairs, values))
    source = ShardSource.alone(data)
    shard = source.lay_out(ValueModel(element))
    priors = Priors.matched(pairs.nnz / np.prod(pairs.shape), COMPONENTS)
    rng = np.random.default_rng(args.seed)
    state = start_from_noise(shard, priors, COMPONENTS, rng, LOCAL)
    for _ in range(WARM_UP):
        cavi_pass(state, shard)
    ours, twins = [], []
    for axis in Axis:
        mine, other, layout = state.axis(axis), state.axis(axis.other), shard.layout(axis)
        prior = axis_prior(state.priors, axis, COMPONENTS, scale=shard.tempering)
        twin = twin_step(library, mine.factors, other.factors, layout.entries, shard.tables.arrays)
        check(twin, accumulate(mine, other, layout, shard.tables.arrays), mine.factors.g)
        ours.append(partial(half_step, mine, other, layout, shard.tables.arrays, prior))
        twins.append(partial(twin, KEPT))
    times = np.array([[seconds(run) for run in (ours, twins)] for _ in range(args.turns)])
    ratios = times[:, 0] / times[:, 1]
    low, high = np.quantile(ratios, [0.25, 0.75])
    ours_ns, twin_ns = np.min(times, axis=0) / (2e-9 * pairs.nnz)
    return {
        "element": name, "ours ns": ours_ns, "C++ ns": twin_ns, "ratio of these": ours_ns / twin_ns,
        "ratio": median(ratios),
        "half of the turns": f"{low:.2f} to {high:.2f}", "goal": GOALS[name],
    }  # fmt: skip


def draw(name: str, size: int, seed: int) -> tuple[elements.Element, Any]:
    """Return an element and values that suit it."""
    rng = np.random.default_rng(seed + 1)
    if name == "Degenerate":
        return elements.Degenerate(), 1 + rng.poisson(1.0, size)
    if name == "Binomial":
        return elements.Binomial(5, 0.7), rng.binomial(5, 0.7, size)
    return elements.Gamma(2.0, 0.1), rng.gamma(2.0, 10.0, size)


def twin_step(
    library: Any, mine: Any, other: Any, entries: Any, tables: Any
) -> Callable[[int], tuple[Any, Any]]:
    """Return a function that lets the twin sum over the entries of all rows, keeping some sums."""
    arrays = entries.start, entries.stop, entries.index, entries.coordinate
    types = np.int64, np.int64, np.int32, np.float32
    assert all(array.dtype == kind for array, kind in zip(arrays, types, strict=True))
    rows, table = len(mine.a), tables.mean_table
    view = Entries(*(array.ctypes.data for array in arrays), rows, len(entries.index))
    pieces = Table(
        table.ctypes.data, table.shape[1], table.shape[0] * table.shape[1],
        tables.first_code, tables.x_low, tables.x_high,
    )  # fmt: skip
    counts = np.zeros(rows)

    def run(kept: int) -> tuple[Any, Any]:
        totals = np.zeros((kept, COMPONENTS))
        inputs = (mine.g, other.g, other.row_terms, mine.row_terms)
        failed = library.twin(
            ctypes.c_int(tables.mode), ctypes.byref(view),
            *(ctypes.c_void_p(array.ctypes.data) for array in inputs), ctypes.byref(pieces),
            ctypes.c_void_p(totals.ctypes.data), ctypes.c_int64(kept),
            ctypes.c_void_p(counts.ctypes.data),
        )  # fmt: skip
        assert failed == 0, "rates outside the tables: the twin has no slow path"
        return totals, counts

    return run


def check(twin: Callable[[int], tuple[Any, Any]], found: Any, g: Any) -> None:
    """Compare the sums of the twin with ours."""
    totals, counts = twin(len(g))
    np.testing.assert_allclose(totals * g, found.totals, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(counts, found.counts[:, 0], rtol=1e-4)


def seconds(steps: list[Callable[[], object]]) -> float:
    """CPU seconds of both half-steps of a pass."""
    began = thread_time()
    for step in steps:
        step()
    return thread_time() - began


if __name__ == "__main__":
    main()
