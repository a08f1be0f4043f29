"""Whether two checkouts of hcpf give the same bits: some dozens of small fits, all settings given.

Each checkout fits in a separate process. A fit is the same where the hash of its factors and
activities is; ELBOs are compared apart, because a faster sum of the same terms rounds differently.
The fits cover the elements, K below, at and above a vector,
partial pooling, hurdles, training on observed entries, the solvers, excluded and validation pairs,
tempering, starts, several fits, exposures, huge values (rows of the slow path) and 1 and 2 threads.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
USERS, ITEMS, ENTRIES = 400, 300, 9_000
GIVEN: dict[str, Any] = {
    "n_fits": 1, "solver": "cavi", "tempering": 1.0, "start": "noise", "max_iter": 12, "tol": 0.0,
    "random_state": 0,
}  # fmt: skip


def main() -> None:
    """Compare two checkouts, or print the fits of the one on PYTHONPATH."""
    if "--serve" in sys.argv:
        print(json.dumps({name: digest(**settings) for name, settings in fits()}))
        return
    import common

    parser = common.parser(__doc__)
    parser.add_argument("old", type=Path, help="the other checkout")
    parser.add_argument("new", type=Path, nargs="?", default=HERE.parent, help="default: this one")
    args = parser.parse_args()
    header = common.start("Same bits", f"{ENTRIES:,} synthetic entries, {USERS} x {ITEMS}")
    old, new = (run(checkout.resolve()) for checkout in (args.old, args.new))
    rows = [describe(name, old[name], new[name]) for name in old]
    different = [row for row in rows if row["factors"] != "equal"]
    columns = {"fit": "", "factors": "", "ELBO before": ".12g", "ELBO now": ".12g"}
    if different:
        common.table(different, columns)
    print(f"{len(rows) - len(different)} of {len(rows)} fits have factors equal to the last bit.")
    distances = [abs(row["ELBO now"] / row["ELBO before"] - 1) for row in rows if row["ELBO now"]]
    equal = sum(distance == 0 for distance in distances)
    print(f"{equal} have equal ELBOs; the largest relative difference is {max(distances):.1g}.")
    common.finish(header, {"rows": rows}, args.json)


def run(checkout: Path) -> dict[str, Any]:
    """Return the digests of all fits of a checkout."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--serve"],
        check=True, stdout=subprocess.PIPE, text=True, cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def describe(name: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the table."""
    same = old.get("hash") == new.get("hash")
    factors = new.get("error", old.get("error", "equal" if same else "different"))
    elbos = {"ELBO before": old.get("elbo"), "ELBO now": new.get("elbo")}
    return {"fit": name, "factors": factors, **elbos}


def digest(kind: str, run: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Fit, and return a hash of the posteriors and the last ELBO."""
    from hcpf import HCPF

    model = HCPF(**{**GIVEN, **settings})
    try:
        fitted = model.fit(values(kind), progress=False, **run).model_
    except Exception as error:  # a setting that one of the checkouts does not have
        return {"error": f"{type(error).__name__}: {error}"}
    found = hashlib.sha256()
    for posterior in fitted.posteriors:
        for axis in (posterior.users, posterior.items):
            for array in (axis.shape_, axis.mean_, axis.activity_b):
                found.update(np.ascontiguousarray(array).tobytes())
    return {"hash": found.hexdigest(), "elbo": fitted.history[-1].elbo}


def values(kind: str) -> Any:
    """Return a matrix whose values suit an element."""
    from scipy import sparse

    rng = np.random.default_rng(1)
    rows = (rng.random(ENTRIES) ** 1.5 * USERS).astype(np.int64)
    pairs = np.unique(rows * ITEMS + rng.integers(0, ITEMS, ENTRIES))
    size = len(pairs)
    drawn = {
        "counts": lambda: 1 + rng.poisson(2.0, size),
        "zeros": lambda: rng.poisson(2.0, size),
        "ratings": lambda: rng.integers(1, 6, size),
        "amounts": lambda: rng.gamma(2.0, 10.0, size),
        "huge": lambda: np.ceil(rng.gamma(0.1, 1e5, size)),
        "signed": lambda: rng.normal(1.0, 2.0, size),
    }[kind]()
    places = pairs // ITEMS, pairs % ITEMS
    return sparse.coo_array((np.float64(drawn), places), (USERS, ITEMS)).tocsr()


def fits() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the settings of every fit."""
    kinds = {
        "degenerate": "counts", "normal": "signed", "gamma": "amounts",
        "inverse_gaussian": "amounts", "poisson": "zeros", "binomial": "ratings",
        "negative_binomial": "zeros", "zero_truncated_poisson": "counts", "logarithmic": "counts",
        "geometric": "counts", "presence": "counts",
    }  # fmt: skip

    def one(name: str, element: str, n_components: int = 20, **settings: Any) -> Any:
        kind, run = settings.pop("kind", kinds[element]), settings.pop("run", {})
        given = {"element": element, "n_components": n_components, **settings}
        return f"{element}, {name}", {"kind": kind, "run": {"n_threads": 1, **run}, **given}

    rng = np.random.default_rng(2)
    users, items = rng.gamma(2.0, 0.5, USERS), rng.gamma(2.0, 0.5, ITEMS)
    for element in kinds:
        yield one("plain", element)
        if element not in ("degenerate", "presence"):
            yield one("hurdle", element, hurdle=True)
            yield one("per item", element, vary_by="item")
    for element in ("gamma", "inverse_gaussian", "normal", "poisson"):
        yield one("per user and item", element, vary_by="both")
        yield one("hurdle per user and item", element, vary_by="both", hurdle=True)
    for element in ("degenerate", "gamma", "binomial"):
        for size in (1, 3, 16, 32, 33, 48, 64, 70, 100, 160):
            yield one(f"K = {size}", element, size)
        for solver in ("auto", "svi", "algorithm1"):
            yield one(f"solver {solver}", element, solver=solver)
        yield one("per user", element, vary_by=None if element == "degenerate" else "user")
        yield one("observed", element, train_on="observed")
        yield one("validation", element, run={"validation": 0.1})
        yield one("tempered", element, tempering=3.0)
        yield one("clusters", element, start="clusters")
        yield one("two threads", element, run={"n_threads": 2})
        yield one("three fits", element, n_fits=3)
        yield one("user exposure", element, run={"user_exposure": users})
        exposures = {"user_exposure": users, "item_exposure": items}
        yield one("both exposures", element, run=exposures)
    for element in ("degenerate", "poisson", "gamma", "negative_binomial"):
        yield one("huge values", element, kind="huge")
        yield one("paper's priors", element, priors="paper")


if __name__ == "__main__":
    main()
