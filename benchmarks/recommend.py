"""The ten best items for every user, seen ones left out: ours against implicit's ALS.

Both rank with factors of the same size for the same data; only ``recommend`` is timed, the two
taking turns. Sizes: that of MovieLens 1M, and ten times as many users.
"""

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

import common

SIZES = ((6_040, 3_706, 1_000_000), (60_400, 3_706, 10_000_000))


def contest(size: tuple[int, int, int], args: Any) -> dict[str, Any]:
    """Time both on data of one size."""
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


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-K", "--components", type=int, default=50)
    parser.add_argument("-n", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    header = common.start(
        "Recommending for all users", f"power-law pairs, K = {args.components}, n = {args.n}"
    )
    rows = [contest(size, args) for size in SIZES]
    columns = {"users": ",", "items": ",", "entries": ",", "hcpf s": ".3f", "implicit s": ".3f"}
    common.table(rows, {**columns, "ratio": ".2f", "met": ""})
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
