"""Choose the value model and the tempering by the held-out likelihood of short fits.

A sample of the users is drawn once, with held-out pairs. On it the elements compete as hurdle
models first: values have no part in the rates there, so all of them start from one fit of the rates
and need few passes. Elements that are not far behind compete as compound models. Partial pooling is
tried on the best element, and the kind that helps it most on the others. The winner is then fitted
with other temperings. ``HCPF(element="auto")`` and ``hcpf compare`` choose by the same rule,
``training.selection``: the former applies it to short fits, the latter to complete ones.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hcpf._progress import Advance, progress_bar
from hcpf._types import FloatArray
from hcpf.core.threads import kernel_threads
from hcpf.core.value_model import VARY_BY, ValueModel, ways_to_vary
from hcpf.elements import Element
from hcpf.errors import InputError
from hcpf.training.held_out import TrainingSplit
from hcpf.training.interrupt import Interrupt
from hcpf.training.resolve import candidate_elements, formula_tempering
from hcpf.training.selection import (
    MIN_POOLING_GAIN,
    Candidate,
    PairLikelihoods,
    select,
    worth_pooling,
)
from hcpf.training.settings import FitPlan
from hcpf.training.short_fits import Race, Sample, SearchStopped, ShortFit

logger = logging.getLogger("hcpf")

_COMPONENTS = 10
_BASE_PASSES, _WARM_PASSES = 12, (4,)
"""Passes from noise, and then from there with another value model; the dispersion is estimated
after three."""
_DENSE_BASE_PASSES, _DENSE_PASSES = 36, (10, 30)
"""Where most pairs are observed rates are large, and it takes longer until they have grown. They
depend on the value model, so that compound models start from noise."""
_MARGIN = 0.1
"""Nats per held-out entry behind the leader, at an early look, that the last passes may make up."""
_MAX_HURDLE_DEFICIT = 0.1
"""Nats per held-out entry behind the best hurdle model, beyond which an element is not tried as a
compound model."""

_TEMPERING_FITS, _TEMPERING_PASSES = 2, 15
"""After fewer passes a stronger tempering is ahead even where it overfits in the end."""
_TEMPERING_FACTOR, _HIGHEST_TEMPERING = 4.0, 64.0
_MIN_TEMPERING_GAIN, _TEMPERING_ERRORS = 0.01, 2.0
"""Nats per held-out entry, and standard errors, that a stronger tempering must gain."""
_INTERRUPTED_PASSES = 10

Kinds = Sequence[type[Element]]
Scored = list[Candidate[ValueModel]]


def choose_settings(
    split: TrainingSplit,
    plan: FitPlan,
    rng: np.random.Generator,
    interrupt: Interrupt,
) -> tuple[FitPlan, bool]:
    """Return the plan with a value model and a tempering in place of "auto".

    Also returns whether Ctrl-C ended the search. The plan is then a short one for what was best
    until then; if there is nothing to keep, a KeyboardInterrupt is raised.
    """
    needs_element = plan.element == "auto" and plan.train_on == "full"
    needs_tempering = plan.tempering == "auto" and plan.max_iter > _TEMPERING_PASSES
    # Where the formula is 1 (sparse rows, dense data, Algorithm 1, ...) nothing competes with 1.
    needs_tempering &= formula_tempering(plan, split) != 1.0
    if not needs_tempering:
        plan = _with_tempering(split, plan)
    if not (needs_element or needs_tempering):
        return plan, False
    try:
        sample = Sample.draw(split, plan.train_on, rng)
    except InputError:  # too few entries to hold any out
        return _by_values_alone(split, plan), False
    with kernel_threads(plan.n_threads):
        search = Search(sample, plan, interrupt.stop_requested)
        try:
            if needs_element:
                plan = plan.with_value_model(search.value_model(split.values))
            if needs_tempering:
                formula = formula_tempering(plan, split)
                plan = replace(plan, tempering=search.tempering(plan, formula))
        except SearchStopped:
            interrupt.is_requested = False  # the next Ctrl-C is for the fit of what is kept
            return _keep_leader(search, split, plan), True
    return plan, False


def _by_values_alone(split: TrainingSplit, plan: FitPlan) -> FitPlan:
    """Return the plan with what needs no short fits in place of "auto"."""
    if plan.element == "auto":
        plan = plan.with_value_model(ValueModel(candidate_elements(split.values)[0]))
    return _with_tempering(split, plan)


def _with_tempering(split: TrainingSplit, plan: FitPlan) -> FitPlan:
    """Return the plan with a number for a tempering that was not chosen on held-out pairs.

    That is 1, the ordinary posterior, unless the formula was asked for.
    """
    if not isinstance(plan.tempering, str):
        return plan
    is_formula = plan.tempering == "formula"
    return replace(plan, tempering=formula_tempering(plan, split) if is_formula else 1.0)


def _keep_leader(search: "Search", split: TrainingSplit, plan: FitPlan) -> FitPlan:
    """Return a plan of few passes for the best settings so far."""
    if plan.element == "auto":
        leader = search.leader
        if leader is None:
            raise KeyboardInterrupt("interrupted before any element was tried: nothing is kept.")
        plan = plan.with_value_model(leader)
        kept = f"{leader.description}, the best of {len(search.scored)} tried"
    else:
        kept = "the value model without a choice of the tempering"
    n_passes = min(plan.max_iter, _INTERRUPTED_PASSES)
    logger.warning(
        "Interrupted while choosing the settings: fitting %s, for at most %d passes. Press Ctrl-C "
        "again to stop.", kept, n_passes,
    )  # fmt: skip
    return _with_tempering(split, replace(plan, n_fits=1, max_iter=n_passes, checkpoint=None))


@dataclass(eq=False)
class Search:
    """The short fits that choose the settings of one fit."""

    sample: Sample
    plan: FitPlan
    is_stopping: Callable[[], bool]
    scored: Scored = field(default_factory=Scored)
    """The value models tried so far."""
    _advance: Advance = lambda amount, note="": None

    @property
    def leader(self) -> ValueModel | None:
        """The best value model so far."""
        return select(self.scored) if self.scored else None

    def value_model(self, values: FloatArray) -> ValueModel:
        """Return the best value model for all values: hurdle models first, then compound ones."""
        kinds = [type(element) for element in candidate_elements(values)]
        n_fits = 6.0 * len(kinds)  # about as many
        with progress_bar(
            self.plan.progress, "Choosing the element", n_fits, is_estimate=True
        ) as self._advance:
            hurdles = self._race_hurdles(kinds)
            if self.sample.split.is_dense:
                self._race_dense_compounds(kinds)
            else:
                self._race_compounds(_promising(kinds, hurdles), _ways_by_likelihood(hurdles))
        return self.leader or ValueModel(kinds[0]())

    def _race_hurdles(self, kinds: Kinds) -> Scored:
        """Try elements as hurdle models, all from one fit of the rates, which they share."""
        models = [ValueModel(kind(), hurdle=True) for kind in kinds]
        # Of any of them: the rates of hurdle models do not depend on the element.
        base = self._base(models)
        if base is None:
            return []
        race = self._race(_WARM_PASSES)
        shared = self._try(models, race, base)
        return shared + self._try_pooled(shared, race, base)

    def _race_compounds(self, kinds: Kinds, ways: Sequence[str]) -> None:
        """Try compound models with a shared mean and with the best way to pool.

        Each starts from a fit of its own element. If pooling wins, its other ways are tried, too.
        """
        race, bases = self._race(_WARM_PASSES), dict[type[Element], ShortFit]()
        for kind in kinds:
            model = ValueModel(kind())
            base = self._base([model])
            if base is None:
                continue
            bases[kind] = base
            self._try([model], race, base)
            if model in worth_pooling(self.scored):
                self._try(_pooled(model, ways)[:1], race, base)
        leader = self.leader
        if leader is not None and leader.vary_by is not None and not leader.hurdle:
            others = [way for way in VARY_BY if way != leader.vary_by]
            self._try(_pooled(leader, others), race, bases[type(leader.element)])

    def _race_dense_compounds(self, kinds: Kinds) -> None:
        """Try compound models where most pairs are observed, all from noise."""
        race = self._race(_DENSE_PASSES)
        shared = self._try([ValueModel(kind()) for kind in kinds], race)
        self._try_pooled(shared, race)

    def _try_pooled(self, shared: Scored, race: Race, start: ShortFit | None = None) -> Scored:
        """Try all ways to pool the best element, and the best of them on the others near it."""
        near = worth_pooling(shared)
        pooled = self._try(_pooled(near[0], VARY_BY), race, start) if near else []
        ways = _ways_by_likelihood(shared + pooled)
        for model in near[1:]:
            pooled += self._try(_pooled(model, ways)[:1], race, start)
        return pooled

    def _race(self, passes: Sequence[int]) -> Race:
        return Race(passes, _MARGIN, self.is_stopping)

    def _short_plan(self, model: ValueModel) -> FitPlan:
        n_components = min(self.plan.n_components, _COMPONENTS)
        return replace(self.plan.with_value_model(model), n_components=n_components)

    def _base(self, models: Sequence[ValueModel]) -> ShortFit | None:
        """Return a fit from noise of the first model that the sample can estimate."""
        for model in models:
            try:
                fit = ShortFit.begin(self.sample, self._short_plan(model))
            except InputError:
                continue
            n_passes = _DENSE_BASE_PASSES if self.sample.split.is_dense else _BASE_PASSES
            fit.advance(n_passes, self.is_stopping)
            return fit
        return None

    def _try(
        self, models: Sequence[ValueModel], race: Race, start: ShortFit | None = None
    ) -> Scored:
        """Return those of the models that the sample can estimate, unless they were dropped."""
        finished: Scored = []
        for model in models:
            self._advance(0, self._note(model))
            try:
                fit = ShortFit.begin(self.sample, self._short_plan(model), start)
            except InputError:
                continue
            likelihoods = race.run(fit)
            if likelihoods is None:
                logger.info("auto: %s is behind and is not finished", model.description)
            else:
                pooled = model.vary_by is not None
                finished.append(Candidate(model, likelihoods, pooled=pooled, hurdle=model.hurdle))
                self.scored.append(finished[-1])
                score = likelihoods.per_entry
                logger.info("auto: %s has validation likelihood %.5f", model.description, score)
            self._advance(1, self._note(model))
        return finished

    def _note(self, model: ValueModel) -> str:
        leader = self.leader
        best = "" if leader is None else f"; best of {len(self.scored)}: {leader.description}"
        return f"{model.description}{best}"

    def tempering(self, plan: FitPlan, formula: float) -> float:
        """Return 1, or a stronger tempering where held-out pairs gain clearly.

        The first to compete with the ordinary posterior is the formula's; each that gains is
        followed by one four times as strong. Strong ones gain where a row has many entries that few
        components cannot tell apart.
        """
        n_steps = int(np.log(_HIGHEST_TEMPERING / formula) / np.log(_TEMPERING_FACTOR))
        with progress_bar(plan.progress, "Choosing the tempering", 2 + n_steps) as self._advance:
            best, reference = 1.0, self._score_tempering(plan, 1.0)
            for step in range(n_steps + 1):
                stronger = formula * _TEMPERING_FACTOR**step
                likelihoods = self._score_tempering(plan, stronger)
                gain = likelihoods.gain_over(reference)
                if not gain.exceeds(_MIN_TEMPERING_GAIN, _TEMPERING_ERRORS):
                    break
                best, reference = stronger, likelihoods
        return best

    def _score_tempering(self, plan: FitPlan, tempering: float) -> PairLikelihoods:
        """Return the likelihoods of the average of two fits, if several are to be averaged.

        A single fit would not do: the stronger the tempering, the more an average gains.
        """
        self._advance(0, f"{tempering:.3g}")
        likelihoods: list[PairLikelihoods] = []
        for index in range(1 if plan.combine == "best" else min(plan.n_fits, _TEMPERING_FITS)):
            fit = ShortFit.begin(self.sample, replace(plan, tempering=tempering), seed=index)
            fit.advance(_TEMPERING_PASSES, self.is_stopping)
            likelihoods.append(fit.score())
        average = PairLikelihoods.average(likelihoods)
        score = average.per_entry
        logger.info("auto: tempering %.4g has validation likelihood %.5f", tempering, score)
        self._advance(1, f"{tempering:.3g}")
        return average


def _promising(kinds: Kinds, hurdles: Scored) -> Kinds:
    """Return the elements that are not far behind as hurdle models, the best first."""
    scores = {type(one.name.element): -np.inf for one in hurdles}
    for one in hurdles:
        kind = type(one.name.element)
        scores[kind] = max(scores[kind], one.likelihoods.per_entry)
    least = max(scores.values(), default=0.0) - _MAX_HURDLE_DEFICIT
    near = [kind for kind in kinds if scores.get(kind, np.inf) >= least]
    return sorted(near, key=lambda kind: -scores.get(kind, -np.inf))


def _ways_by_likelihood(scored: Scored) -> list[str]:
    """Return the ways to pool, the best first; none if pooling does not help."""
    ranked = sorted(scored, key=lambda one: -one.likelihoods.per_entry)
    shared = next((one for one in ranked if not one.pooled), None)
    pooled = [one for one in ranked if one.pooled]
    if shared is None or not pooled:
        return []
    gain = pooled[0].likelihoods.gain_over(shared.likelihoods)
    ways = [one.name.vary_by for one in pooled if one.name.vary_by is not None]
    return list(dict.fromkeys(ways)) if gain.exceeds(MIN_POOLING_GAIN) else []


def _pooled(model: ValueModel, ways: Sequence[str]) -> list[ValueModel]:
    """Return a model with each of the ways to pool that work with its element."""
    possible = ways_to_vary(type(model.element))
    return [model.replace(vary_by=way) for way in ways if way in possible]
