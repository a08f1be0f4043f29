"""Resolve what users give to numbers: the value model, the priors and the tempering."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL
from hcpf.core.priors import FACTOR_SHAPE, Priors, expected_count
from hcpf.core.shard import Values, sum_of_values
from hcpf.core.value_model import ValueModel
from hcpf.data.sampling import row_of
from hcpf.elements import (
    Binomial,
    Degenerate,
    Element,
    Gamma,
    Geometric,
    InverseGaussian,
    Logarithmic,
    NegativeBinomial,
    Normal,
    Poisson,
    ZeroTruncatedPoisson,
    get,
)
from hcpf.elements.registry import CHOSEN_BY_DATA
from hcpf.errors import EstimationError, InputError, ParameterError
from hcpf.training.element_update import MAX_COUNT_RATIO, refit_at_rates
from hcpf.training.held_out import MAX_ESTIMATION_VALUES, TrainingSplit
from hcpf.training.settings import FitPlan, PriorChoice

logger = logging.getLogger("hcpf")

OBSERVED_COUNT = -float(np.log(0.001))
"""E[n] when training on observed entries only: the paper assumes a share of 0.001 missing."""
MAX_OBSERVED_COUNT = 30.0
"""E[n] at most, where the normal needs more."""
OBSERVED_SHAPES = 30.0
"""Of priors="auto" on observed entries only: the sum of the shapes of a row's factors."""

TEMPERING_SCALE = 8.0
MAX_TEMPERING, MAX_TEMPERING_OF_SEVERAL = 4.0, 8.0
"""The highest that ``formula_tempering`` gives: for a single fit, and for several."""

_COUNT_SAMPLE = 1 << 14  # entries that an integer parameter is estimated from at the start

_MAX_CROSSED_DEVIATION, _MAX_CROSSED_MEAN = 1e15, 1e60
"""The largest standard deviation of a normal, and mean of other elements, with a mean per user and
item; the least are their inverses."""

FAR_BEHIND = 0.5
"""Nats per value: an element that far behind another does not catch up with factors."""

_FEW_NEGATIVE = 0.05
"""A share of values that are not above 0, below which they may be a mistake in the data."""

_DISCRETE: tuple[type[Element], ...] = (
    Binomial, Poisson, NegativeBinomial, ZeroTruncatedPoisson, Logarithmic, Geometric,
)  # fmt: skip
_POSITIVE: tuple[type[Element], ...] = (Gamma, InverseGaussian)


def resolve_value_model(plan: FitPlan, split: TrainingSplit) -> ValueModel:
    """Return the value model of a plan for the training values, checked on the held-out ones.

    Held-out values do not take part in estimation. Where a value is a single element, they only
    raise an integer parameter, such as the trials of a binomial, to the largest of them.
    """

    def choose(element: str | Element) -> ValueModel:
        return choose_value_model(
            element, split.values,
            vary_by=plan.vary_by, hurdle=plan.hurdle, train_on=plan.train_on, priors=plan.priors,
        )  # fmt: skip

    value_model = choose(plan.element)
    if split.validation is not None:
        largest, given = float(split.validation.values.max()), _given_parameters(plan.element)
        name = value_model.element.count_parameter
        is_beyond = plan.hurdle and largest > float(value_model.element.highest)
        if is_beyond and name is not None and name not in given:
            kind = type(value_model.element)
            value_model = choose(kind(**given, **{name: float(np.ceil(largest))}))
        value_model.require(split.validation.values, " (in validation)")
    return _with_count_of_sums(value_model, plan, split)


def _given_parameters(element: str | Element) -> dict[str, Any]:
    return dict(element.parameters) if isinstance(element, Element) else {}


