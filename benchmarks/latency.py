"""How long a new user waits: ``fold_in`` of one user with a few items, then ``recommend``.

The model is fitted once to data simulated from the model, saved, and loaded in a process of its
own, where kernels and the model's caches are warm before anything is timed. Per-user times of
many new users folded in by one call are measured too. ``--other SOURCE`` measures another version,
given by its ``src`` folder, in the same run; it must be able to read the model.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import common

CALLS = ((1, 0), (100, 20), (10_000, 1))
"""Users folded in by one call, and how often: the first is timed as a request instead."""


def prepare(args: Any, folder: Path) -> None:
    """Fit and save the model."""
    from hcpf import HCPF, simulate
    from hcpf.elements import get

    element = get(args.element)
    known = {"gamma": (2.0, 0.5), "poisson": (1.5,), "binomial": (4.0, 0.5)}
    drawn = simulate(
        args.users, args.items, n_components=20, density=args.density, random_state=args.seed,
        element=element(*known.get(args.element, ())),
    )  # fmt: skip
    settings = {"vary_by": args.vary_by, "tempering": 1.0, "max_iter": 100}
    model = HCPF(args.components, element=element(), n_fits=4, random_state=args.seed, **settings)
    model.fit(drawn.interactions, progress=False)
    model.save(folder)


def measure(args: Any, folder: Path) -> dict[str, float]:
    """Time requests and bulk calls with a saved model."""
    from hcpf import FittedModel

    model = FittedModel.load(folder)
    rng = np.random.default_rng(args.seed + 1)
    assert model.data is not None
    values = model.data.values
    requests = [_new_user(model, values, rng) for _ in range(args.requests)]
    times = np.array([_request(model, user, args.n) for user in requests])[20:]  # the first warm up
    fold, both = 1e3 * times.T
    found = {"fold_in p50, ms": np.median(fold), "p50, ms": np.median(both)}
    found["p99, ms"] = np.quantile(both, 0.99)
    for size, repetitions in CALLS[1:]:
        taken = [_bulk(model, values, rng, size) for _ in range(repetitions + 1)][1:]
        found[f"{size:,} users, ms each"] = 1e3 * float(np.median(taken)) / size
    return {name: float(value) for name, value in found.items()}


def _new_user(model: Any, values: Any, rng: np.random.Generator) -> dict[Any, float]:
    """Draw five items, popular ones more often, with values from the training data."""
    popular = model.data.matrix.indices
    items = np.unique(rng.choice(popular, 5))
    return dict(zip(model.items[items].tolist(), rng.choice(values, 5).tolist(), strict=False))


def _request(model: Any, user: dict[Any, float], n: int) -> tuple[float, float]:
    began = perf_counter()
    new = model.fold_in(user)
    folded = perf_counter()
    assert len(new.recommend(n=n)) == n
    return folded - began, perf_counter() - began


def _bulk(model: Any, values: Any, rng: np.random.Generator, size: int) -> float:
    from scipy import sparse

    from hcpf import Interactions

    rows = np.repeat(np.arange(size), 5)
    columns = rng.choice(model.data.matrix.indices, len(rows))
    shape = size, len(model.items)
    matrix = sparse.coo_array((rng.choice(values, len(rows)), (rows, columns)), shape=shape)
    data = Interactions.from_matrix(matrix, items=model.items, duplicates="last")
    began = perf_counter()
    model.fold_in(data)
    return perf_counter() - began


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-K", "--components", type=int, default=50)
    parser.add_argument("-n", "--n", type=int, default=10)
    parser.add_argument("--users", type=common.whole, default=10_000)
    parser.add_argument("--items", type=common.whole, default=10_000)
    parser.add_argument("--density", type=float, default=0.005)
    parser.add_argument("--element", default="gamma")
    parser.add_argument("--vary-by")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--other", type=Path, metavar="SOURCE", help="src of another version")
    parser.add_argument("--model", type=Path, help="a saved model; without it one is fitted")
    parser.add_argument("--stage", choices=("prepare", "measure"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.stage == "prepare":
        prepare(args, args.model)
        print("null")
        return
    if args.stage == "measure":
        print(json.dumps(measure(args, args.model)))
        return
    _contest(args)


def _contest(args: Any) -> None:
    header = common.start(
        "Latency of new users",
        f"{args.users:,} users x {args.items:,} items simulated, K = {args.components}, four fits, "
        f"{args.element}; new users have 5 items, n = {args.n}",
    )
    options = ("components", "n", "users", "items", "density", "element", "requests", "seed")
    passed = [f"--{name}={getattr(args, name)}" for name in options]
    passed += [] if args.vary_by is None else [f"--vary-by={args.vary_by}"]
    with common.workspace() as folder:
        model = args.model or folder / "model"
        if not model.exists():
            common.child("latency.py", *passed, "--model", model, "--stage", "prepare")
        rows = []
        for name, source in (("this", None), ("other", args.other)):
            if name == "this" or source is not None:
                env = {} if source is None else {"PYTHONPATH": str(source.resolve())}
                command = (*passed, "--model", model, "--stage", "measure")
                rows.append({"version": name} | common.child("latency.py", *command, env=env))
    common.table(rows, {name: "" if name == "version" else ".3f" for name in rows[0]})
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
