"""Seconds per full iteration (both sides, posteriors included), ours against peers.

All contestants take turns (A B C A B C ...), so a busy machine hurts them alike, and before and
after each turn the one that the others are compared with runs too: the ratio of a contestant is
the median of its turns' ratios to these, since the pace of a shared machine changes within
seconds. What one iteration costs is (time of many - time of few) / (many - few) iterations, so
set-up drops out; the median and the minimum are taken of either time before they are subtracted.
"""

import io
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

import common
from hcpf import elements
from hcpf.core.value_model import ValueModel, ways_to_vary

ELEMENTS = (
    elements.Normal(3.5, 1.2),
    elements.Gamma(2.0, 0.1),
    elements.InverseGaussian(3.0, 4.0),
    elements.Poisson(3.0),
    elements.Binomial(5, 0.7),
    elements.NegativeBinomial(2.0, 0.6),
    elements.ZeroTruncatedPoisson(3.0),
    elements.Logarithmic(0.8),
    elements.Geometric(0.5),
)
OURS = "hcpf Degenerate"
SLOWER = 1.5  # the most that an element may cost, relative to Degenerate
VARYING_SLOWER = 1.2  # the most that a varying theta may cost, relative to a shared one


@dataclass
class Contestant:
    """Something that runs n iterations, and how long few and many of them took each time."""

    name: str
    run: Callable[[int], object] | None
    few: int
    many: int
    at_least: float | None = None
    """How many times our Degenerate must be faster."""
    slow: bool = False
    """Takes part in the first repetitions only, without a warm-up."""
    note: str = ""
    times: list[tuple[float, float]] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    """Seconds of an iteration of the base, just before and after each turn."""

    def attempt(self, iterations: int) -> float:
        """Seconds for some iterations; a failure takes the contestant out and is noted."""
        began = perf_counter()
        try:
            if iterations and self.run is not None:
                self.run(iterations)
        except Exception as error:  # a peer that fails must not end the comparison
            self.run, self.note = None, f"failed: {error}"
        return perf_counter() - began

    def measure(self, base: "Contestant") -> None:
        """Time few and many iterations, and the base before and after."""
        before = base.attempt(base.many)
        few, many = self.attempt(self.few), self.attempt(self.many)
        if self.run is not None:
            self.times.append((few, many))
            self.beside.append((before + base.attempt(base.many)) / (2 * base.many))

    def ratios(self) -> tuple[float, float, float]:
        """How many times as long as the base an iteration takes: quartiles over the turns."""
        steps = self.many - self.few
        found = [
            (many - few) / steps / base
            for (few, many), base in zip(self.times, self.beside, strict=True)
        ]
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        return float(low), float(middle), float(high)

    def seconds(self, summary: Callable[[Iterable[float]], float]) -> float:
        """Seconds of one iteration."""
        few, many = (summary(times) for times in zip(*self.times, strict=True))
        return (many - few) / (self.many - self.few)


Peer = Callable[[sparse.csr_array, int, int], Callable[[int], object]]


def hpfrec(matrix: sparse.csr_array, components: int, threads: int, **more: Any) -> Any:
    """hpfrec: coordinate ascent for the same model, compiled for this machine."""
    from hpfrec import HPF

    def run(iterations: int) -> None:
        HPF(
            k=components, maxiter=iterations, check_every=iterations, stop_crit="maxiter",
            ncores=threads, reindex=False, produce_dicts=False, keep_data=False, verbose=False,
            random_seed=1, **more,
        ).fit(matrix.tocoo(copy=True))  # fmt: skip

    return run


def hpfrec_racing(matrix: sparse.csr_array, components: int, threads: int) -> Any:
    """hpfrec with its sums in parallel too, which lets results differ from run to run."""
    return hpfrec(matrix, components, threads, allow_inconsistent_math=True)


def implicit_als(matrix: sparse.csr_array, components: int, threads: int, **more: Any) -> Any:
    """implicit's alternating least squares, with BLAS on one thread as it recommends."""
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    confidence = sparse.csr_matrix(matrix)

    def run(iterations: int) -> None:
        with threadpool_limits(1, "blas"):
            AlternatingLeastSquares(
                factors=components, iterations=iterations, num_threads=threads, random_state=0,
                **more,
            ).fit(confidence, show_progress=False)  # fmt: skip

    return run


def implicit_exact(matrix: sparse.csr_array, components: int, threads: int) -> Any:
    """implicit with every row solved exactly, not by three conjugate gradient steps."""
    return implicit_als(matrix, components, threads, use_cg=False)


def cornac_hpf(matrix: sparse.csr_array, components: int, threads: int) -> Any:
    """cornac's HPF, which has one thread whatever is asked for."""
    del threads
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cornac.data import Dataset
        from cornac.models import HPF

    entries = matrix.tocoo()
    triplets = zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)
    data = Dataset.from_uir(list(triplets))

    def run(iterations: int) -> None:
        with redirect_stdout(io.StringIO()):
            HPF(k=components, max_iter=iterations, seed=1).fit(data)

    return run


