"""What a few short fits decide: the element, and how often the data count."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hcpf.core.value_model import ValueModel, ways_to_vary
from hcpf.data.sampling import some_rows
from hcpf.errors import InputError
from hcpf.training.held_out import Parts
from hcpf.training.plan import FitPlan
from hcpf.training.recipes import (
    candidate_elements,
    is_dense,
    usual_tempering,
)

logger = logging.getLogger("hcpf")

_HELD_OUT = 0.1
_ELEMENT_ENTRIES, _ELEMENT_COMPONENTS = 300_000, 10
_ELEMENT_PASSES, _DENSE_PASSES = 12, 40
"""Where most pairs are observed rates are large, and it takes longer until they have grown."""
_NEAR = 0.5
"""Nats for each held-out entry: an element that far behind, shared, is not tried varying."""
_MIN_POOLING_GAIN = 0.005
"""Nats per held-out entry that partial pooling must gain over a shared mean."""
_HURDLE_ELEMENTS, _MIN_HURDLE_GAIN = 2, 0.005
"""Elements tried as hurdle models, and the nats that these must gain over compound models."""

_TEMPERING_ENTRIES, _TEMPERING_PASSES = 500_000, 10
_TEMPERING_FACTOR, _HIGHEST_TEMPERING = 4.0, 64.0
_WORTH_TEMPERING = 0.01
"""Nats for each held-out entry that data counting more must gain."""

Fit = Callable[..., Any]
"""``fit_all`` of the session, which calls this module."""


def best_element(
    fit: Fit, parts: Parts, plan: FitPlan, rng: np.random.Generator
) -> tuple[ValueModel, bool]:
    """The value model with the best validation likelihood after a few passes.

    First among the kinds of element, then among the ways in which the best of them can vary; first
    with values that are sums of elements, then with values that are one element each. The
    held-out pairs, missing ones included, are the same for all candidates. Also returns whether
    Ctrl-C ended the search.
    """
    kinds = [type(element) for element in candidate_elements(parts.training.data)]
    few = min(plan.n_components, _ELEMENT_COMPONENTS)
    dense = is_dense(parts.training, parts.excluded)
    passes = _DENSE_PASSES if dense else _ELEMENT_PASSES
    short = _shortened(replace(plan, n_components=few), passes, rng)
    short = replace(short, options=replace(short.options, solver="auto", svi_passes=0))
    contest = _Contest(fit, parts, short, _ELEMENT_ENTRIES, rng)
    found = _best_of(contest, [ValueModel(kind()) for kind in kinds])
    # The order of the elements by the values alone holds for hurdle models but for partial pooling,
    # which may change it.
    single = [ValueModel(kind(), hurdle=True) for kind in kinds[:_HURDLE_ELEMENTS]]
    hurdle = _best_of(contest, single)
    return (hurdle if contest.gain(hurdle, found) > _MIN_HURDLE_GAIN else found), contest.stopped


def _best_of(contest: "_Contest", shared: list[ValueModel]) -> ValueModel:
    """Return the best of some value models, or of their partially pooled versions."""
    for model in shared:
        contest.enter(model)
    best = contest.best_of(shared) or shared[0]
    near = [one for one in shared if one in contest.scores and contest.gain(best, one) < _NEAR]
    pooled = [one.replace(vary_by=by) for one in near for by in ways_to_vary(type(one.element))]
    for model in pooled:
        contest.enter(model)
    found = contest.best_of(pooled) or best
    # Partial pooling is slower and harder to interpret, so require a minimum gain.
    return found if contest.gain(found, best) > _MIN_POOLING_GAIN else best


def best_tempering(
    fit: Fit, parts: Parts, plan: FitPlan, rng: np.random.Generator
) -> tuple[float, bool]:
    """How often the data count: as usual, or more where held-out pairs are clearly likelier then.

    They are where a row has many entries that few components cannot tell apart. Not asked where
    rows have too few entries to count more than once, or if the fit itself is to be a short one.
    Also returns whether Ctrl-C ended the search.
    """
    if plan.priors == "paper":
        return 1.0, False  # what the paper's recipe gives is the posterior itself
    tempering = usual_tempering(
        parts.training, plan.train_on, plan.options.solver, plan.n_fits, parts.excluded
    )
    if tempering == 1.0 or plan.options.max_iter <= 2 * _TEMPERING_PASSES:
        return tempering, False
    short = replace(_shortened(plan, _TEMPERING_PASSES, rng), init="noise")
    contest = _Contest(fit, parts, short, _TEMPERING_ENTRIES, rng)
    contest.enter(tempering)
    while not contest.stopped and (more := tempering * _TEMPERING_FACTOR) <= _HIGHEST_TEMPERING:
        contest.enter(more)
        if not contest.gain(more, tempering) > _WORTH_TEMPERING:
            break
        tempering = more
    return tempering, contest.stopped


def _shortened(plan: FitPlan, passes: int, rng: np.random.Generator) -> FitPlan:
    """One fit of few passes with pairs held out, which are the same for all that differ later."""
    return replace(
        plan,
        n_fits=1,
        options=replace(plan.options, max_iter=passes, tol=0.0, check_every=passes),
        validation_fraction=_HELD_OUT,
        random_state=int(rng.integers(1 << 32)),
        progress=False,
        checkpoint=None,
    )


class _Contest:
    """Short fits to the same data, which differ in one setting."""

    def __init__(
        self, fit: Fit, parts: Parts, plan: FitPlan, entries: int, rng: np.random.Generator
    ) -> None:
        rows = some_rows(parts.training, entries, rng)
        excluded = parts.excluded
        self._fit, self._plan = fit, plan
        self._sample = parts.training[rows]
        self._excluded = None if excluded is None else excluded[rows]
        self.scores: dict[Any, float] = {}
        self.stopped = False

    def enter(self, value: ValueModel | float) -> None:
        """Fit once more with a value model or tempering, unless Ctrl-C has ended the search."""
        if self.stopped:
            return
        try:
            fitted = self._fit(self._sample, self._with(value), exclude=self._excluded)
        except InputError:
            return  # the sample cannot estimate it, or is too small to hold anything out
        self.scores[value] = fitted.history[-1].validation_log_likelihood or -np.inf
        self.stopped = fitted.interrupted
        logger.info("auto: %s has validation likelihood %.5f", value, self.scores[value])

    def _with(self, value: ValueModel | float) -> FitPlan:
        if not isinstance(value, ValueModel):
            return replace(self._plan, tempering=value)
        return self._plan.with_value_model(value)

    def best_of(self, values: Sequence[Any]) -> Any | None:
        """The value with the best likelihood, of those that could be tried."""
        tried = [value for value in values if value in self.scores]
        return max(tried, key=lambda value: self.scores[value], default=None)

    def gain(self, value: Any, over: Any) -> float:
        """By how much one value is better than another; nothing if one could not be tried."""
        if value not in self.scores or over not in self.scores:
            return 0.0
        return self.scores[value] - self.scores[over]
