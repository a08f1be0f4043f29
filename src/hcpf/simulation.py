"""Simulation of data from the model: factors, observed pairs and their values."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hcpf._checks import flag, generator, whole
from hcpf._draw import draw_entries, draw_factors, draw_shards, pair_rates, solve_scale
from hcpf._progress import progress_bar
from hcpf._types import ArrayLike, FloatArray, IntArray
from hcpf.data.canonical import check_n_pairs
from hcpf.data.exposure import resolve_exposure
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.data.paper import paper_dataset
from hcpf.elements.base import Element
from hcpf.elements.domains import POSITIVE, UNIT_INTERVAL, Domain
from hcpf.elements.gamma import Gamma
from hcpf.errors import IncompleteElementError, InputError, ParameterError
from hcpf.io import as_mounted_path

_logger = logging.getLogger("hcpf")

_DEFAULT_SIZE = 1_000
_DEFAULT_DENSITY = 0.01
_MIN_PROGRESS_EVENTS = 5_000_000  # expected; fewer are drawn too fast for a progress bar

RandomState = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    r"""Simulated data with the factors, activities, element and priors behind them.

    Attributes
    ----------
    interactions : Interactions
        The observed entries, with float64 values and the ids 0, 1, 2, ... on both axes.
    user_factors, item_factors : ndarray
        :math:`s` (n_users, K) and :math:`v` (n_items, K).
    user_activity, item_activity : ndarray
        :math:`r` (n_users,) and :math:`w` (n_items,).
    element : Element
        The element distribution of the values.
    priors : dict
        The six prior parameters, by the argument names of ``simulate``; the activity means are
        those that give the requested density.
    counts : ndarray or None
        :math:`n_{ui}` per stored entry in the order of ``interactions.values``, if requested.
    user_exposure, item_exposure : ndarray or None
        The known multipliers of the rates of users and items, if given.
    """

    interactions: Interactions
    user_factors: FloatArray
    item_factors: FloatArray
    user_activity: FloatArray
    item_activity: FloatArray
    element: Element
    priors: dict[str, float]
    counts: IntArray | None = None
    user_exposure: FloatArray | None = None
    item_exposure: FloatArray | None = None

    def rate(self, users: ArrayLike, items: ArrayLike) -> FloatArray:
        r"""Return the Poisson rate :math:`e_u f_i \sum_k s_{uk} v_{ik}` of each pair.

        ``users`` and ``items`` broadcast against each other.
        """
        n_users, n_items = self.interactions.shape
        rows, columns = np.broadcast_arrays(
            _check_index("users", users, n_users), _check_index("items", items, n_items)
        )
        flat = pair_rates(self.user_factors, self.item_factors, rows.ravel(), columns.ravel())
        for exposure, chosen in ((self.user_exposure, rows), (self.item_exposure, columns)):
            if exposure is not None:
                flat *= exposure[chosen.ravel()]
        return flat.reshape(rows.shape)

    def __repr__(self) -> str:
        components = self.user_factors.shape[1]
        return f"Simulation({self.interactions!r}, {components} components, {self.element!r})"


def simulate(
    n_users: int | None = None,
    n_items: int | None = None,
    *,
    n_components: int = 10,
    element: Element | None = None,
    hurdle: bool = False,
    density: float | Literal["auto"] | None = "auto",
    like: str | None = None,
    scale: float = 1.0,
    user_shape: float = 0.3,
    user_activity_shape: float = 3.0,
    user_activity_mean: float = 1.0,
    item_shape: float = 0.3,
    item_activity_shape: float = 2.0,
    item_activity_mean: float = 1.0,
    user_exposure: Any = None,
    item_exposure: Any = None,
    keep_counts: bool = False,
    shards: str | Path | None = None,
    n_shards: int = 1,
    random_state: RandomState = None,
    progress: bool | None = None,
) -> Simulation:
    r"""Draw a data set from the model, exactly and without visiting every pair.

    The process is that of the paper's section 4: with shapes and rates,

    .. math::
        r_u \sim \mathrm{Gamma}(\rho, \rho/\varrho),\quad
        s_{uk} \sim \mathrm{Gamma}(\eta, r_u),\quad
        n_{ui} \sim \mathrm{Poisson}(\textstyle e_u f_i \sum_k s_{uk} v_{ik}),\quad
        y_{ui} \sim p_\Psi(\theta, n_{ui}\kappa),

    the same for items with :math:`w, v, \omega, \varpi, \zeta`. The exposures e and f are 1 unless
    they are given. Pairs with :math:`n_{ui} \ge 1` are observed, whatever their value.

    Parameters
    ----------
    n_users, n_items : int, optional
        The size; by default that of ``like``, or 1,000.
    n_components : int
        The number of components K.
    element : Element, optional
        The distribution of one element, complete and with single numbers as parameters; by
        default that of ``like``, or Gamma(2, 1).
    hurdle : bool
        Whether a value is a single element instead of a sum of :math:`n_{ui}` elements.
    density : float, "auto" or None
        The expected share of observed pairs, strictly between 0 and 1; "auto" is that of
        ``like``, or 0.01. Both activity means are divided by the same factor, found for the
        factors drawn: exactly up to a million pairs, and above that to within about 0.3%, or 2%
        with the heavy tails of activity shapes below 1. None keeps the priors as given.
    like : str, optional
        One of the paper's twelve data sets, such as "netflix": sizes, density and element that
        are not given are taken from it.
    scale : float
        Multiplies the numbers of rows and columns of ``like`` (not sizes given here); the
        density stays, so 0.1 leaves a hundredth of the entries.
    user_shape, user_activity_shape, user_activity_mean : float
        :math:`\eta, \rho, \varrho`.
    item_shape, item_activity_shape, item_activity_mean : float
        :math:`\zeta, \omega, \varpi`.
    user_exposure, item_exposure : number or array, optional
        Known multipliers of the rates of users and items; by default 1.
    keep_counts : bool
        Whether to keep the :math:`n_{ui}` of the observed entries.
    shards : path, optional
        A folder to write the entries to as they are drawn, instead of keeping them in memory. Then
        ``interactions`` are `Shards`, the values are rounded to float32, and memory is bounded by
        the factors: 8 bytes per component of each user and item.
    n_shards : int
        The number of shards in that folder.
    random_state : int, Generator, SeedSequence or None
        The same seed gives the same data.
    progress : bool, optional
        Whether to show a progress bar; by default only for long draws in a terminal.

    Returns
    -------
    Simulation
        The observed entries, the factors and activities behind them, and the priors.

    Examples
    --------
    >>> from hcpf.elements import Poisson
    >>> drawn = simulate(200, 100, density=0.05, element=Poisson(3.0), random_state=0)
    >>> drawn.interactions.shape, drawn.user_factors.shape
    ((200, 100), (200, 10))
    """
    began = time.perf_counter()
    n_shards = whole("n_shards", n_shards)
    if shards is not None and flag("keep_counts", keep_counts):
        raise InputError("keep_counts=True requires the entries in memory. Remove it, or shards.")
    plan = _make_plan(n_users, n_items, density, element, like, scale)
    size_k, hurdle = whole("n_components", n_components), flag("hurdle", hurdle)
    given = {
        "user_shape": user_shape,
        "user_activity_shape": user_activity_shape,
        "user_activity_mean": user_activity_mean,
        "item_shape": item_shape,
        "item_activity_shape": item_activity_shape,
        "item_activity_mean": item_activity_mean,
    }
    priors = {name: _check_number(name, value, POSITIVE) for name, value in given.items()}
    sizes = IdIndex("users", np.arange(plan.n_users)), IdIndex("items", np.arange(plan.n_items))
    e, f = (
        resolve_exposure(x, i) for x, i in zip((user_exposure, item_exposure), sizes, strict=True)
    )
    rng = generator(random_state)
    r, s = draw_factors("user", plan.n_users, size_k, priors, rng)
    w, v = draw_factors("item", plan.n_items, size_k, priors, rng)
    if plan.density is not None:
        half = solve_scale(_exposed(s, e), _exposed(v, f), plan.density, rng) ** 0.5
        for axis, activity, factors in (("user", r, s), ("item", w, v)):
            priors[f"{axis}_activity_mean"] /= half
            activity /= half
            factors *= half
    exposed = _exposed(s, e), _exposed(v, f)
    events = float(exposed[0].sum(axis=0) @ exposed[1].sum(axis=0))
    with progress_bar(
        progress, "Simulating", plan.n_users, default=events > _MIN_PROGRESS_EVENTS
    ) as advance:
        if shards is None:
            interactions, counts = draw_entries(
                *exposed, plan.element, rng, hurdle=hurdle, keep_counts=keep_counts, advance=advance
            )
        else:
            folder, counts = as_mounted_path("shards", shards), None
            interactions = draw_shards(
                folder, n_shards, *exposed, plan.element, rng, hurdle=hurdle, advance=advance
            )
    _logger.info("simulated %r in %.1f s", interactions, time.perf_counter() - began)
    return Simulation(interactions, s, v, r, w, plan.element, priors, counts, e, f)


def _exposed(factors: FloatArray, exposure: FloatArray | None) -> FloatArray:
    """Return factors times the exposures of their rows."""
    return factors if exposure is None else factors * exposure[:, None]


@dataclass(frozen=True)
class _Plan:
    n_users: int
    n_items: int
    density: float | None
    element: Element


def _make_plan(
    n_users: int | None,
    n_items: int | None,
    density: float | str | None,
    element: Element | None,
    like: str | None,
    scale: float,
) -> _Plan:
    """Check the sizes, density and element; fill in defaults."""
    plan = _Plan(_DEFAULT_SIZE, _DEFAULT_SIZE, _DEFAULT_DENSITY, Gamma(2.0, 1.0))
    factor = _check_number("scale", scale, POSITIVE)
    if like is not None:
        model = paper_dataset(like)
        rows, columns = (max(1, round(size * factor)) for size in (model.rows, model.cols))
        plan = _Plan(rows, columns, model.density, model.element)
    elif factor != 1.0:
        raise InputError(
            f"scale={factor:g} requires like=, whose size it changes. Pass like= or remove scale=."
        )
    rows = plan.n_users if n_users is None else whole("n_users", n_users)
    columns = plan.n_items if n_items is None else whole("n_items", n_items)
    check_n_pairs(rows, columns)
    share = plan.density if isinstance(density, str) and density == "auto" else density
    return _Plan(
        rows,
        columns,
        None if share is None else _check_number("density", share, UNIT_INTERVAL),
        plan.element if element is None else _check_element(element),
    )


def _check_number(name: str, value: Any, domain: Domain) -> float:
    number = domain.check("simulate", name, value)
    if not isinstance(number, float):
        raise ParameterError(f"simulate: {name} must be a single number, got {value!r}.")
    return number


def _check_element(element: Any) -> Element:
    if not isinstance(element, Element):
        raise InputError(
            f"simulate: element must be an Element such as Gamma(shape=2, rate=1), got {element!r}."
        )
    if not element.is_complete:
        raise IncompleteElementError(
            f"simulate: {element!r} has parameters that are not set. Pass all of them."
        )
    if any(np.ndim(value) for value in element.parameters.values()):
        raise ParameterError(
            f"simulate: the parameters of element must be single numbers, got {element!r}."
        )
    return element


def _check_index(name: str, index: ArrayLike, size: int) -> IntArray:
    array = np.asarray(index)
    if array.dtype.kind not in "iu" or np.any((array < 0) | (array >= size)):
        raise InputError(f"rate: {name} must be integers from 0 to {size - 1}.")
    return array