PEERS: dict[str, tuple[Peer, int, int, float | None, bool]] = {
    # few, many iterations; the factor we must be faster by; whether it is slow
    "hpfrec": (hpfrec, 1, 4, 25.0, False),
    "hpfrec, racing threads": (hpfrec_racing, 1, 4, 25.0, False),
    "implicit ALS": (implicit_als, 1, 6, 12.0, False),
    "implicit ALS, exact solver": (implicit_exact, 1, 4, None, False),
    "cornac HPF (1 thread)": (cornac_hpf, 1, 3, None, True),
}


def contestants(args: Any) -> list[Contestant]:
    """Everyone that takes part, on the same pairs."""
    rng = np.random.default_rng(args.seed + 1)
    pairs = common.power_law_pairs(args.entries, args.users, args.items, args.seed)
    counts = common.with_values(pairs, 1 + rng.poisson(1.0, pairs.nnz))

    def ours(
        name: str,
        matrix: sparse.csr_array,
        element: elements.Element,
        vary_by: str | None = None,
    ) -> Contestant:
        value_model = ValueModel(element, vary_by)
        run = common.cavi(matrix, value_model, args.components, args.seed, args.threads)
        return Contestant(name, run, few=0, many=args.steps)

    if args.varying:
        return [
            ours(f"{type(element).__name__}, {vary_by or 'shared'}", drawn, element, vary_by)
            for element in ELEMENTS
            for drawn in [common.with_values(pairs, element.sample(np.ones(pairs.nnz), rng))]
            for vary_by in (None, *ways_to_vary(type(element)))
        ]
    made = [ours(OURS, counts, elements.Degenerate())]
    for element in ELEMENTS:
        drawn = common.with_values(pairs, element.sample(np.ones(pairs.nnz), rng))
        made.append(ours(type(element).__name__, drawn, element))
    for name, (build, few, many, at_least, slow) in PEERS.items():
        if args.no_peers or any(skipped in name for skipped in args.skip):
            continue
        run, note = None, ""
        try:
            run = build(counts, args.components, args.threads)
        except ImportError as error:
            note = f"not installed: {error}"
        made.append(Contestant(name, run, few, many, at_least, slow, note))
    return made


def compete(pairs: list[tuple[Contestant, Contestant]], args: Any) -> None:
    """Warm up, then let everyone take turns, each with its base beside it."""
    for one, _ in pairs:
        if not one.slow:
            one.attempt(max(one.few, 2))
    for repetition in range(max(args.repetitions, args.peer_repetitions)):
        for one, base in pairs:
            turns = args.repetitions if one.few == 0 else args.peer_repetitions
            turns = args.slow_repetitions if one.slow else turns
            if one.run is not None and repetition < turns:
                one.measure(base)


def result(one: Contestant, base: Contestant, slower: float) -> dict[str, Any]:
    """A row of the table: seconds, ratio to the base, and whether the target is met."""
    row: dict[str, Any] = {"contestant": one.name, "note": one.note}
    if not one.times:
        return row
    row |= {"median s": one.seconds(median), "minimum s": one.seconds(min)}
    row |= {"few": one.few, "many": one.many, "times": one.times, "beside": one.beside}
    low, ratio, high = one.ratios()
    row |= {"ratio": ratio, "half of the turns": f"{low:.2f} to {high:.2f}"}
    row["ratio of minima"] = one.seconds(min) / base.seconds(min)
    if one.at_least is not None:
        row |= {"target": f">= {one.at_least:g}", "met": ratio >= one.at_least}
    elif one.few == 0 and one is not base:
        row |= {"target": f"<= {slower:g}", "met": ratio <= slower}
    return row


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--entries", type=common.whole, default=1_000_000)
    parser.add_argument("--users", type=common.whole, default=50_000)
    parser.add_argument("--items", type=common.whole, default=10_000)
    parser.add_argument("-K", "--components", type=int, default=50)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--peer-repetitions", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="our iterations in a repetition")
    parser.add_argument(
        "--slow-repetitions", type=int, default=1, help="repetitions cornac takes part in"
    )
    parser.add_argument("--no-peers", action="store_true", help="compare the elements only")
    parser.add_argument(
        "--varying", action="store_true", help="compare shared and varying theta instead"
    )
    parser.add_argument("--skip", nargs="*", default=[], help="peers to leave out, such as cornac")
    args = parser.parse_args()
    header = common.start(
        "Seconds per iteration",
        f"{args.entries:,} synthetic entries, {args.users:,} x {args.items:,}, power-law activity, "
        f"K = {args.components}, {args.threads} threads, seed {args.seed}",
    )
    everyone = contestants(args)
    pairs: list[tuple[Contestant, Contestant]] = []
    base = everyone[0]
    for one in everyone:
        base = one if one.name.endswith(", shared") else base
        pairs.append((one, base))
    compete(pairs, args)
    slower = VARYING_SLOWER if args.varying else SLOWER
    rows = [result(one, base, slower) for one, base in pairs]
    columns = {"contestant": "", "median s": ".4f", "minimum s": ".4f", "ratio": ".2f"}
    columns |= {"half of the turns": "", "ratio of minima": ".2f", "target": "", "met": ""}
    common.table(rows, {**columns, "note": ""})
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