def _with_count_of_sums(value_model: ValueModel, plan: FitPlan, split: TrainingSplit) -> ValueModel:
    """Estimate an integer parameter again if the values alone put it at the end of its range.

    Sums of a binomial's elements are as dispersed as a Poisson's, which maximum likelihood takes
    for endlessly many trials. At the rates of popularity they are told apart.
    """
    name = value_model.element.count_parameter
    if name is None or value_model.hurdle or value_model.train_on != "full":
        return value_model
    is_given = name in _given_parameters(plan.element)
    matrix, most = split.training, MAX_COUNT_RATIO * max(float(split.values.max(initial=1.0)), 1.0)
    if is_given or not plan.learn_element or value_model.element.parameters[name] < most:
        return value_model
    entries = np.unique(np.linspace(0, matrix.nnz - 1, _COUNT_SAMPLE).astype(np.int64))
    activity = np.diff(matrix.indptr)[row_of(matrix, entries)]
    popularity = Values(matrix, None, LOCAL).degrees(Axis.ITEMS)[matrix.indices[entries]]
    rate = activity * (popularity / matrix.nnz)
    shared = value_model.replace(vary_by=None)
    element = refit_at_rates(shared, matrix.data[entries], rate, steps=2)
    return value_model.replace(element=element)


def choose_value_model(
    element: str | Element,
    values: FloatArray,
    *,
    vary_by: str | None = None,
    hurdle: bool = False,
    train_on: str = "full",
    priors: PriorChoice = "auto",
) -> ValueModel:
    """Resolve what users give to a value model with all parameters of the element set.

    Parameters that were given stay as they are; those estimated are adapted to ``train_on``, as
    the paper does it with its own ``priors``.
    """
    if not isinstance(element, (str, Element)):
        raise ParameterError(
            "element must be 'auto', 'quick', a name, or an Element such as Gamma(); got "
            f"{element!r}."
        )
    if element in CHOSEN_BY_DATA:
        given, element = dict[str, Any](), most_likely_element(values)
    else:
        element = get(element)() if isinstance(element, str) else element
        given = _given_parameters(element)
    if any(np.ndim(value) for value in given.values()):
        raise ParameterError(f"element takes single numbers as parameters, got {element!r}.")
    ValueModel(element, vary_by, hurdle, train_on)  # checked before anything is estimated
    element.require(values)
    chosen = ValueModel(element.complete(_estimation_sample(values)), vary_by, hurdle, train_on)
    chosen.require(values)
    _require_float32_range(chosen)
    if train_on == "observed":
        if priors == "paper" and element.kappa_note:
            logger.warning(
                "%s: the paper divides kappa by E[n] = %.3f for observed entries only, but %s.",
                type(element).__name__, OBSERVED_COUNT, element.kappa_note,
            )  # fmt: skip
        count = observed_count(chosen.element, values, priors)
        scaled = chosen.element.scaled_for_observed(count).replace(**given)
        chosen = chosen.replace(element=scaled)
    return chosen


def _require_float32_range(value_model: ValueModel) -> None:
    """Refuse units in which float32 does not hold theta of a user times that of an item."""
    element, sharing = value_model.element, value_model.sharing
    if sharing is None or not sharing.sign:
        return
    what, size, most = "mean", float(element.mean), _MAX_CROSSED_MEAN
    if sharing.additive:
        what, size = "standard deviation", float(np.sqrt(element.variance))
        most = _MAX_CROSSED_DEVIATION
    if not 1.0 / most < size < most:
        raise InputError(
            f"The {what} of the values is about {size:.0e}, but vary_by='both' with "
            f"{type(element).__name__} requires it to lie between {1.0 / most:g} and {most:g}. "
            "Remove wrong values, change the unit, or use vary_by='user' or 'item'."
        )


