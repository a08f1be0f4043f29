"""What the benchmarks share: arguments, data, memory, child processes and the printed report."""

import argparse
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse

PACKAGES = ("hcpf", "numpy", "scipy", "numba", "hpfrec", "implicit", "cornac", "pandas")
MB = 1e6

# -- arguments and report -------------------------------------------------------------------------


def parser(description: str | None) -> argparse.ArgumentParser:
    """An argument parser with the options every benchmark has."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--threads", type=int, default=min(2, cores()), help="threads (default 2)")
    made.add_argument("--seed", type=int, default=0, help="seed of data and fits")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON too")
    return made


def whole(text: str) -> int:
    """Read an integer that may be written as 1e6 or 1_000_000."""
    return int(float(text))


def cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """The processor, its cores, the load they are under, memory and system."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {"cpu": model, "cores": cores(), "load": round(load, 2), "system": platform.platform()}


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that take part."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit(folder: Path) -> str:
    """The commit of a checkout, marked where files have changed since."""
    git = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(git, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def start(title: str, data: str) -> dict[str, Any]:
    """Print where, with what and on which data the benchmark runs; the beginning of a report."""
    header = {
        "benchmark": title,
        "machine": machine(),
        "versions": versions(),
        "commit": commit(Path(__file__).parent),
        "command": shlex.join(["python", *sys.argv]),
        "data": data,
    }
    print(f"\n## {title}\n")
    print("- machine:", ", ".join(f"{k} {v}" for k, v in header["machine"].items()))
    print("- versions:", ", ".join(f"{k} {v}" for k, v in header["versions"].items()))
    print("- commit:", header["commit"])
    print("- data:", data)
    print(f"- command: `{header['command']}`\n", flush=True)
    return header


def finish(header: Mapping[str, Any], results: Mapping[str, Any], path: Path | None) -> None:
    """Write the report as JSON if a path was given."""
    if path is not None:
        path.write_text(json.dumps({**header, "results": results}, indent=2) + "\n")


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Print rows as a markdown table; ``columns`` maps each heading to the format of its cells."""
    print("| " + " | ".join(columns) + " |")
    print("|" + "|".join("---:" if spec else "---" for spec in columns.values()) + "|")
    for row in rows:
        cells = (_cell(row.get(name), spec) for name, spec in columns.items())
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def _cell(value: Any, spec: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return value if isinstance(value, str) else format(value, spec)


# -- data -----------------------------------------------------------------------------------------


def power_law_pairs(entries: int, users: int, items: int, seed: int) -> sparse.csr_array:
    """Exactly ``entries`` distinct pairs, all of value 1, with power-law activity on both sides.

    The r-th user is drawn with probability about r ** (-1/3), the r-th item about r ** (-1/2).
    """
    if entries > users * items / 4:
        raise SystemExit(f"{entries} entries are too many for {users} x {items} pairs.")
    rng = np.random.default_rng(seed)
    keys = np.zeros(0, np.int64)
    while len(keys) < entries:
        wanted = int(1.1 * (entries - len(keys))) + 16
        rows = (users * rng.random(wanted) ** 1.5).astype(np.int64)
        columns = (items * rng.random(wanted) ** 2).astype(np.int64)
        keys = np.unique(np.concatenate([keys, rows * items + columns]))
    keep = np.ones(len(keys), np.bool_)
    keep[rng.choice(len(keys), len(keys) - entries, replace=False)] = False
    keys = keys[keep]
    pointer = np.searchsorted(keys, np.arange(users + 1) * items).astype(np.int64)
    matrix = sparse.csr_array(
        (np.ones(entries, np.float32), (keys % items).astype(np.int32), pointer),
        shape=(users, items),
    )
    matrix.has_canonical_format = True
    return matrix


def with_values(matrix: sparse.csr_array, values: Any) -> sparse.csr_array:
    """The same pairs with other values."""
    other = sparse.csr_array(
        (np.asarray(values, np.float32), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    other.has_canonical_format = True
    return other


def save_matrix(matrix: sparse.csr_array, folder: Path) -> None:
    """Store a CSR matrix as plain arrays, which load without a temporary copy."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "data.npy", np.asarray(matrix.data, np.float32))
    np.save(folder / "indices.npy", matrix.indices.astype(np.int32, copy=False))
    # SciPy would read the indices as 64-bit numbers, too, if these were.
    pointer = np.int32 if matrix.nnz < 1 << 31 else np.int64
    np.save(folder / "indptr.npy", matrix.indptr.astype(pointer, copy=False))
    np.save(folder / "shape.npy", np.array(matrix.shape))


def load_matrix(folder: Path) -> sparse.csr_array:
    """Read what ``save_matrix`` stored."""
    parts = tuple(np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr"))
    shape = tuple(np.load(folder / "shape.npy").tolist())
    matrix = sparse.csr_array(parts, shape=shape)
    matrix.has_canonical_format = True
    return matrix


# -- time -----------------------------------------------------------------------------------------


@dataclass
class Stopwatch:
    """Wall and CPU seconds of a block, and the share of the machine that others used meanwhile."""

    wall: float = 0.0
    cpu: float = 0.0
    others: float = float("nan")
    """CPU seconds of other processes per second and core; NaN where the system does not tell."""

    def __enter__(self) -> "Stopwatch":
        self._began = perf_counter(), process_time(), busy_seconds()
        return self

    def __exit__(self, *error: object) -> None:
        wall, cpu, busy = self._began
        self.wall, self.cpu = perf_counter() - wall, process_time() - cpu
        rest = max(0.0, busy_seconds() - busy - self.cpu)
        self.others = rest / (self.wall * (os.cpu_count() or 1))


MAX_OTHERS: dict[str, Any] = {
    "type": float,
    "default": 1.0,
    "help": "measure again where other processes used more than this share of the machine",
}


def describe_time(record: Mapping[str, Any]) -> str:
    """Wall and CPU time of a record, and how busy others kept the machine."""
    others = f"others {record['others']:.0%} of the machine"
    return f"{record['wall s']:.2f} s, CPU {record['cpu s']:.2f} s, {others}"


def busy_seconds() -> float:
    """CPU seconds that all processes of the machine have used since it started."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return float("nan")
    user, nice, system, _, _, irq, softirq, steal = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


# -- child processes and memory -------------------------------------------------------------------


def child(script: str, *arguments: object, env: Mapping[str, str] | None = None) -> Any:
    """Run a script of this folder in a fresh process and return the JSON on its last line."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **(env or {})}
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def reset_peak() -> None:
    """Let ``peak_bytes`` count from now on, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The most memory this process has held so far, or since ``reset_peak``."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def resident_bytes() -> int:
    """The memory this process holds now; where the system does not tell, its peak so far."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return peak_bytes()
    return int(statm.read_text().split()[1]) * resource.getpagesize()


def memory_limit(entries: int, users: int, items: int, components: int) -> int:
    """The design's limit above the input: 16 bytes an entry and five float32 factor arrays."""
    return 16 * entries + 5 * 4 * (users + items) * components


@contextmanager
def workspace() -> Iterator[Path]:
    """A temporary folder, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="hcpf-bench-") as folder:
        yield Path(folder)


# -- the iteration that is timed ------------------------------------------------------------------


def cavi(
    matrix: sparse.csr_array, value_model: Any, components: int, seed: int, threads: int
) -> Callable[[int], None]:
    """A function that runs n full coordinate ascent iterations, each continuing the last."""
    from hcpf import Priors
    from hcpf.core.collective import LOCAL
    from hcpf.core.shard import ShardData, ShardSource
    from hcpf.core.threads import kernel_threads
    from hcpf.training.solvers.cavi import cavi_pass
    from hcpf.training.start import start_from_noise

    data = ShardData.whole(matrix)
    shard = ShardSource.alone(data).lay_out(value_model)
    n_pairs = float(matrix.shape[0]) * matrix.shape[1]
    priors = Priors.matched(matrix.nnz / n_pairs, components)
    state = start_from_noise(shard, priors, components, np.random.default_rng(seed), LOCAL)

    def run(iterations: int) -> None:
        with kernel_threads(threads):
            for _ in range(iterations):
                cavi_pass(state, shard)

    return run
