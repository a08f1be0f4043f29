"""Choose the value model and the tempering by the held-out likelihood of short fits.

``HCPF(element="auto")`` and ``hcpf compare`` choose by the same rule, ``training.selection``: the
former applies it to short fits on a sample, the latter to complete ones.
"""

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hcpf._types import Csr
from hcpf.core.value_model import ValueModel, ways_to_vary
from hcpf.data.sampling import sample_rows
from hcpf.errors import InputError
from hcpf.training.ensemble import Ensemble, fit_ensemble
from hcpf.training.held_out import TrainingSplit, split_validation
from hcpf.training.resolve import (
    candidate_elements,
    formula_tempering,
    is_dense,
    resolve_priors,
    resolve_value_model,
)
from hcpf.training.selection import Candidate, select, worth_pooling
from hcpf.training.settings import Auto, FitPlan

logger = logging.getLogger("hcpf")

_HELD_OUT = 0.1
_ELEMENT_ENTRIES, _ELEMENT_COMPONENTS = 300_000, 10
_ELEMENT_PASSES, _DENSE_PASSES = 12, 40
"""Where most pairs are observed rates are large, and it takes longer until they have grown."""
_HURDLE_ELEMENTS = 2
"""Elements tried as hurdle models: the order by the values alone holds for these, too."""

_TEMPERING_ENTRIES, _TEMPERING_PASSES = 500_000, 10
_TEMPERING_FACTOR, _HIGHEST_TEMPERING = 4.0, 64.0
_MIN_TEMPERING_GAIN = 0.01
"""Nats per held-out entry that a stronger tempering must gain."""


def auto_value_model(
    split: TrainingSplit, plan: FitPlan, rng: np.random.Generator
) -> tuple[ValueModel, bool]:
    """Return the value model with the best validation likelihood after a few passes.

    First the elements with shared means, then partial pooling of those near the best; once as
    compound and once as hurdle models. The held-out pairs, missing ones included, are the same for
    all candidates. Also returns whether Ctrl-C ended the search.
    """
    kinds = [type(element) for element in candidate_elements(split.training.data)]
    dense = is_dense(split.training, split.excluded)
    passes = _DENSE_PASSES if dense else _ELEMENT_PASSES
    few = min(plan.n_components, _ELEMENT_COMPONENTS)
    short = _shortened(replace(plan, n_components=few), passes, rng)
    short = replace(short, solver=Auto(svi_passes=0, max_count=plan.solver.max_count))
    fits = _ShortFits.of(split, short, _ELEMENT_ENTRIES, rng)
    candidates: list[Candidate[ValueModel]] = []
    for hurdle, elements in ((False, kinds), (True, kinds[:_HURDLE_ELEMENTS])):
        shared = _scored(fits, [ValueModel(kind(), hurdle=hurdle) for kind in elements])
        pooled = [
            one.replace(vary_by=by)
            for one in worth_pooling(shared)
            for by in ways_to_vary(type(one.element))
        ]
        candidates += [*shared, *_scored(fits, pooled)]
    chosen = select(candidates) if candidates else ValueModel(kinds[0]())
    return chosen, fits.interrupted


def auto_tempering(
    split: TrainingSplit, plan: FitPlan, rng: np.random.Generator
) -> tuple[float, bool]:
    """Return the tempering: by its formula, or stronger where held-out pairs gain clearly.

    They do where a row has many entries that few components cannot tell apart. Not tried where
    rows have too few entries, or if the fit itself is short. Also returns whether Ctrl-C ended the
    search.
    """
    tempering = formula_tempering(plan, split)
    if tempering == 1.0 or plan.max_iter <= 2 * _TEMPERING_PASSES:
        return tempering, False
    short = replace(_shortened(plan, _TEMPERING_PASSES, rng), start="noise")
    fits = _ShortFits.of(split, short, _TEMPERING_ENTRIES, rng)
    score = fits.score(replace(short, tempering=tempering))
    while score is not None and (more := tempering * _TEMPERING_FACTOR) <= _HIGHEST_TEMPERING:
        stronger = fits.score(replace(short, tempering=more))
        if stronger is None or not stronger - score > _MIN_TEMPERING_GAIN:
            break
        tempering, score = more, stronger
    return tempering, fits.interrupted


def _scored(fits: "_ShortFits", models: list[ValueModel]) -> list[Candidate[ValueModel]]:
    """Return the candidates that could be fitted, with their scores."""
    found: list[Candidate[ValueModel]] = []
    for model in models:
        score = fits.score(fits.plan.with_value_model(model))
        if score is not None:
            pooled = model.vary_by is not None
            found.append(Candidate(model, score, pooled=pooled, hurdle=model.hurdle))
            logger.info("auto: %s has validation likelihood %.5f", model.description, score)
    return found


def _shortened(plan: FitPlan, passes: int, rng: np.random.Generator) -> FitPlan:
    """Return a plan of one fit of few passes; its seed holds out the same pairs every time."""
    return replace(
        plan,
        n_fits=1,
        max_iter=passes,
        tol=0.0,
        check_every=passes,
        validation_fraction=_HELD_OUT,
        random_state=int(rng.integers(1 << 32)),
        progress=False,
        checkpoint=None,
    )


@dataclass(eq=False)
class _ShortFits:
    """Short fits to one sample of the users, which differ in one setting."""

    plan: FitPlan
    sample: Csr
    excluded: Csr | None
    interrupted: bool = False

    @classmethod
    def of(
        cls, split: TrainingSplit, plan: FitPlan, max_entries: int, rng: np.random.Generator
    ) -> "_ShortFits":
        rows = sample_rows(split.training, max_entries, rng)
        excluded = split.excluded
        return cls(plan, split.training[rows], None if excluded is None else excluded[rows])

    def score(self, plan: FitPlan) -> float | None:
        """Return the validation log-likelihood; None after Ctrl-C, or if it cannot be fitted."""
        if self.interrupted:
            return None
        try:
            found = self._fit(plan)
        except InputError:
            return None  # the sample cannot estimate it, or is too small to hold anything out
        self.interrupted = found.interrupted
        score = found.history[-1].validation_log_likelihood
        return -np.inf if score is None else score

    def _fit(self, plan: FitPlan) -> Ensemble:
        rng: Any = np.random.default_rng(plan.random_state)
        split = split_validation(
            self.sample, None, self.excluded, plan.validation_fraction, plan.train_on, rng
        )
        value_model = resolve_value_model(plan, split)
        priors = resolve_priors(
            plan.priors, split.training, value_model, split.n_excluded, plan.n_components
        )
        if plan.tempering == "auto":
            plan = replace(plan, tempering=formula_tempering(plan, split))
        return fit_ensemble(split, value_model, priors, plan, rng)
