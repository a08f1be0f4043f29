"""Estimate the memory that a fit needs, and refuse one that needs more than is free."""

from pathlib import Path

from hcpf._types import Csr
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.errors import InputError
from hcpf.training.settings import FitPlan

_ENTRY_BYTES = 16
"""Index and coordinate of an entry, once by user and once by item."""
_FACTOR_BYTES, _KEPT_FACTOR_BYTES = 5 * 4, 2 * 4
"""Per factor: five float32 numbers while a fit runs (shape, mean, geometric mean, its value before
the last pass, noise at the start), of which a finished fit keeps two."""
_CGROUP = Path("/sys/fs/cgroup")
_CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Limit and use of memory in the first and the second version of control groups."""


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
    limits = [_machine_bytes(), *(_cgroup_bytes(*names) for names in _CGROUP_FILES)]
    return min((limit for limit in limits if limit is not None), default=None)


def _machine_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(sizes[0]) if sizes else None


def _cgroup_bytes(limit: str, used: str) -> int | None:
    try:
        texts = [(_CGROUP / name).read_text().strip() for name in (limit, used)]
    except OSError:
        return None
    if not all(text.isdigit() for text in texts):  # "max": no limit
        return None
    return max(int(texts[0]) - int(texts[1]), 0)
