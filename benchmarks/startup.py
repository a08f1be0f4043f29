"""What a user waits for before the first result: import, first fit, and compilation.

Everything is measured in fresh processes, from the first import on unless it says otherwise.
"Warm" means that the kernels are in the on-disk cache, "cold" that the cache folder is empty.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

# NumPy, hcpf and common are imported in functions: their import is part of what is timed.

ELEMENTS = ("HPF", "N", "GA", "IG", "PO", "BI", "NB", "ZTP")


def import_hcpf() -> None:
    import hcpf  # noqa: F401


def import_estimator() -> None:
    from hcpf import HCPF  # noqa: F401


def first_fit() -> None:
    """Import, a small fit with the defaults, a prediction."""
    from hcpf import HCPF

    matrix = _data()
    model = HCPF(10, element="GA", random_state=0)
    model.fit(matrix, progress=False).predict_proba([0, 1], [2, 3])


def first_pass() -> float:
    """From the call of fit to the end of its first pass over the data; the import is not timed."""
    from hcpf import HCPF

    matrix = _data()
    began = perf_counter()
    HCPF(10, element="GA", n_fits=1, max_iter=1, random_state=0).fit(matrix, progress=False)
    return perf_counter() - began


def every_kernel() -> None:
    """All solvers, training sets and kinds of element, and held-out pairs."""
    import numpy as np

    from hcpf import HCPF

    def fit(validation: float | None = None, **settings: Any) -> None:
        model = HCPF(10, max_iter=3, random_state=0, **settings)
        model.fit(matrix, validation=validation, progress=False).predict([0], [1])

    matrix = _data()
    matrix.data = np.clip(np.ceil(matrix.data), 1, 5)
    for element in ELEMENTS:
        fit(element=element)
    for solver in ("cavi", "svi", "algorithm1"):
        fit(element="GA", solver=solver)
    fit(element="GA", train_on="observed")
    fit(element="GA", validation=0.05)
    fit(element="presence")


def _data() -> Any:
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(0)
    return sparse.csr_array((rng.random((3_000, 1_000)) < 0.01) * rng.gamma(2.0, 1.0, 1_000))


TASKS: dict[str, Callable[[], float | None]] = {
    f.__name__: f for f in (import_hcpf, import_estimator, first_pass, first_fit, every_kernel)
}


def timed(task: str, repetitions: int, cache: Path) -> list[float]:
    """Seconds a task takes in each of several fresh processes that share a kernel cache."""
    import common

    env = {"NUMBA_CACHE_DIR": str(cache)}
    return [common.child("startup.py", "--task", task, env=env) for _ in range(repetitions)]


def main() -> None:
    import common

    parser = common.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    header = common.start("Start-up", "30,000 synthetic entries, 3,000 x 1,000, K = 10")
    found: dict[str, list[float]] = {}
    with common.workspace() as cache:
        found["first fit, cold"] = timed("first_fit", 1, cache)
    with common.workspace() as cache:
        found["every kernel, cold"] = timed("every_kernel", 1, cache)
        found["every kernel, warm"] = timed("every_kernel", args.repetitions, cache)
        found["first fit, warm"] = timed("first_fit", args.repetitions, cache)
        found["first pass of a fit, warm, after the import"] = timed(
            "first_pass", args.repetitions, cache
        )
        found["import hcpf"] = timed("import_hcpf", args.repetitions, cache)
        found["from hcpf import HCPF"] = timed("import_estimator", args.repetitions, cache)
    rows = [
        {"what": name, "median s": median(times), "minimum s": min(times), "times": times}
        for name, times in reversed(found.items())
    ]
    compiling = min(found["every kernel, cold"]) - min(found["every kernel, warm"])
    rows.append({"what": "compilation in all (cold less warm)", "minimum s": compiling})
    common.table(rows, {"what": "", "median s": ".2f", "minimum s": ".2f"})
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        began = perf_counter()
        own = TASKS[sys.argv[2]]()
        print(perf_counter() - began if own is None else own)
    else:
        main()
