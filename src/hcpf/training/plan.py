"""What decides a fit, besides the data, checked."""

from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._checks import flag, number, one_of, settle, whole
from hcpf.core.priors import Priors
from hcpf.core.value_model import TRAIN_ON, ValueModel
from hcpf.elements.base import Element
from hcpf.errors import ParameterError
from hcpf.training.options import FitOptions

COMBINATIONS = ("average", "best")
STARTS = ("auto", "noise", "clusters")


@dataclass(frozen=True, eq=False)
class FitPlan:
    """Everything that decides a fit, besides the data."""

    n_components: int
    element: str | Element
    train_on: str
    n_fits: int
    combine: str
    priors: str | Priors
    options: FitOptions
    vary_by: str | None = None
    hurdle: bool = False
    validation_fraction: float = 0.0
    n_truncation: int | None = None
    tempering: str | float = 1.0
    init: str = "auto"
    n_threads: int | None = None
    random_state: int | np.random.Generator | None = None
    progress: bool | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 10
    checkpoint_seconds: float = 300.0

    def __post_init__(self) -> None:
        below_one = float(np.nextafter(1.0, 0.0))
        settle(
            self,
            n_components=whole("n_components", self.n_components),
            train_on=one_of("train_on", self.train_on, TRAIN_ON),
            n_fits=whole("n_fits", self.n_fits),
            tempering=_check_tempering(self.tempering),
            combine=one_of("combine", self.combine, COMBINATIONS),
            init=one_of("init", self.init, STARTS),
            validation_fraction=number(
                "validation_fraction", self.validation_fraction, 0.0, below_one, "in [0, 1)"
            ),
            checkpoint_every=whole("checkpoint_every", self.checkpoint_every),
            checkpoint_seconds=number(
                "checkpoint_seconds", self.checkpoint_seconds, 0.0, inf, "0 or more"
            ),
        )
        if self.element == "auto" and (self.vary_by is not None or self.hurdle):
            raise ParameterError(
                "vary_by and hurdle require an element: element='auto' compares all of them. Give "
                "element, or remove vary_by and hurdle."
            )
        for name in ("n_truncation", "n_threads"):
            if getattr(self, name) is not None:
                settle(self, **{name: whole(name, getattr(self, name))})
        if self.progress is not None:
            flag("progress", self.progress)
        if self.init == "clusters" and not self.keeps_its_start:
            raise ParameterError(
                'init="clusters" needs solver "auto" or "cavi", and train_on="full": '
                "other solvers forget their start, and observed entries alone have no clusters."
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
    def keeps_its_start(self) -> bool:
        """Whether clusters of items can be where a fit begins."""
        return self.options.solver in ("auto", "cavi") and self.train_on != "observed"


def _check_tempering(value: Any) -> str | float:
    """Return a checked ``tempering``: "auto" or a positive number."""
    if isinstance(value, str):
        return one_of("tempering", value, ("auto",))
    return number("tempering", value, 1e-3, 1e3, "'auto' or a number from 0.001 to 1000")
