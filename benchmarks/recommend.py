"""The ten best items of every user: the share of what BLAS could do, and implicit's ALS.

By default a model with random factors: ``write_recommendations`` to a Parquet file, seen items left
out, by one fit and by the consensus of four, beside the bare float32 products of the same tiles,
BLAS on as many threads. ``--users 1e5`` is a tenth of the usual size. ``--peers`` compares
``recommend`` with implicit instead, with factors of the same size, the two taking turns, at the
size of MovieLens 1M and at ten times as many users.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

import common

SIZES = ((6_040, 3_706, 1_000_000), (60_400, 3_706, 10_000_000))
SEEN_PER_USER = 20


def random_model(users: int, items: int, components: int, fits: int, seed: int) -> Any:
    """A model with gamma-distributed factors, and data that mark some items as seen."""
    from hcpf import FittedModel, Interactions, Priors
    from hcpf.core.posterior import FactorPosterior, Posterior
    from hcpf.core.value_model import ValueModel
    from hcpf.elements import Poisson

    rng = np.random.default_rng(seed)

    def side(rows: int, scale: float) -> FactorPosterior:
        mean = scale * rng.standard_gamma(0.3, (rows, components), dtype=np.float32) + 1e-6
        return FactorPosterior(np.ones_like(mean), mean, np.ones(rows), np.ones(rows))

    posteriors = tuple(Posterior(side(users, 0.1), side(items, 0.1)) for _ in range(fits))
    matrix = common.power_law_pairs(SEEN_PER_USER * users, users, items, seed)
    data = Interactions(matrix, np.arange(users), np.arange(items))
    return FittedModel(
        ValueModel(Poisson(1.5)), Priors.matched(SEEN_PER_USER / items, components), posteriors,
        data.users, data.items, data=data,
    )  # fmt: skip


def bare_products(model: Any, users: int, threads: int) -> float:
    """Seconds of the products alone, in the tiles of ``hcpf.model.ranking``, for some users."""
    from threadpoolctl import threadpool_limits

    from hcpf.model import ranking

    block = ranking.MAX_BLOCK
    width = ranking.TILE // block
    mine, items = model.posteriors[0].users.mean_, model.posteriors[0].items.mean_
    out = np.empty((block, width), np.float32)
    with threadpool_limits(threads, "blas"):
        began = perf_counter()
        for first in range(0, users, block):
            part = mine[first : first + block]
            for begin in range(0, len(items), width):
                tile = items[begin : begin + width]
                np.matmul(part, tile.T, out=out[: len(part), : len(tile)])
        return perf_counter() - began


def large_products(model: Any, users: int, threads: int) -> float:
    """Seconds of the products alone in blocks of users times all items, 64 MB each."""
    from threadpoolctl import threadpool_limits

    mine, items = model.posteriors[0].users.mean_, model.posteriors[0].items.mean_
    block = max(1, (1 << 24) // len(items))
    out = np.empty((block, len(items)), np.float32)
    with threadpool_limits(threads, "blas"):
        began = perf_counter()
        for first in range(0, users, block):
            part = mine[first : first + block]
            np.matmul(part, items.T, out=out[: len(part)])
        return perf_counter() - began


def bulk(args: Any) -> list[dict[str, Any]]:
    """Time recommendations of all users by one fit and by the consensus of four."""
    from hcpf.core.threads import kernel_threads

    rows, one_fit = [], 0.0
    for fits in (1, 4):
        model = random_model(args.users, args.items, args.components, fits, args.seed)
        sample = min(args.users, 20_000)  # of the bare products, which take the same time each
        with kernel_threads(args.threads), common.workspace() as folder:
            _write(model, folder / "warm.parquet", args.n, np.arange(256))
            before = common.resident_bytes()
            common.reset_peak()
            blas = [kind(model, sample, args.threads) for kind in (bare_products, large_products)]
            seconds = _timed(lambda: _write(model, folder / "all.parquet", args.n, "all"))  # noqa: B023
            blas += [kind(model, sample, args.threads) for kind in (bare_products, large_products)]
        scale = fits * args.users / sample
        limit = [scale * min(blas[0], blas[2]), scale * min(blas[1], blas[3])]
        one_fit = one_fit or seconds
        rows.append({
            "fits": fits, "s": seconds, "users/s": args.users / seconds,
            "BLAS, same tiles, s": limit[0], "share": limit[0] / seconds,
            "BLAS, large blocks, s": limit[1], "share of it": limit[1] / seconds,
            "times one fit": seconds / one_fit,
            "memory above the model, MB": (common.peak_bytes() - before) / common.MB,
        })  # fmt: skip
    return rows


def _write(model: Any, path: Path, n: int, users: Any) -> None:
    written = model.write_recommendations(path, n, users=users, progress=False)
    assert written == n * len(model.users if isinstance(users, str) else users)


def _timed(call: Callable[[], Any]) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


def contest(size: tuple[int, int, int], args: Any) -> dict[str, Any]:
    """Time hcpf and implicit on data of one size."""
    from implicit.cpu.als import AlternatingLeastSquares

    from hcpf import HCPF

    users, items, entries = size
    matrix = common.power_law_pairs(entries, users, items, args.seed)
    ours = HCPF(args.components, element="degenerate", max_iter=5, random_state=args.seed).fit(
        matrix, progress=False
    )
    theirs = AlternatingLeastSquares(
        factors=args.components, iterations=2, num_threads=args.threads, random_state=args.seed
    )
    their_matrix = sparse.csr_matrix(matrix)  # implicit knows no sparse arrays
    theirs.fit(their_matrix, show_progress=False)
    everyone = np.arange(users)
    times: dict[str, list[float]] = {"hcpf": [], "implicit": []}
    for repetition in range(args.repetitions + 1):
        began = perf_counter()
        found = ours.recommend(everyone, args.n)
        middle = perf_counter()
        theirs.recommend(everyone, their_matrix, N=args.n, filter_already_liked_items=True)
        if repetition:  # the first compiles or loads kernels
            times["hcpf"].append(middle - began)
            times["implicit"].append(perf_counter() - middle)
    assert len(found) == args.n * users
    row = {"users": users, "items": items, "entries": matrix.nnz}
    row |= {f"{name} s": median(values) for name, values in times.items()}
    row["ratio"] = row["implicit s"] / row["hcpf s"]
    return row | {"met": row["ratio"] >= 1.0}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-K", "--components", type=int, default=50)
    parser.add_argument("-n", type=int, default=10)
    parser.add_argument("--users", type=common.whole, default=1_000_000)
    parser.add_argument("--items", type=common.whole, default=50_000)
    parser.add_argument("--peers", action="store_true", help="compare with implicit instead")
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args(arguments)
    what = f"K = {args.components}, n = {args.n}"
    if args.peers:
        header = common.start("Recommending for all users", f"power-law pairs, {what}")
        rows = [contest(size, args) for size in SIZES]
        columns = {"users": ",", "items": ",", "entries": ",", "hcpf s": ".3f", "implicit s": ".3f"}
        columns |= {"ratio": ".2f", "met": ""}
    else:
        size = f"{args.users:,} users x {args.items:,} items"
        header = common.start("Writing recommendations", f"random factors, {size}, {what}")
        rows = bulk(args)
        columns = dict.fromkeys(rows[0], ".2f")
        columns |= {"fits": "d", "users/s": ",.0f", "memory above the model, MB": ",.0f"}
    common.table(rows, columns)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
