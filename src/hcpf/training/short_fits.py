"""Short fits to one sample of the data, which race each other on the same held-out pairs.

All short fits share the sample and its held-out pairs. Each is scored after some of its passes, at
its *looks*. A contender is dropped at the first look at which it is clearly behind the leader at
the same look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hcpf.core.collective import LOCAL
from hcpf.core.posterior import Posterior, axis_prior, posterior_of
from hcpf.core.shard import ShardData, ShardSource
from hcpf.data.held_out import HeldOutPairs
from hcpf.data.sampling import sample_rows
from hcpf.training.held_out import TrainingSplit, pair_likelihoods, split_validation
from hcpf.training.loop import Fit, advance_fit
from hcpf.training.resolve import formula_tempering, resolve_priors, resolve_value_model
from hcpf.training.selection import PairLikelihoods
from hcpf.training.settings import Auto, FitPlan
from hcpf.training.start import start_from_noise, start_from_posterior

_MAX_ENTRIES = 200_000
_HELD_OUT = 0.1
_MAX_SCORED = 5_000
"""Observed pairs scored at a look: log densities of sums cost more than the passes between."""
_CLEAR_ERRORS = 2.0
"""Standard errors that a contender is behind before it is dropped."""


class SearchStopped(Exception):  # noqa: N818 - a request, not an error
    """Ctrl-C was pressed during a short fit."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Some users with all their entries, of which a part is held out."""

    split: TrainingSplit
    held_out: HeldOutPairs
    data: ShardData
    seed: int

    @classmethod
    def draw(cls, split: TrainingSplit, train_on: str, rng: np.random.Generator) -> "Sample":
        """Draw users and held-out pairs; an InputError if there are too few entries for it."""
        rows = sample_rows(split.training, _MAX_ENTRIES, rng)
        excluded = None if split.excluded is None else split.excluded[rows]
        part = split_validation(
            split.training[rows], None, excluded, _HELD_OUT, train_on, rng,
            split.exposure.of_users(rows),
        )  # fmt: skip
        assert part.validation is not None
        data = ShardData.whole(part.training, part.excluded, part.exposure)
        return cls(part, part.validation, data, int(rng.integers(1 << 32)))


@dataclass(eq=False)
class ShortFit:
    """A fit of few passes to a sample."""

    fit: Fit
    sample: Sample

    @classmethod
    def begin(
        cls, sample: Sample, plan: FitPlan, start: "ShortFit | None" = None, *, seed: int = 0
    ) -> "ShortFit":
        """Begin a fit of a plan from noise, or from the factors of another short fit.

        An InputError is raised where the sample cannot estimate the element.
        """
        # Without minibatches, which would undo a start from another fit, for all alike.
        solver = Auto(svi_passes=0, max_count=plan.solver.max_count)
        plan = replace(plan, n_fits=1, solver=solver)
        split = sample.split
        value_model = resolve_value_model(plan, split)
        if start is not None and type(start.fit.state.element) is type(value_model.element):
            value_model = value_model.replace(element=start.fit.state.element)
        priors = resolve_priors(plan.priors, split, value_model, plan.n_components)
        tempering = plan.tempering
        if isinstance(tempering, str):
            tempering = formula_tempering(plan, split)
        source = ShardSource.alone(sample.data, solver.max_count, float(tempering))
        shard = source.lay_out(value_model)
        # The same noise for all contenders: what they differ in is then not their start.
        rng = np.random.default_rng([sample.seed, seed])
        if start is None:
            state = start_from_noise(shard, priors, plan.n_components, rng, LOCAL)
        else:
            state = start_from_posterior(
                shard, start.posterior, priors, plan.n_components, rng, LOCAL
            )
        return cls(Fit(state, shard, source, plan), sample)

    @property
    def posterior(self) -> Posterior:
        """The posterior so far; its arrays are those of the fit under way."""
        state = self.fit.state
        users, items = (
            posterior_of(mine, axis_prior(state.priors, mine.axis, mine.n_components))
            for mine in state.axes
        )
        return Posterior(users, items)

    def advance(self, n_passes: int, is_stopping: Callable[[], bool]) -> None:
        """Make more passes; raise ``SearchStopped`` after the one in which Ctrl-C is pressed."""
        for _ in range(n_passes):
            advance_fit(self.fit)
            if is_stopping():
                raise SearchStopped

    def score(self) -> PairLikelihoods:
        """Return the likelihoods of the held-out pairs."""
        return pair_likelihoods(self.fit.state, self.fit.shard, self.sample.held_out, _MAX_SCORED)


@dataclass(eq=False)
class Race:
    """Contenders that run one after the other, each until it is clearly behind the leader."""

    passes: Sequence[int]
    """Passes before each look."""
    margin: float
    """Nats per held-out entry behind the leader that later passes may make up."""
    is_stopping: Callable[[], bool]
    _leader: list[PairLikelihoods] = field(default_factory=list[PairLikelihoods], init=False)

    def run(self, fit: ShortFit) -> PairLikelihoods | None:
        """Return the likelihoods at the last look; None if it was dropped before."""
        looks: list[PairLikelihoods] = []
        for n_passes in self.passes:
            fit.advance(n_passes, self.is_stopping)
            looks.append(fit.score())
            # Not at the last look, after which there are no passes to save.
            if self._leader and len(looks) < len(self.passes):
                lead = self._leader[len(looks) - 1].gain_over(looks[-1])
                if lead.exceeds(self.margin, _CLEAR_ERRORS):
                    return None
        if not self._leader or looks[-1].per_entry > self._leader[-1].per_entry:
            self._leader = looks
        return looks[-1]
