"""RMSE of expected ratings beside biases alone and a biased matrix factorization (cornac's).

The matrix factorization takes part with a small grid of settings, of which the best (on the test
pairs, which favors it) counts.

    .venv-bench/bin/python benchmarks/ratings.py FOLDER --only ml1m
"""

import itertools
import time
import warnings
from typing import Any

import numpy as np

import common
import sets
from hcpf import HCPF, Interactions
from hcpf.evaluate import scores, split

FACTORS, PENALTIES = (10, 50), (0.02, 0.05)
OURS = {
    "binomial per item, all pairs": {"element": "binomial", "vary_by": "item"},
    "binomial hurdle per item, all pairs": {
        "element": "binomial", "vary_by": "item", "hurdle": True,
    },
    "normal per user and item, all pairs": {"element": "normal", "vary_by": "both"},
    "normal hurdle per user and item, all pairs": {
        "element": "normal", "vary_by": "both", "hurdle": True,
    },
    "normal per user and item, observed entries only": {
        "element": "normal", "vary_by": "both", "train_on": "observed", "n_components": 10,
    },
}  # fmt: skip


def contest(name: str, data: Interactions, args: Any) -> list[dict[str, Any]]:
    """Everyone on one data set."""
    parts = split(data, random_state=args.seed)
    train, test = parts.train.matrix.tocoo(), parts.test
    rows: list[dict[str, Any]] = []

    def add(label: str, rmse: float, began: float) -> None:
        rows.append({"data": name, "model": label, "RMSE": rmse, "s": time.perf_counter() - began})
        common.table(rows[-1:], COLUMNS)

    def error(expected: Any) -> float:
        return float(np.sqrt(np.mean(np.square(expected - test.values))))

    began = time.perf_counter()
    add("biases", error(biases(train)(test.users, test.items)), began)
    for factors, penalty in itertools.product(FACTORS, PENALTIES):
        began = time.perf_counter()
        model = factorised(train, factors, penalty, args.seed)
        add(f"biased MF, {factors} factors, penalty {penalty:g}", error(model(test)), began)
    for label, settings in OURS.items():
        began = time.perf_counter()
        mine = HCPF(**{"n_components": args.components, "random_state": args.seed} | settings)
        mine.fit(parts.train, exclude=parts.held_out)
        add(f"hcpf, {label}", scores(mine, parts).rmse.value, began)
    return rows


COLUMNS = {"data": "", "model": "", "RMSE": ".4f", "s": ".1f"}


def biases(train: Any, penalty: float = 10.0, sweeps: int = 20) -> Any:
    """The global mean plus a shrunk effect of either side."""
    center, users, items = train.data.mean(), np.zeros(train.shape[0]), np.zeros(train.shape[1])
    n_users, n_items = np.bincount(train.row), np.bincount(train.col, minlength=train.shape[1])
    for _ in range(sweeps):
        left = train.data - center - users[train.row]
        items = np.bincount(train.col, left, train.shape[1]) / (n_items + penalty)
        left = train.data - center - items[train.col]
        users = np.bincount(train.row, left, train.shape[0]) / (n_users + penalty)
    return lambda u, i: center + users[u] + items[i]


def factorised(train: Any, factors: int, penalty: float, seed: int) -> Any:
    """cornac's matrix factorization with biases, by stochastic gradient descent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cornac.data import Dataset
        from cornac.models import MF

    triplets = zip(train.row.tolist(), train.col.tolist(), train.data.tolist(), strict=True)
    data = Dataset.from_uir(list(triplets))
    model = MF(k=factors, lambda_reg=penalty, max_iter=100, learning_rate=0.01, seed=seed)
    model.fit(data)
    user = np.array([data.uid_map.get(u, -1) for u in range(train.shape[0])])
    item = np.array([data.iid_map.get(i, -1) for i in range(train.shape[1])])

    def expected(test: Any) -> Any:
        u, i = user[test.users], item[test.items]
        bias = np.where(u >= 0, model.u_biases[u], 0.0) + np.where(i >= 0, model.i_biases[i], 0.0)
        product = np.einsum("nk,nk->n", model.u_factors[u], model.i_factors[i])
        rating = model.global_mean + bias + np.where((u >= 0) & (i >= 0), product, 0.0)
        return np.clip(rating, train.data.min(), train.data.max())

    return expected


def main() -> None:
    """Compare on ml1m, or on the data sets named."""
    args = sets.parser(__doc__, ("ml1m",)).parse_args()
    header = common.start("Ratings", ", ".join(args.only))
    rows = [row for name, data in sets.each(args) for row in contest(name, data, args)]
    common.table(rows, COLUMNS)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
