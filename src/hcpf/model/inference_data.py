"""Draws from the posterior as ArviZ InferenceData, for its summaries, diagnostics and figures."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import generator
from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.posterior import unit_rows
from hcpf.data.sampling import locate
from hcpf.errors import InputError, MissingDependencyError
from hcpf.model.combine import Positions
from hcpf.model.predict import draw_elements, pair_positions

if TYPE_CHECKING:
    from hcpf.model.posterior import PosteriorDraws

_MAX_NUMBERS = 1 << 28  # numbers in all draws, 2 GB
_PRIORS = (
    "user_activity_shape", "user_activity_mean", "item_activity_shape", "item_activity_mean",
)  # fmt: skip

Groups = dict[str, dict[str, NDArray[Any]]]


def inference_data(draws: "PosteriorDraws", users: Any, items: Any, random_state: Any) -> Any:
    """Return draws as InferenceData; see ``PosteriorDraws.to_arviz``."""
    arviz = _arviz()
    if (users is None) != (items is None):
        raise InputError("to_arviz: pass both users and items, whose pairs are meant, or neither.")
    order = by_chain(draws.chains)
    if users is None:
        rows = {axis: np.arange(len(_ids(draws, axis))) for axis in Axis}
        groups, pairs = Groups(), {}
    else:
        u, i = (p.ravel() for p in pair_positions(draws.model, users, items))
        rows = {Axis.USERS: np.unique(u), Axis.ITEMS: np.unique(i)}
        _require_room(order.size * len(u))
        groups, pairs = _pair_groups(draws, u, i, order, generator(random_state))
    _require_room(order.size * draws.model.n_components * sum(map(len, rows.values())))
    groups["posterior"] = _parameters(draws, rows, order) | groups.get("posterior", {})
    coords: dict[str, Any] = {axis.word: _ids(draws, axis)[rows[axis]] for axis in Axis}
    coords |= pairs | {"component": np.arange(draws.model.n_components)}
    dims = {f"{axis.word}_factors": [axis.word, "component"] for axis in Axis}
    dims |= {"rate": ["pair"], "value": ["counted_pair"]}
    return arviz.from_dict(**groups, coords=coords, dims=dims, attrs={"source": draws.source})


def _arviz() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that of ArviZ about its version 1
            import arviz
    except ImportError:
        raise MissingDependencyError.of_extra("to_arviz requires arviz", "science") from None
    return arviz


def _require_room(size: int) -> None:
    if size > _MAX_NUMBERS:
        raise InputError(
            f"to_arviz: {size:,} numbers would not fit into memory. Pass fewer users and items."
        )


def _ids(draws: "PosteriorDraws", axis: Axis) -> NDArray[Any]:
    return draws.model.index[axis].ids


def by_chain(chains: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the draws, chains x draws; as many draws of each chain."""
    members = [np.flatnonzero(chains == chain) for chain in np.unique(chains)]
    size = min(map(len, members))
    return np.stack([positions[len(positions) - size :] for positions in members])


def _parameters(
    draws: "PosteriorDraws", rows: dict[Axis, Positions], order: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return the factors of some users and items, and the priors of the activities."""
    columns = _matched_columns(draws)[:, None, :]
    found: dict[str, NDArray[Any]] = {}
    for axis, factors in ((Axis.USERS, draws.users), (Axis.ITEMS, draws.items)):
        matched = np.take_along_axis(factors[:, rows[axis]], columns, axis=2)
        found[f"{axis.word}_factors"] = matched[order]
    for name in _PRIORS:
        values = np.array([getattr(priors, name) for priors in draws.priors])
        if np.ptp(values) > 0:  # otherwise it was not drawn
            found[name] = values[order]
    return found


def _matched_columns(draws: "PosteriorDraws") -> NDArray[np.int64]:
    """Return, for each draw, its components in the order of those of the first fit."""
    from scipy.optimize import linear_sum_assignment  # which serving a model should not load

    reference = unit_rows(draws.model.posteriors[0].items.mean_.T)
    found = np.empty((len(draws), draws.model.n_components), np.int64)
    for columns, items in zip(found, draws.items, strict=True):
        columns[:] = linear_sum_assignment(reference @ unit_rows(items.T).T, maximize=True)[1]
    return found


def _pair_groups(
    draws: "PosteriorDraws", u: Positions, i: Positions, order: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[Groups, dict[str, Any]]:  # fmt: skip
    """Return what is known of some pairs, and their labels."""
    labels = np.array([
        f"{user}, {item}"
        for user, item in zip(draws.model.users[u], draws.model.items[i], strict=True)
    ])  # fmt: skip
    groups: Groups = {"posterior": {"rate": draws.rates(u, i)[order]}}
    pairs = {"pair": labels}
    if draws.model.data is None:
        return groups, pairs
    values, observed, counted = _trained_values(draws, u, i)
    u, i, values, observed = u[counted], i[counted], values[counted], observed[counted]
    groups |= _value_groups(draws, u, i, values, observed, order, rng)
    return groups, pairs | {"counted_pair": labels[counted]}


def _trained_values(
    draws: "PosteriorDraws", u: Positions, i: Positions
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the values of pairs, whether they are observed, and whether they were trained on."""
    model = draws.model
    assert model.data is not None
    matrix = model.data.matrix
    at = locate(matrix, u, i)
    observed, values = at >= 0, np.zeros(len(u))
    values[observed] = model.element.seen(matrix.data[at[observed]].astype(np.float64))
    counted = observed.copy() if model.value_model.train_on == "observed" else np.full(len(u), True)
    if model.excluded is not None:
        counted &= locate(model.excluded, u, i) < 0
    return values, observed, counted


def _value_groups(
    draws: "PosteriorDraws", u: Positions, i: Positions, values: FloatArray,
    observed: NDArray[np.bool_], order: NDArray[np.int64], rng: np.random.Generator,
) -> Groups:  # fmt: skip
    """Return the log-likelihood of the values of pairs, draws of them, and the values."""
    model, rates = draws.model, draws.rates(u, i)
    element = draw_elements(model, u, i, draws.fits, rng)
    pair = model.value_model.distribution(rates, element)
    shown = pair.observed if model.value_model.train_on == "observed" else pair
    likelihood = -rates
    at = (slice(None), observed)
    likelihood[at] = shown.at(at).log_density(values[observed])
    return {
        "log_likelihood": {"value": likelihood[order]},
        "posterior_predictive": {"value": shown.sample(rng=rng)[order]},
        "observed_data": {"value": values},
    }
