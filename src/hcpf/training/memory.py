"""Estimate the memory that a fit needs, and refuse one that needs more than is free."""

from pathlib import Path

from hcpf._types import Csr
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.errors import InputError
from hcpf.training.settings import FitPlan

_ENTRY_BYTES = 16
"""Index and coordinate of an entry, once by user and once by item."""
_FACTOR_BYTES, _KEPT_FACTOR_BYTES = 5 * 4, 2 * 4
"""Per factor: four float32 numbers while a fit runs (shape, mean, geometric mean, its value before
the last pass) and about one for padding and what is kept per row; a finished fit keeps two."""
_CGROUP = Path("/sys/fs/cgroup")
_CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
"""Limit, use and statistics of memory in the second and the first version of control groups."""
_CACHE_SIZES = ("active_file", "inactive_file"), ("total_active_file", "total_inactive_file")
"""Statistics, subgroups included, of files in the cache: they count as used but are freed when
memory is needed."""


def require_memory(matrix: Csr, plan: FitPlan) -> None:
    """Refuse a fit that needs more memory than is free, where that is known."""
    free = free_bytes()
    n_entries = 0 if isinstance(matrix, StoredMatrix) else matrix.nnz  # others stay on disk
    needed = fit_bytes(n_entries, matrix.shape, plan)
    if free is not None and needed > free:
        n_rows = sum(matrix.shape)
        raise InputError(
            f"n_components={plan.n_components} with n_fits={plan.n_fits} needs about "
            f"{needed / 1e9:,.1f} GB for {matrix.nnz:,} entries and {n_rows:,} users and items, "
            f"but {free / 1e9:,.1f} GB are free. Use fewer components or fits, or less data."
        )


def fit_bytes(n_entries: int, shape: tuple[int, int], plan: FitPlan) -> int:
    """Return about how many bytes the fits of a plan need at the same time."""
    n_kept = 0 if plan.combine == "best" else plan.n_fits - 1
    per_factor = _FACTOR_BYTES + n_kept * _KEPT_FACTOR_BYTES
    return _ENTRY_BYTES * n_entries + per_factor * sum(shape) * plan.n_components


def free_bytes() -> int | None:
    """Return the bytes that this process can still take; None where that is unknown."""
    groups = zip(_CGROUP_FILES, _CACHE_SIZES, strict=True)
    limits = [_machine_bytes(), *(_cgroup_bytes(*names, sizes) for names, sizes in groups)]
    return min((limit for limit in limits if limit is not None), default=None)


def _machine_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(sizes[0]) if sizes else None


def _cgroup_bytes(limit: str, used: str, statistics: str, cached: tuple[str, str]) -> int | None:
    try:
        texts = [(_CGROUP / name).read_text().strip() for name in (limit, used)]
    except OSError:
        return None
    if not all(text.isdigit() for text in texts):  # "max": no limit
        return None
    sizes = _statistics(statistics)
    return max(int(texts[0]) - int(texts[1]) + sum(sizes.get(name, 0) for name in cached), 0)


def _statistics(name: str) -> dict[str, int]:
    try:
        lines = (_CGROUP / name).read_text().splitlines()
    except OSError:
        return {}
    return {key: int(size) for key, size in map(str.split, lines)}