def _estimation_sample(values: FloatArray) -> FloatArray:
    """Return evenly spread values as float64, the extremes among them."""
    # Three more values are the extremes of a sample that was taken before.
    step = -(-(len(values) - 3) // MAX_ESTIMATION_VALUES)
    if step > 1:
        values = np.append(values[::step], [values.min(), values.max()])
    return np.asarray(values, dtype=np.float64)


def candidate_elements(values: FloatArray) -> list[Element]:
    """Return the applicable elements, estimated from the observed values, most likely first.

    Those under which the values alone are less likely by ``FAR_BEHIND`` each are dropped.
    Integers are compared under discrete elements only: a density is not a probability.
    """
    if np.all(values == 1.0):
        return [Degenerate()]
    whole = bool(np.all(values == np.floor(values))) and values.min() >= 0
    kinds = _DISCRETE if whole else _POSITIVE if values.min() > 0 else (Normal,)
    if kinds == (Normal,) and (few := int(np.sum(values <= 0))) < _FEW_NEGATIVE * values.size:
        logger.warning(
            "The normal is the only element for these values, because %s of the %s %s not above 0; "
            "without such rows, which returns='drop' leaves out when a table is read, gamma and "
            "inverse Gaussian could be used.",
            f"{few:,}", f"{values.size:,}", "is" if few == 1 else "are",
        )  # fmt: skip
    sample = _estimation_sample(values)
    distinct, counts = np.unique(sample, return_counts=True)
    found: list[tuple[float, Element]] = []
    for kind in kinds:
        if not np.all(kind.support.contains(distinct)):
            continue
        try:
            element = kind.estimate(sample)
        except EstimationError:
            continue
        found.append((float(counts @ element.log_density(distinct)), element))
    if not found:
        reason = f", which are all {distinct[0]:g}" if len(distinct) == 1 else ""
        raise InputError(
            f"No element can be estimated from these values{reason}. Pass element= with all its "
            "parameters."
        )
    found.sort(key=lambda pair: -pair[0])
    least = found[0][0] - FAR_BEHIND * sample.size
    return [element for score, element in found if score >= least]


def most_likely_element(values: FloatArray) -> Element:
    """Return the applicable element under which the observed values are most likely."""
    return candidate_elements(values)[0]


def observed_count(element: Element, values: FloatArray, priors: PriorChoice) -> float:
    """Return E[n] of a pair when training on observed entries only.

    That of the paper, or as many elements as the values need.
    """
    if priors == "paper":
        return OBSERVED_COUNT
    needed = element.min_observed_count(values)
    return float(np.clip(needed, OBSERVED_COUNT, MAX_OBSERVED_COUNT))


def resolve_priors(
    priors: PriorChoice, split: TrainingSplit, value_model: ValueModel, n_components: int
) -> Priors:
    """Resolve the ``priors`` argument, from the training part of the data only."""
    matrix = split.training
    if isinstance(priors, Priors):
        return priors
    if isinstance(priors, Mapping):
        return resolve_priors("auto", split, value_model, n_components).with_numbers(priors)
    if not isinstance(priors, str) or priors not in ("auto", "paper"):
        raise ParameterError(
            "priors must be 'auto', 'paper', Priors(...) or a dict of numbers that replace those "
            f"of 'auto', such as {{'item_shape': 1.0}}; got {priors!r}."
        )
    n_pairs = max(float(matrix.shape[0]) * matrix.shape[1] - split.n_excluded, float(matrix.nnz))
    density = matrix.nnz / n_pairs
    expected = expected_count(density)
    element, shape = value_model.element, FACTOR_SHAPE
    if value_model.train_on == "observed":
        # Without missing pairs, only the prior constrains rows with few entries.
        shape = max(shape, OBSERVED_SHAPES / n_components)
        expected = observed_count(element, split.values, priors)
        mean = float(np.mean(split.values, dtype=np.float64))
        if element.support.lowest >= 1:
            # At most y elements make up a value of y.
            expected = mean if element.counts_known else min(expected, 0.9 * mean)
    elif element.counts_known and not value_model.hurdle:
        expected = sum_of_values(matrix) / n_pairs
    if priors == "paper":
        found = Priors.paper_for(expected, n_components)
    else:
        found = Priors.matched(expected, n_components, shape)
    return found.for_exposure(*(split.exposure.mean(axis) for axis in Axis))


def formula_tempering(plan: FitPlan, split: TrainingSplit) -> float:
    """Return the first tempering that competes with 1, from the sizes of the data.

    It grows with the entries per row of the longer axis, and further where fits are averaged. Where
    rows have few entries or most pairs are observed, and for the paper's recipe, it is 1: the
    ordinary posterior. It is a guess; ``training.auto`` decides by held-out likelihood.
    """
    matrix = split.training
    if plan.priors == "paper" or plan.train_on == "observed" or plan.solver.name == "algorithm1":
        return 1.0
    if split.is_dense:
        return 1.0
    highest = MAX_TEMPERING if plan.n_fits == 1 else MAX_TEMPERING_OF_SEVERAL
    entries_per_row = matrix.nnz / max(matrix.shape)
    return float(np.clip(entries_per_row / TEMPERING_SCALE, 1.0, highest))
