"""Every constant of the solvers, by name."""

from dataclasses import dataclass, field, fields

from hcpf.errors import ParameterError
from hcpf.inference.entry import EntryOptions
from hcpf.inference.svi import SviOptions

SOLVERS = ("auto", "cavi", "svi", "entry")

_ENOUGH_USERS, _ENOUGH_ENTRIES = 400, 5_000


@dataclass(frozen=True)
class FitOptions:
    """How one fit runs.

    Parameters
    ----------
    solver
        "cavi", "svi", "entry", or "auto": a few minibatch passes, then coordinate ascent (only
        the latter on small data).
    max_iter
        The most passes over the data.
    tol
        Stop when the bound (or the validation likelihood) changes by less than this share in one
        pass; 0 runs exactly ``max_iter`` passes.
    check_every
        Passes between two evaluations of the bound.
    svi_passes
        Minibatch passes that "auto" begins with.
    learn_element
        Whether the element's parameters follow the M-step of the bound.
    """

    solver: str = "auto"
    max_iter: int = 100
    tol: float = 1e-4
    check_every: int = 5
    svi_passes: int = 2
    learn_element: bool = True
    svi: SviOptions = field(default_factory=SviOptions)
    entry: EntryOptions = field(default_factory=EntryOptions)

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise ParameterError(
                f"solver must be one of {', '.join(SOLVERS)}; got {self.solver!r}."
            )
        for name in ("max_iter", "check_every"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ParameterError(f"{name} must be a whole number, 1 or more; got {value!r}.")
        if not self.tol >= 0:
            raise ParameterError(f"tol must be 0 or more; got {self.tol!r}.")
        if not self.svi.batches >= 1 or not self.svi.local_sweeps >= 1:
            raise ParameterError("batches and local_sweeps must be 1 or more.")
        for part in (self.svi, self.entry):
            if not part.tau > 0 or not 0.5 < part.xi <= 1.0:
                raise ParameterError(
                    f"tau must be above 0 and xi in (0.5, 1]; got tau={part.tau}, xi={part.xi}."
                )

    def solver_at(self, iteration: int, n_users: int, n_observed: int) -> str:
        """Which solver makes the pass after ``iteration`` passes."""
        if self.solver != "auto":
            return self.solver
        large = n_users >= _ENOUGH_USERS and n_observed >= _ENOUGH_ENTRIES
        return "svi" if large and iteration < self.svi_passes else "cavi"

    def describe(self) -> str:
        """A line that two runs share if and only if they would take the same steps."""
        return "; ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
