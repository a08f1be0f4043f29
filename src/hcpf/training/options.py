"""Every constant of the solvers, by name."""

from dataclasses import dataclass, field, fields
from math import inf

from hcpf._checks import flag, number, one_of, settle, whole
from hcpf.training.solvers.algorithm1 import EntryOptions
from hcpf.training.solvers.svi import SviOptions

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
    max_iter: int = 300
    tol: float = 1e-4
    check_every: int = 5
    svi_passes: int = 2
    learn_element: bool = True
    svi: SviOptions = field(default_factory=SviOptions)
    entry: EntryOptions = field(default_factory=EntryOptions)

    def __post_init__(self) -> None:
        settle(
            self,
            solver=one_of("solver", self.solver, SOLVERS),
            max_iter=whole("max_iter", self.max_iter),
            tol=number("tol", self.tol, 0.0, inf, "0 or more"),
            check_every=whole("check_every", self.check_every),
            svi_passes=whole("svi_passes", self.svi_passes, least=0),
            learn_element=flag("learn_element", self.learn_element),
        )

    def solver_at(self, iteration: int, n_users: int, n_observed: int) -> str:
        """Which solver makes the pass after ``iteration`` passes."""
        if self.solver != "auto":
            return self.solver
        large = n_users >= _ENOUGH_USERS and n_observed >= _ENOUGH_ENTRIES
        return "svi" if large and iteration < self.svi_passes else "cavi"

    @property
    def has_momentum(self) -> bool:
        """Whether coordinate ascent is accelerated by momentum."""
        return self.solver == "auto"

    def describe(self) -> str:
        """A line that two runs share if and only if they would take the same steps."""
        return "; ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
