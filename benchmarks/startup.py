"""What a user waits for before the first result: imports, commands, the first fit, compilation.

Everything is measured in fresh processes, from their start to their end, in wall and CPU seconds.
"Warm" means that the kernels are in the on-disk cache, "cold" that the cache folder is empty. The
model of the commands is that of ``make demo``: the bundled retail set, gamma per user and item,
K = 20, four fits; with ``--model FOLDER`` an existing one is used.
"""

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

# NumPy, hcpf and common are imported in functions: their import is part of what is timed.

ELEMENTS = ("HPF", "N", "GA", "IG", "PO", "BI", "NB", "ZTP")
DEMO = ("retail", "--element", "gamma", "--vary-by", "both", "-K", "20", "--seed", "0")


def nothing() -> None:
    """Only what Python itself takes."""


def import_hcpf() -> None:
    import hcpf  # noqa: F401


def import_estimator() -> None:
    from hcpf import HCPF  # noqa: F401


def default_fit() -> None:
    """A small fit with all defaults, which chooses the element and the tempering."""
    from hcpf import HCPF

    HCPF(10, random_state=0).fit(_data(), progress=False)


def gamma_fit() -> None:
    """A small fit with the element given, and a prediction."""
    from hcpf import HCPF

    model = HCPF(10, element="GA", random_state=0)
    model.fit(_data(), progress=False).predict_proba([0, 1], [2, 3])


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


TASKS: dict[str, Callable[[], None]] = {
    f.__name__: f
    for f in (nothing, import_hcpf, import_estimator, gamma_fit, default_fit, every_kernel)
}


def run_task(name: str) -> dict[str, float]:
    """Run a task in this process; return the seconds of compiling, by kernel.

    What a kernel calls counts as a part of it. Without Numba nothing is compiled.
    """
    if not name.endswith("_fit") and name != "every_kernel":
        TASKS[name]()
        return {}
    from numba.core import event

    class Listener(event.Listener):
        def __init__(self) -> None:
            self.seconds: dict[str, float] = {}
            self._began: list[float] = []

        def on_start(self, event: Any) -> None:
            self._began.append(perf_counter())

        def on_end(self, event: Any) -> None:
            began = self._began.pop()
            if not self._began:
                kernel = event.data["dispatcher"].py_func.__name__
                self.seconds[kernel] = self.seconds.get(kernel, 0.0) + perf_counter() - began

    listener = Listener()
    event.register("numba:compile", listener)
    TASKS[name]()
    return listener.seconds


def measure(command: Callable[[], Any], repetitions: int = 1) -> dict[str, Any]:
    """Wall and CPU seconds of fresh processes: medians; and what the last one returned."""
    walls, cpus, result = [], [], None
    for _ in range(repetitions):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        result = command()
        walls.append(perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"wall s": median(walls), "CPU s": median(cpus), "walls": walls, "result": result}


def main() -> None:
    import os
    import subprocess

    import common

    parser = common.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--model", type=Path, help="a saved model of retail; default: fit one")
    parser.add_argument("--commands", action="store_true", help="only imports and commands")
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, every process compiles all modules
    header = common.start("Start-up", "30,000 synthetic entries, 3,000 x 1,000, K = 10")
    rows: list[dict[str, Any]] = []

    def task(label: str, name: str, cache: Path, repetitions: int = 1) -> dict[str, float]:
        env = {"NUMBA_CACHE_DIR": str(cache)}
        found = measure(lambda: common.child("startup.py", "--task", name, env=env), repetitions)
        compiled = found.pop("result")
        rows.append({"what": label, **found, "compiling s": sum(compiled.values())})
        return compiled

    def command(label: str, *words: str, repetitions: int = args.repetitions) -> None:
        line = [sys.executable, "-m", "hcpf.cli", *words]
        env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        found = measure(
            lambda: subprocess.run(line, check=True, capture_output=True, env=env), repetitions
        )
        del found["result"]
        rows.append({"what": label, **found})

    compiled: dict[str, float] = {}
    if not args.commands:
        with common.workspace() as cache:
            compiled = task("first fit with all defaults, cold", "default_fit", cache)
        with common.workspace() as cache:
            task("first fit with a gamma element, cold", "gamma_fit", cache)
    with common.workspace() as cache:
        if not args.commands:
            task("every kernel, cold", "every_kernel", cache)
            task("first fit with all defaults, warm", "default_fit", cache)
            task("first fit with a gamma element, warm", "gamma_fit", cache, args.repetitions)
        task("Python itself", "nothing", cache, args.repetitions)
        task("import hcpf", "import_hcpf", cache, args.repetitions)
        task("from hcpf import HCPF", "import_estimator", cache, args.repetitions)
        model = str(args.model or cache / "model")
        if args.model is None:
            command("hcpf fit retail", "fit", *DEMO, "-o", model, repetitions=1)
        command("hcpf --help", "--help")
        command("hcpf fit --help", "fit", "--help")
        command("hcpf recommend MODEL ID", "recommend", model, "12347")
        pair = "--user", "12347", "--item", "85123A"
        command("hcpf predict MODEL", "predict", model, *pair)
        command("hcpf info MODEL", "info", model)
        command("hcpf info retail", "info", "retail")
    common.table(rows, {"what": "", "wall s": ".2f", "CPU s": ".2f", "compiling s": ".2f"})
    kernels = [
        {"kernel": name, "compiling s": seconds}
        for name, seconds in sorted(compiled.items(), key=lambda pair: -pair[1])
    ]
    if kernels:
        print("Compiling for the first fit with all defaults:\n")
        common.table(kernels, {"kernel": "", "compiling s": ".2f"})
    common.finish(header, {"rows": rows, "kernels": kernels}, args.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        print(json.dumps(run_task(sys.argv[2])))
    else:
        main()
