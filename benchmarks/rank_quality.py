"""Ranking quality against implicit's ALS on the same split: NDCG@k, seen items excluded.

implicit takes part with a small grid of settings, of which the best (on the test pairs, which
favors it) counts; ours with its defaults. Data: parquet files of user, item, value.

    .venv-bench/bin/python benchmarks/rank_quality.py FOLDER --only ml1m gowalla_binary
"""

import itertools
import time
from typing import Any

import numpy as np
from scipy import sparse

import common
import sets
from hcpf import HCPF, Interactions
from hcpf.evaluate import Popularity, ranking, split
from hcpf.model.tables import Recommendations

ALPHAS, REGULARISATIONS, ON_VALUES = (1.0, 4.0, 16.0), (0.01, 0.3), (False, True)


class Als:
    """implicit's ALS with the one method that the ranking needs."""

    def __init__(self, train: Interactions, components: int, seed: int, **settings: Any) -> None:
        from implicit.cpu.als import AlternatingLeastSquares

        on_values = settings.pop("on_values")
        matrix = sparse.csr_matrix(train.matrix)
        if not on_values:
            matrix = sparse.csr_matrix(
                (np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), matrix.shape
            )
        self.matrix, self.items = matrix, train.items
        self.model = AlternatingLeastSquares(factors=components, random_state=seed, **settings)
        self.model.fit(matrix, show_progress=False)
        self.rows = {user: row for row, user in enumerate(train.users)}

    def recommend(self, users: Any, n: int = 10, *, by: str = "probability") -> Any:
        """The best n items."""
        users = np.asarray(users)
        rows = np.array([self.rows[user] for user in users])
        items, score = self.model.recommend(
            rows, self.matrix[rows], N=n, filter_already_liked_items=True
        )
        # Where it runs out of items implicit pads its lists with a score of -infinity.
        valid = score > -1e30
        rank = np.broadcast_to(np.arange(1, n + 1), items.shape)
        some = np.broadcast_to(users[:, None], items.shape)[valid]
        nothing = score[valid].astype(float)
        return Recommendations(
            user=some, item=self.items[items[valid]], rank=rank[valid],
            probability=nothing, value=nothing, expected_value=nothing,
        )  # fmt: skip


def contest(name: str, data: Interactions, args: Any) -> list[dict[str, Any]]:
    """All contestants on one data set."""
    parts = split(data, random_state=args.seed)
    rows: list[dict[str, Any]] = []

    def add(label: str, model: Any, began: float, by: str | None = None) -> None:
        seconds = time.perf_counter() - began
        found = ranking(model, parts, n=args.k, by=by)
        row = {"data": name, "model": label, "seconds": seconds}
        row |= {key: found[key].value for key in ("ndcg", "recall", "map")}
        rows.append(row)
        print(
            {key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()}, flush=True
        )

    add("popularity", Popularity().fit(parts.train, exclude=parts.held_out), time.perf_counter())
    for n_fits in args.fits:
        began = time.perf_counter()
        model = HCPF(args.components, n_fits=n_fits, random_state=args.seed, train_on=args.train_on)
        model.fit(
            parts.train, validation=parts.validation_matrix, exclude=parts.held_out, progress=False
        )
        add(f"hcpf, {n_fits} fits ({model.element_.acronym})", model, began)
        if n_fits > 1:
            add(f"hcpf, {n_fits} fits, by their average", model, began, by="probability")
    for alpha, regularization, on_values in itertools.product(ALPHAS, REGULARISATIONS, ON_VALUES):
        if args.no_peers or (on_values and np.ptp(data.values) == 0):
            continue
        began = time.perf_counter()
        settings = {"alpha": alpha, "regularization": regularization, "on_values": on_values}
        als = Als(parts.train, args.components, args.seed, **settings)
        add(f"ALS alpha={alpha:g} reg={regularization:g}{' values' * on_values}", als, began)
    return rows


def main() -> None:
    parser = sets.parser(__doc__, ("ml1m", "gowalla_binary", "anime_30pct"))
    parser.add_argument("-k", type=int, default=20)
    parser.add_argument("--fits", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--train-on", default="full")
    parser.add_argument("--no-peers", action="store_true")
    args = parser.parse_args()
    header = common.start("Ranking quality", f"{', '.join(args.only)}, K = {args.components}")
    rows: list[dict[str, Any]] = []
    for name, data in sets.each(args):
        rows += contest(name, data, args)
    columns = {"data": "", "model": "", "ndcg": ".4f", "recall": ".4f", "map": ".4f"}
    common.table(rows, {**columns, "seconds": ".1f"})
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
