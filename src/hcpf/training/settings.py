"""Settings of a fit: the parameters of HCPF, the solvers with their constants, recipes."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hcpf import _defaults
from hcpf._checks import flag, number, one_of, set_fields, whole
from hcpf.core.priors import Priors
from hcpf.core.value_model import TRAIN_ON, ValueModel
from hcpf.elements.base import Element
from hcpf.errors import ParameterError
from hcpf.training.storage import location_of

COMBINATIONS = ("average", "best")
STARTS = ("auto", "noise", "clusters", "symmetric")
CHECK_EVERY = 5
"""Passes between two evaluations of the ELBO."""
_MIN_BATCH_USERS, _MIN_BATCH_ENTRIES = 400, 5_000
"""Smaller data have no minibatch passes with solver="auto"."""


@dataclass(frozen=True)
class Solver:
    """Base of the solvers.

    Parameters
    ----------
    max_count : int, optional
        The largest number of elements n to sum over, the paper's N_tr; by default all that count.
    """

    _: KW_ONLY
    max_count: int | None = None

    name: ClassVar[str] = ""
    keeps_start: ClassVar[bool] = False
    """Whether the first passes stay near the start, which makes clusters useful."""
    has_batches: ClassVar[bool] = False
    """Whether users come in minibatches, which are drawn once per fit."""

    def __post_init__(self) -> None:
        if self.max_count is not None:
            set_fields(self, max_count=whole("max_count", self.max_count))

    def at(self, iteration: int, n_users: int, n_entries: int) -> "Solver":
        """Return the solver of the next pass."""
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the name under "solver" and the constants: what ``solver_of`` takes."""
        return {"solver": self.name, **{f.name: getattr(self, f.name) for f in fields(self)}}


@dataclass(frozen=True)
class CAVI(Solver):
    """Coordinate ascent: exact updates of all users, then of all items."""

    name = "cavi"
    keeps_start = True


@dataclass(frozen=True)
class SVI(Solver):
    """Stochastic variational inference over minibatches of users.

    Parameters
    ----------
    batches : int, default 40
        Minibatches per pass.
    local_passes : int, default 4
        Updates of a batch's users before the items take a step.
    tau, xi : float, default 1.0 and 0.6
        Step t of the items has size ``(t + tau) ** -xi``, at most 1.
    max_count : int, optional
        The largest number of elements n to sum over; by default all that count.
    """

    batches: int = 40
    local_passes: int = 4
    tau: float = 1.0
    xi: float = 0.6

    name = "svi"
    has_batches = True

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(
            self,
            batches=whole("batches", self.batches),
            local_passes=whole("local_passes", self.local_passes),
            **_check_step(self.tau, self.xi),
        )


@dataclass(frozen=True)
class Algorithm1(Solver):
    """The paper's Algorithm 1: sampled pairs, each of which moves its user and its item.

    Parameters
    ----------
    tau, xi : float, default 10,000 and 0.7
        Draw t of a row moves it by ``(t + tau) ** -xi``, at most 1.
    stratified : bool, default True
        Whether to draw observed and missing pairs half and half (more observed ones where those
        are the majority), weighted to all pairs; False draws uniformly, as the paper does.
    max_count : int, optional
        The largest number of elements n to sum over, the paper's N_tr; by default all that count.
    """

    tau: float = 10_000.0
    xi: float = 0.7
    stratified: bool = True

    name = "algorithm1"

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(
            self, **_check_step(self.tau, self.xi), stratified=flag("stratified", self.stratified)
        )


@dataclass(frozen=True)
class Auto(Solver):
    """A few minibatch passes (none on small data), then coordinate ascent with momentum.

    Parameters
    ----------
    svi_passes : int, default 2
        Passes of ``SVI()`` before coordinate ascent; 0 goes without them.
    max_count : int, optional
        The largest number of elements n to sum over; by default all that count.
    """

    svi_passes: int = 2

    name = "auto"
    keeps_start = True
    has_batches = True

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, svi_passes=whole("svi_passes", self.svi_passes, least=0))

    def at(self, iteration: int, n_users: int, n_entries: int) -> Solver:
        """Return the solver of the next pass."""
        is_large = n_users >= _MIN_BATCH_USERS and n_entries >= _MIN_BATCH_ENTRIES
        return SVI() if is_large and iteration < self.svi_passes else CAVI()


SOLVERS: dict[str, type[Solver]] = {kind.name: kind for kind in (Auto, CAVI, SVI, Algorithm1)}


