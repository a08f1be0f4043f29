"""Draws from the posterior of the factors, which measure the uncertainty of a fitted model.

The variational posterior of a fit is too narrow: it is cold where the fit was tempered, it contains
one of several solutions, and it treats factors that compensate each other as independent. With the
training data, Gibbs sampling draws from the ordinary posterior (``core.gibbs``): four short
chains or more, each begun at one of the fits. New users are drawn given the draws of the items.
Without the data, draws come from the variational posterior, without its tempering.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._checks import generator, whole
from hcpf._progress import progress_bar
from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis
from hcpf.core.fold_in import stacked_rows, used_columns
from hcpf.core.gibbs import Chain, Draw, GibbsData
from hcpf.core.posterior import Posterior, scale_rows
from hcpf.core.priors import Priors
from hcpf.data.sampling import without
from hcpf.distributions.pair import tail_of
from hcpf.errors import ParameterError
from hcpf.model.combine import Positions
from hcpf.model.inference_data import by_chain, inference_data
from hcpf.model.predict import pair_positions

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

_MIN_CHAINS = 4
_MAX_PASSES, _MIN_PASSES = 200, 50
_MANY_ENTRIES = 250_000  # entries above which a chain makes fewer passes
_BURN_IN = 0.25  # share of the passes that are discarded
_N_DRAWS, _MAX_FACTORS = 128, 1 << 27
"""Draws that are kept, and factors in all of them (512 MB); at least one draw per chain is kept."""
_PASSES_OF_NEW_ROWS = 4
"""Per draw of the other axis, which changes little from one to the next."""
_SEED = 0
_CHECKED_PAIRS, _MAX_R_HAT, _MAX_SHARE = 500, 1.1, 0.1
"""Random pairs whose rates are checked, and the share of them that may exceed this R-hat."""

logger = logging.getLogger("hcpf")


@dataclass(frozen=True, eq=False)
class Folded:
    """How a model was folded in: which axis is new, and the model that the other comes from.

    ``measured`` are the rows of the other axis that took part, by default all. The model is None
    after loading: a saved model does not contain the one that it was folded in from.
    """

    axis: Axis
    model: "FittedModel | None" = None
    measured: NDArray[np.int64] | None = None


class _OneDraw(NamedTuple):
    users: Draw
    items: Draw
    priors: Priors
    fit: int
    chain: int


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDraws:
    """Draws of all factors of a model from their posterior.

    Attributes
    ----------
    users, items : ndarray
        Factors, draws x users x components and draws x items x components. Components of different
        draws do not correspond to each other.
    source : str
        "gibbs"; "fold-in", for new rows; or "variational" where there are no training data.
    chains : ndarray of int
        The chain of each draw; draws of a chain are in their order.
    """

    users: NDArray[np.float32]
    items: NDArray[np.float32]
    source: str
    fits: NDArray[np.int64]
    chains: NDArray[np.int64]
    priors: tuple[Priors, ...]
    model: "FittedModel"

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"PosteriorDraws({len(self)} draws, {self.source}, of {self.model!r})"

    def sample(self, size: int, random_state: Any = None) -> "PosteriorDraws":
        """Return some of the draws, chosen at random; more than there are repeat.

        Parameters
        ----------
        size : int
            The number of draws.
        random_state : int or Generator, optional
            Seed of the choice.
        """
        size, rng = whole("size", size), generator(random_state)
        repeats = -(-size // len(self))
        try:
            users, items = (
                np.empty((size, *f.shape[1:]), f.dtype) for f in (self.users, self.items)
            )
        except (MemoryError, OverflowError, ValueError):
            raise ParameterError(f"size={size} draws do not fit in memory. Take fewer.") from None
        chosen = np.concatenate([rng.permutation(len(self)) for _ in range(repeats)])[:size]
        np.take(self.users, chosen, axis=0, out=users, mode="clip")  # "raise" makes copies
        np.take(self.items, chosen, axis=0, out=items, mode="clip")
        return PosteriorDraws(
            users, items, self.source, self.fits[chosen], self.chains[chosen],
            tuple(self.priors[j] for j in chosen), self.model,
        )  # fmt: skip

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Return the draws of the rates of pairs, draws first.

        Parameters
        ----------
        users, items : ids
            The pairs; users and items broadcast.
        """
        u, i = pair_positions(self.model, users, items)
        return self.rates(u.ravel(), i.ravel()).reshape(len(self), *u.shape)

    def interval(self, users: Any, items: Any, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the equal-tailed interval of the rates of pairs with probability ``level``.

        That of the probability to be observed follows: 1 - exp(-rate) of both ends.
        """
        tail = tail_of(level)
        # Unbiased for the probability outside, whatever the distribution.
        ends = np.quantile(self.rate(users, items), [tail, 1.0 - tail], axis=0, method="weibull")
        return ends[0], ends[1]

    def to_arviz(self, users: Any = None, items: Any = None, *, random_state: Any = None) -> Any:
        """Return the draws as ArviZ ``InferenceData``, by chain.

        Group ``posterior``: ``user_factors`` and ``item_factors``, whose components are matched to
        those of the first fit; the shape and mean of the activities' priors, if they were drawn
        (the mean of the users' keeps its fitted value where both axes have 20 rows or more);
        and ``rate`` of the pairs. With pairs and training data also ``log_likelihood``,
        ``posterior_predictive`` and ``observed_data`` (each ``value``, 0 for missing pairs) of
        those pairs that were trained on. Chains have equally many draws: surplus ones are dropped.

        Parameters
        ----------
        users, items : ids, optional
            Pairs; users and items broadcast. Factors are those of these users and items. By default
            there are no pairs, and the factors of all rows.
        random_state : int or Generator, optional
            Seed of the predictive draws, and of those of pooled means.

        Returns
        -------
        arviz.InferenceData
            Requires ArviZ; from a clone: ``pip install '.[science]'``.
        """
        return inference_data(self, users, items, random_state)

    def rates(self, u: Positions, i: Positions, exposure: FloatArray | None = None) -> FloatArray:
        """Return the draws of the rates of pairs given by position.

        ``exposure`` replaces the exposures of the users and items.
        """
        rates = np.empty((len(self), len(u)))
        for rate, s, v in zip(rates, self.users, self.items, strict=True):
            np.einsum("jk,jk->j", s[u], v[i], dtype=np.float64, out=rate)
        return rates * (self.model.combined.exposure(u, i) if exposure is None else exposure)


def draw_posterior(model: "FittedModel") -> PosteriorDraws:
    """Return draws of the factors of a model, always the same for the same model."""
    rng = np.random.default_rng(_SEED)
    if model.data is None:
        source, draws = "variational", _variational_draws(model, rng)
    elif model.folded is None:
        source, draws = "gibbs", _gibbs_draws(model, rng)
    else:
        source, draws = "fold-in", _new_row_draws(model, model.folded, rng)
    found = list(draws)
    drawn = PosteriorDraws(
        np.stack([one.users for one in found]), np.stack([one.items for one in found]), source,
        np.array([one.fit for one in found]), np.array([one.chain for one in found]),
        tuple(one.priors for one in found), model,
    )  # fmt: skip
    if source == "gibbs":
        _warn_of_differing_chains(drawn, rng)
    return drawn


def _warn_of_differing_chains(draws: PosteriorDraws, rng: np.random.Generator) -> None:
    """Log a warning if many rates of random pairs differ between and within the chains."""
    users, items = (rng.integers(0, len(f[0]), _CHECKED_PAIRS) for f in (draws.users, draws.items))
    log_rates = np.log(np.maximum(draws.rates(users, items), np.finfo(float).tiny))
    order = by_chain(draws.chains)
    if order.shape[1] < 4:
        return
    share = float(np.mean(r_hat(log_rates[order]) > _MAX_R_HAT))
    if share > _MAX_SHARE:
        logger.warning(
            "Posterior draws: the chains disagree about %.0f%% of the rates (R-hat above %g), so "
            "intervals are rough. To see the R-hat of single pairs, pass "
            "posterior.to_arviz(users, items) to arviz.summary().",
            100.0 * share, _MAX_R_HAT,
        )  # fmt: skip


def r_hat(draws: FloatArray) -> FloatArray:
    """Return the split R-hat of quantities drawn by several chains: chains x draws x quantities.

    Near 1 where halves of chains agree with each other.
    """
    size = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :size], draws[:, -size:]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((size - 1.0) / size + between / within)


def _n_draws(model: "FittedModel") -> int:
    """Return how many draws of all factors to keep."""
    n_factors = (len(model.users) + len(model.items)) * model.n_components
    return int(np.clip(_MAX_FACTORS // n_factors, _n_chains(model), _N_DRAWS))


def _n_chains(model: "FittedModel") -> int:
    return max(_MIN_CHAINS, len(model.posteriors))


def _untempered(model: "FittedModel", fit: Posterior) -> Posterior:
    users, items = (
        fit.axis(axis).untempered(model.priors.axis(axis)[0], model.tempering) for axis in Axis
    )
    return Posterior(users, items)


def _variational_draws(model: "FittedModel", rng: np.random.Generator) -> Iterator[_OneDraw]:
    fits = [_untempered(model, fit) for fit in model.posteriors]
    for draw in range(_n_draws(model)):
        fit = fits[draw % len(fits)]
        s, v = fit.users.sample(1, rng)[0], fit.items.sample(1, rng)[0]
        yield _OneDraw(s, v, model.priors, draw % len(fits), draw % len(fits))


def _gibbs_draws(model: "FittedModel", rng: np.random.Generator) -> Iterator[_OneDraw]:
    data = _gibbs_data(model, *_entries(model))
    share = _MANY_ENTRIES / max(data.matrix.nnz, 1)
    n_passes = int(np.clip(_MAX_PASSES * share, _MIN_PASSES, _MAX_PASSES))
    n_chains, n_draws = _n_chains(model), _n_draws(model)
    burn_in = int(_BURN_IN * n_passes)
    with progress_bar(None, "Sampling the posterior", n_chains * n_passes) as advance:
        for j in range(n_chains):
            fit = j % len(model.posteriors)
            n_kept = len(range(j, n_draws, n_chains))
            kept = set(np.linspace(n_passes - 1, burn_in, n_kept).astype(int).tolist())
            chain = Chain(data, model.posteriors[fit], rng, model.tempering)
            for iteration in range(n_passes):
                chain.make_pass()
                advance(1)
                if iteration in kept:
                    s, v = chain.factors(Axis.USERS), chain.factors(Axis.ITEMS)
                    yield _OneDraw(s, v, chain.priors, fit, j)


def _new_row_draws(
    model: "FittedModel", folded: Folded, rng: np.random.Generator
) -> Iterator[_OneDraw]:
    """Yield draws of new rows, each given one draw of the other axis."""
    axis, before = folded.axis, _draws_before(model, folded, rng)
    matrix, excluded = _entries(model)
    if axis is Axis.ITEMS:
        matrix, excluded = _transposed(matrix), None if excluded is None else _transposed(excluded)
    columns, place = used_columns(matrix, excluded)
    parts = [None if one is None else stacked_rows(one, place, 1) for one in (matrix, excluded)]
    parts = [None if one is None else sparse.csr_array(one[:, : len(columns)]) for one in parts]
    if axis is Axis.ITEMS:
        parts = [None if one is None else _transposed(one) for one in parts]
    assert parts[0] is not None
    data, chain, fit = _gibbs_data(model, parts[0], parts[1]), None, -1
    with progress_bar(None, "Sampling the posterior", len(before)) as advance:
        for others, priors, this_fit, number in before:
            if chain is None or this_fit != fit:
                fit = this_fit
                start = model.posteriors[fit]
                rows = {axis.other.value: start.axis(axis.other).at(columns)}
                start = Posterior(**{axis.value: start.axis(axis), **rows})
                chain = Chain(data, start, rng, model.tempering)
            exposed = scale_rows(others, model.posteriors[fit].axis(axis.other).exposure)
            measured = exposed if folded.measured is None else exposed[folded.measured]
            others_sum = measured.sum(axis=0, dtype=np.float64)
            for _ in range(_PASSES_OF_NEW_ROWS):
                chain.draw_rows(axis, exposed[columns], others_sum, priors)
            advance(1)
            factors = {axis.value: chain.factors(axis), axis.other.value: others}
            yield _OneDraw(**factors, priors=priors, fit=fit, chain=number)


def _draws_before(
    model: "FittedModel", folded: Folded, rng: np.random.Generator
) -> list[tuple[Draw, Priors, int, int]]:
    """Return the draws of the axis that is not new, with the priors, fit and chain of each."""
    other = folded.axis.other
    if folded.model is not None:
        draws = folded.model.posterior
        factors = draws.users if other is Axis.USERS else draws.items
        numbers = draws.fits.tolist(), draws.chains.tolist()
        found = zip(factors, draws.priors, *numbers, strict=True)
        return sorted(found, key=lambda one: one[2])
    fits = [_untempered(model, fit).axis(other) for fit in model.posteriors]
    return [
        (rows.sample(1, rng)[0], model.priors, j, j)
        for j, rows in enumerate(fits)
        for _ in range(-(-_n_draws(model) // len(fits)))
    ]


def _entries(model: "FittedModel") -> tuple[Csr, Csr | None]:
    """Return the entries that are not excluded, as the element sees them, and the excluded pairs.

    Both are users x items.
    """
    assert model.data is not None
    matrix = without(model.data.matrix, model.excluded)
    parts = model.element.seen(matrix.data), matrix.indices, matrix.indptr
    return sparse.csr_array(parts, shape=matrix.shape), model.excluded


def _gibbs_data(model: "FittedModel", matrix: Csr, excluded: Csr | None) -> GibbsData:
    return GibbsData(model.value_model, model.priors, matrix, excluded, model.max_count)


def _transposed(matrix: Csr) -> Csr:
    return sparse.csr_array(matrix.T)
