"""Components that many fits agree on, their stability, and the choice of K."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hcpf._checks import number, whole
from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis
from hcpf.core.posterior import FactorPosterior, Posterior, unit_rows
from hcpf.data.interactions import Interactions
from hcpf.errors import InputError, ParameterError
from hcpf.estimator import HCPF
from hcpf.evaluate.comparison import ModelScores, fit_and_score, fit_to
from hcpf.evaluate.components import (
    Candidate,
    ComponentPath,
    data_for_choice,
    deficits,
    likelihood_of,
    sizes_to_try,
    split_for_choice,
)
from hcpf.evaluate.splits import RandomState
from hcpf.model.factors import fit_at, shares
from hcpf.model.fitted import FittedModel
from hcpf.model.resolve import fitted_model
from hcpf.model.tables import Table

logger = logging.getLogger("hcpf")

_CLUSTERINGS = 10  # starts of k-means, of which the best is kept


class Stability(NamedTuple):
    """How well the components of the fits agree."""

    silhouette: float
    """Mean silhouette of the components in their clusters: 1 where clusters are far apart."""
    cosine: float
    """Mean cosine of the item shares of matched components, over all pairs of fits."""
    kept: float
    """Share of the components that have others nearby."""


@dataclass(frozen=True, eq=False)
class ConsensusCandidate(Candidate):
    """One number of components, and how well the components of its fits agree."""

    stability: Stability
    start: FittedModel = field(repr=False)
    """The medians of the clusters, before they were refitted."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, with the standard errors as ``NAME_error``."""
        return {"n_components": self.n_components, **self.stability._asdict(), **super().as_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class Consensus(ComponentPath):
    """What ``consensus`` found.

    Attributes
    ----------
    candidates : list of ConsensusCandidate
        One per number of components.
    model : FittedModel
        The model of the K that is ``best``, refitted from its consensus components to all data.
    data, excluded, settings
        What ``refit`` uses.
    """

    candidates: Sequence[ConsensusCandidate]
    model: FittedModel
    data: Interactions
    excluded: Csr | None
    settings: Mapping[str, Any]

    def refit(self, n_components: int) -> FittedModel:
        """Return the model of another K, refitted from its consensus components to all data."""
        for candidate in self.candidates:
            if candidate.n_components == n_components:
                return _refitted(candidate.start, self.data, self.excluded, self.settings)
        known = ", ".join(str(candidate.n_components) for candidate in self.candidates)
        raise InputError(f"n_components={n_components!r} was not tried. Pass one of {known}.")

    def __repr__(self) -> str:
        columns = self.to_table().columns()
        del columns["seconds"]  # which differ whenever it is run
        return f"{Table(**columns)!r}\nbest {self.best}"


def consensus(
    data: Any,
    n_components: int | Sequence[int] = (6, 8, 10),
    *,
    n_fits: int = 20,
    max_distance: float = 0.5,
    neighbors: float = 0.3,
    validation: float = 0.1,
    random_state: RandomState = 0,
    fit_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Consensus:
    """Fit many times, cluster the components, and refit from the medians of the clusters.

    Per number of components K: fit ``n_fits`` times from noise; drop components that are far from
    those of other fits; cluster the rest into K clusters (k-means); take the median item shares of
    each cluster, and of the users' factors; and train from there. As in cNMF, except that the last
    step trains items, too: the result is an ordinary model.

    Parameters
    ----------
    data : Interactions, AnnData or matrix; or Split
        A share of the pairs is held out to score every K. Of a Split the validation pairs decide.
    n_components : int or sequence of int
        The K to try.
    n_fits : int, default 20
        The number of fits per K, at least 2.
    max_distance : float, default 0.5
        A component is dropped if its mean distance from its nearest neighbors is larger. Distances
        are those of the square roots of the item shares (Hellinger), between 0 and 1.41.
    neighbors : float, default 0.3
        How many neighbors that mean is over, as a share of ``n_fits``.
    validation : float, default 0.1
        The share held out, unless ``data`` is a Split.
    random_state : int, Generator or None
        Seed of the split and of all fits.
    fit_options : mapping, optional
        Further arguments of ``HCPF.fit``, such as ``user_exposure`` or ``layer``.
    **settings
        Further parameters of ``HCPF``. The element is chosen once, with the smallest K.

    Returns
    -------
    Consensus
        With ``model``, stability and held-out log-likelihood; ``hcpf.plots.consensus`` draws them.

    Examples
    --------
    >>> from hcpf import simulate
    >>> data = simulate(80, 40, n_components=2, density=0.3, random_state=0).interactions
    >>> found = consensus(data, 2, n_fits=3, element="gamma", max_iter=20)
    >>> found.model.n_components, len(found.model.posteriors)
    (2, 1)
    """
    sizes = sizes_to_try("consensus", n_components)
    whole("n_fits", n_fits, least=2)
    limit = number("max_distance", max_distance, 0.0, 1.5, "between 0 and 1.5")
    n_neighbors = max(1, round(number("neighbors", neighbors, 0.0, 1.0, "in [0, 1]") * n_fits))
    source, options = data_for_choice(data, fit_options)
    parts, pairs = split_for_choice("consensus", source, validation, random_state)
    chosen: dict[str, Any] = {"start": "noise", **settings, "random_state": random_state}
    found: list[tuple[float, Stability, FittedModel]] = []
    rows: list[ModelScores] = []
    for size in sizes:
        began = perf_counter()
        fits = _estimator(size, n_fits, chosen)
        fit_to(fits, parts, options=options)
        chosen |= _value_settings(fits.model_)
        members, stability = _cluster(fits.model_, n_neighbors, limit)
        start = _medians(fits.model_, members)
        refitted = _refitted(start, parts.train, parts.held_out, chosen)
        rows.append(fit_and_score(str(size), refitted, parts, None, on=pairs))
        found.append((perf_counter() - began, stability, start))
    candidates = [
        ConsensusCandidate(size, likelihood_of(row), seconds, deficit, stability, start)
        for size, row, deficit, (seconds, stability, start) in zip(
            sizes, rows, deficits(rows), found, strict=True
        )
    ]
    final = (parts.train, parts.held_out) if parts is source else (source, None)
    best = candidates[sizes.index(ComponentPath(candidates).best)]
    model = _refitted(best.start, *final, chosen)
    return Consensus(candidates, model, *final, chosen)


class ComponentAlignment(Table):
    """Components of two models that match, in the order of the first model.

    Attributes
    ----------
    first, second : ndarray of int
        The columns of the components among the factors of each model.
    cosine : ndarray of float
        Cosine of their shares of the items that both models have.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    cosine: FloatArray


def align(first: Any, second: Any, *, fits: tuple[int, int] = (0, 0)) -> ComponentAlignment:
    """Match the components of two models: the assignment with the highest sum of cosines.

    Parameters
    ----------
    first, second : HCPF, FittedModel or path
        Fitted models with items in common; the numbers of components may differ.
    fits : pair of int
        Which fit of each model.

    Examples
    --------
    >>> from hcpf import HCPF, simulate
    >>> data = simulate(80, 40, n_components=2, density=0.3, random_state=0).interactions
    >>> models = [HCPF(2, element="gamma", n_fits=1, random_state=seed) for seed in (0, 1)]
    >>> matched = align(*(model.fit(data) for model in models))
    >>> sorted(matched.second.tolist())
    [0, 1]
    """
    models = fitted_model(first), fitted_model(second)
    if np.shape(fits) != (2,):
        raise ParameterError(f"fits must be two integers, a fit of each model; got {fits!r}.")
    posteriors = [fit_at(model, fit) for model, fit in zip(models, fits, strict=True)]
    positions = models[1].item_index.known(models[0].items)
    common = np.flatnonzero(positions >= 0)
    if not len(common):
        raise InputError("align: the models have no items in common.")
    rows = common, positions[common]
    directions = [
        unit_rows(posterior.items.mean[at].T)
        for posterior, at in zip(posteriors, rows, strict=True)
    ]
    cosine = directions[0] @ directions[1].T
    mine, theirs = linear_sum_assignment(cosine, maximize=True)
    starts = [fit * model.n_components for model, fit in zip(models, fits, strict=True)]
    return ComponentAlignment(
        first=mine + starts[0], second=theirs + starts[1], cosine=cosine[mine, theirs]
    )


def _estimator(n_components: int, n_fits: int, settings: Mapping[str, Any]) -> HCPF:
    merged: dict[str, Any] = dict(settings)
    merged.update(n_fits=n_fits, combine="average")
    return HCPF(n_components, **merged)


def _value_settings(model: FittedModel) -> dict[str, Any]:
    """Return the fitted value model as parameters of HCPF, so that it is chosen only once."""
    form = model.value_model
    return {"element": form.element, "vary_by": form.vary_by, "hurdle": form.hurdle}


def _cluster(
    model: FittedModel, n_neighbors: int, max_distance: float
) -> tuple[list[NDArray[np.intp]], Stability]:
    """Return the components of each cluster, as columns of all fits, and how they agree."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    size = model.n_components
    by_component = np.vstack([shares(fit.items.mean).T for fit in model.posteriors])
    points = np.sqrt(by_component)
    kept = np.flatnonzero(_isolation(points, n_neighbors) <= max_distance)
    share = len(kept) / len(points)
    if len(kept) < size:
        logger.warning(
            "consensus: with %d components only %d of %d are near those of other fits, so all of "
            "them are clustered. Pass a larger max_distance, or fewer components.",
            size, len(kept), len(points),
        )  # fmt: skip
        kept = np.arange(len(points))
    clustering: Any = KMeans(size, random_state=0).set_params(n_init=_CLUSTERINGS)
    labels = clustering.fit_predict(points[kept])
    separate = 1 < len(set(labels.tolist())) < len(kept)
    silhouette = float(silhouette_score(points[kept], labels)) if separate else float("nan")
    stability = Stability(silhouette, _matched_cosine(by_component, size), share)
    return [kept[labels == k] for k in range(size)], stability


def _isolation(points: FloatArray, n_neighbors: int) -> FloatArray:
    """Return the mean distance of each component from its nearest neighbors."""
    squared = np.maximum(2.0 - 2.0 * (points @ points.T), 0.0)
    np.fill_diagonal(squared, np.inf)
    nearest = np.sort(squared, axis=1)[:, : min(n_neighbors, len(points) - 1)]
    return np.sqrt(nearest).mean(axis=1)


def _matched_cosine(by_component: FloatArray, size: int) -> float:
    """Return the mean cosine of matched components over all pairs of fits."""
    directions = unit_rows(by_component)
    cosine = directions @ directions.T
    means: list[float] = []
    for a, b in combinations(range(len(by_component) // size), 2):
        block = cosine[a * size : (a + 1) * size, b * size : (b + 1) * size]
        means.append(float(block[linear_sum_assignment(block, maximize=True)].mean()))
    return float(np.mean(means))


def _medians(model: FittedModel, members: list[NDArray[np.intp]]) -> FittedModel:
    """Return a model with one fit, whose components are the medians of the clusters.

    Components are scaled alike first: what is divided from the items of one multiplies its users.
    """
    totals = np.concatenate([fit.items.mean_sums for fit in model.posteriors])
    level = float(np.median(totals))
    scale = {Axis.ITEMS: level / totals, Axis.USERS: totals / level}
    axes = [_median_axis(model, axis, members, scale[axis]) for axis in Axis]
    return replace(model, posteriors=(Posterior(*axes),), history=())


def _median_axis(
    model: FittedModel, axis: Axis, members: list[NDArray[np.intp]], scale: FloatArray
) -> FactorPosterior:
    fits = [fit.axis(axis) for fit in model.posteriors]
    mean = np.hstack([fit.mean_ for fit in fits]) * scale.astype(np.float32)
    shape = np.hstack([fit.shape_ for fit in fits])
    medians = [
        np.column_stack([np.median(part[:, at], axis=1) for at in members])
        for part in (shape, mean)
    ]
    tiny = np.finfo(np.float32).tiny
    return replace(
        fits[0],
        shape_=medians[0].astype(np.float32),
        mean_=np.maximum(medians[1].astype(np.float32), tiny),
        activity_b=np.median([fit.activity_b for fit in fits], axis=0),
    )


def _refitted(
    start: FittedModel, data: Interactions, exclude: Csr | None, settings: Mapping[str, Any]
) -> FittedModel:
    """Return an ordinary model of one fit that was trained from the start given."""
    estimator = _estimator(start.n_components, 1, settings)
    estimator.model_ = start
    exposure = start.exposure
    return estimator.fit(
        data, exclude=exclude, user_exposure=exposure.users, item_exposure=exposure.items,
        warm_start=True,
    ).model_  # fmt: skip