def solver_of(value: Any) -> Solver:
    """Return the solver that a name, a Solver or a mapping of ``as_dict`` stands for."""
    if isinstance(value, Solver):
        return value
    if isinstance(value, Mapping):
        constants: dict[str, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        return SOLVERS[constants.pop("solver")](**constants)
    if isinstance(value, str) and value in SOLVERS:
        return SOLVERS[value]()
    raise ParameterError(
        f"solver must be one of {', '.join(SOLVERS)}, or Auto(...), CAVI(...), SVI(...) or "
        f"Algorithm1(...); got {value!r}."
    )


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often a fit saves its state, from which the same fit resumes.

    Parameters
    ----------
    folder : path or URL
        A folder that belongs to the fit; it is made where it does not exist. A URL such as
        "s3://bucket/folder" is opened by fsspec (extra ``ray``) and the package it names.
    every_passes : int, default 10
        Passes between two checkpoints.
    every_seconds : float, default 300
        A checkpoint is written earlier if the last one is older than this.
    """

    folder: Path | str
    every_passes: int = 10
    every_seconds: float = 300.0

    def __post_init__(self) -> None:
        set_fields(
            self,
            folder=location_of("checkpoint", self.folder),
            every_passes=whole("every_passes", self.every_passes),
            every_seconds=number("every_seconds", self.every_seconds, 0.0, inf, "0 or more"),
        )


PriorChoice = Literal["auto", "paper"] | Priors | Mapping[str, float]
"""What ``HCPF`` takes as priors; a mapping has numbers that replace those of "auto"."""


@dataclass(eq=False, repr=False)
class Settings:
    """The parameters of ``HCPF``, unchecked, as scikit-learn requires."""

    n_components: int = _defaults.N_COMPONENTS
    _: KW_ONLY
    element: str | Element = "auto"
    vary_by: Literal["user", "item", "both"] | None = None
    hurdle: bool = False
    learn_element: bool = True
    train_on: Literal["full", "observed"] = _defaults.TRAIN_ON
    n_fits: int = _defaults.N_FITS
    combine: Literal["average", "best"] = "average"
    priors: PriorChoice = "auto"
    tempering: float | Literal["auto", "formula"] = "auto"
    solver: Literal["auto", "cavi", "svi", "algorithm1"] | Solver = "auto"
    start: Literal["auto", "noise", "clusters", "symmetric"] = "auto"
    max_iter: int = _defaults.MAX_ITER
    tol: float = _defaults.TOL
    random_state: int | np.random.Generator | None = None


@dataclass(eq=False)
class FitPlan(Settings):
    """All checked settings of a fit; not to be changed."""

    solver: Solver = field(default_factory=Auto)
    validation_fraction: float = 0.0
    check_every: int = CHECK_EVERY
    n_threads: int | None = None
    progress: bool | None = None
    checkpoint: Checkpoints | None = None

    def __post_init__(self) -> None:
        self.n_components = whole("n_components", self.n_components)
        self.learn_element = flag("learn_element", self.learn_element)
        one_of("train_on", self.train_on, TRAIN_ON)
        self.n_fits = whole("n_fits", self.n_fits)
        one_of("combine", self.combine, COMBINATIONS)
        if isinstance(self.tempering, str):
            one_of("tempering", self.tempering, ("auto", "formula"))
        else:
            limits = 1e-3, 1e3, "'auto', 'formula' or a number from 0.001 to 1000"
            self.tempering = number("tempering", self.tempering, *limits)
        self.solver = solver_of(self.solver)  # pyright: ignore[reportIncompatibleVariableOverride]
        one_of("start", self.start, STARTS)
        self.max_iter = whole("max_iter", self.max_iter)
        self.tol = number("tol", self.tol, 0.0, inf, "0 or more")
        below_one = float(np.nextafter(1.0, 0.0))
        self.validation_fraction = number(
            "validation", self.validation_fraction, 0.0, below_one,
            "Interactions, a matrix, or a share of the entries in [0, 1)",
        )  # fmt: skip
        if self.n_threads is not None:
            self.n_threads = whole("n_threads", self.n_threads)
        if self.progress is not None:
            flag("progress", self.progress)
        if self.checkpoint is not None and not isinstance(self.checkpoint, Checkpoints):
            self.checkpoint = Checkpoints(self.checkpoint)
        self._check_together()

    def _check_together(self) -> None:
        if self.element == "auto" and (self.vary_by is not None or self.hurdle):
            raise ParameterError(
                "vary_by and hurdle require an element: element='auto' compares all of them. Give "
                "element, or remove vary_by and hurdle."
            )
        if self.start == "clusters" and not self.keeps_start:
            raise ParameterError(
                "start='clusters' requires solver='auto' or 'cavi' and train_on='full': other "
                "solvers lose their start in the first pass, and observed entries alone have no "
                "clusters. Use start='auto'."
            )

    def with_value_model(self, value_model: ValueModel) -> "FitPlan":
        """Return the same plan for another value model."""
        return replace(
            self,
            element=value_model.element,
            vary_by=value_model.vary_by,
            hurdle=value_model.hurdle,
        )

    @property
    def keeps_start(self) -> bool:
        """Whether a fit can begin from clusters of items."""
        return self.solver.keeps_start and self.train_on != "observed"

    @property
    def has_momentum(self) -> bool:
        """Whether coordinate ascent is accelerated by momentum."""
        return isinstance(self.solver, Auto)


def _check_step(tau: Any, xi: Any) -> dict[str, float]:
    return {
        "tau": number("tau", tau, 1e-9, 1e300, "a number above 0"),
        "xi": number("xi", xi, 0.5 + 1e-9, 1.0, "above 0.5 and at most 1"),
    }


# -- recipes ---------------------------------------------------------------------------------------

RECIPES = ("default", "paper")
PAPER_COMPONENTS = 160
PAPER_PASSES = 100
"""Passes of Algorithm 1. Its validation likelihood is flat in the first passes, so that a stopping
rule would end the fit there."""


def paper_settings(
    solver: str | Solver = "algorithm1",
    start: str = "noise",
    *,
    max_iter: int | None = None,
    tol: float | None = None,
) -> dict[str, Any]:
    """Return the parameters of ``HCPF`` that follow the paper's experiments.

    Its priors, theta and kappa at maximum likelihood and fixed, the ordinary posterior, one fit;
    the constants of Algorithm 1 (xi = 0.7, tau = 10,000) are its defaults.
    """
    one_of("start", start, ("noise", "symmetric"))
    by_draws = isinstance(solver_of(solver), Algorithm1)
    if max_iter is None:
        max_iter = PAPER_PASSES if by_draws else _defaults.MAX_ITER
    if tol is None:
        tol = 0.0 if by_draws else _defaults.TOL
    return {
        "priors": "paper", "learn_element": False, "tempering": 1.0, "n_fits": 1,
        "solver": solver, "start": start, "max_iter": max_iter, "tol": tol,
    }  # fmt: skip
