"""What "auto" means: the element for some values, the priors for some data, observed training."""

import logging
from typing import Any

import numpy as np

from hcpf._checks import number, one_of
from hcpf._types import Csr, FloatArray
from hcpf.core.layout import mostly_observed
from hcpf.core.priors import FACTOR_SHAPE, Priors, expected_count
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
from hcpf.elements.base import VARYING
from hcpf.errors import EstimationError, InputError, ParameterError

logger = logging.getLogger("hcpf")

OBSERVED_COUNT = -float(np.log(0.001))
"""E[n] when training on observed entries only: the paper assumes a share of 0.001 missing."""
MOST_OBSERVED_COUNT = 30.0
"""E[n] at most, where the normal needs more."""
OBSERVED_SHAPES = 30.0
"""Of priors="auto" on observed entries only: the sum of the shapes of a row's factors."""

TEMPERING_SCALE = 8.0
MOST_TEMPERING, MOST_TEMPERING_OF_SEVERAL = 4.0, 8.0
"""Of tempering="auto": what ``usual_tempering`` gives at most, to a single fit and to several."""

_ENOUGH = 1 << 18
"""Values that an element is estimated from: more would take memory and change little."""

_FURTHEST_SPREAD, _FURTHEST_MEAN = 1e15, 1e60
"""The largest standard deviation of a normal, and mean of others, that vary by both; the least are
their inverses."""

FAR_BEHIND = 0.5
"""Nats for each value: an element that far behind another does not catch up with factors."""

_FEW_NEGATIVE = 0.05
"""A share of values that are not above 0, below which they may be a mistake in the data."""

_DISCRETE: tuple[type[Element], ...] = (
    Binomial, Poisson, NegativeBinomial, ZeroTruncatedPoisson, Logarithmic, Geometric,
)  # fmt: skip
_POSITIVE: tuple[type[Element], ...] = (Gamma, InverseGaussian)


def choose_element(
    element: str | Element, values: FloatArray, train_on: str, priors: str | Priors = "auto"
) -> Element:
    """Resolve the ``element`` argument to an element with all parameters set.

    Parameters that were given stay as they are; those estimated are adapted to ``train_on``, as
    the paper does it with its own ``priors``.
    """
    if not isinstance(element, (str, Element)):
        raise ParameterError(
            f"element must be 'auto', a name, or an Element such as Gamma(); got {element!r}."
        )
    if train_on == "binary":
        if element != "auto" and not _is_degenerate(element):
            raise ParameterError("train_on='binary' sets every value to 1: leave element out.")
        return Degenerate()
    given: dict[str, Any] = {}
    if isinstance(element, Element):
        if element.once and train_on == "observed":
            raise ParameterError(
                "With once=True the rates say only which pairs are observed, and "
                "train_on='observed' says nothing about that: leave one of them out."
            )
        given = dict(element.parameters)
        if any(np.ndim(value) for value in given.values()):
            raise ParameterError(f"element takes single numbers as parameters, got {element!r}.")
        element.support.require(type(element).__name__, values)
        chosen = element.complete(_some(values))
        chosen.require(values)
        _require_usual_size(chosen)
    elif element == "auto":
        chosen = likeliest_element(values)
    else:
        get(element).support.require(get(element).__name__, values)
        chosen = get(element).estimate(_some(values))
    if train_on == "observed":
        chosen = _for_observed(chosen, observed_count(chosen, values, priors))
    return chosen.replace(**given)


def _require_usual_size(element: Element) -> None:
    """Refuse units in which float32 does not hold theta of a user times that of an item."""
    sharing = element.conjugate.sharing if element.conjugate is not None else None
    if element.per != "both" or sharing is None or not sharing.sign:
        return
    what, size, most = "mean", float(element.mean), _FURTHEST_MEAN
    if sharing.additive:
        what, size, most = "standard deviation", float(np.sqrt(element.variance)), _FURTHEST_SPREAD
    if not 1.0 / most < size < most:
        raise InputError(
            f"The {what} of the values is about {size:.0e}, but where a {element.name} varies by "
            f"both it has to lie between {1.0 / most:g} and {most:g}. Is one of them a mistake? "
            "Otherwise give them in another unit, or let only one side vary."
        )


def _some(values: FloatArray) -> FloatArray:
    """At most ``_ENOUGH`` of the values as float64, spread evenly, the extremes among them."""
    if len(values) > _ENOUGH:
        values = np.append(values[:: -(-len(values) // _ENOUGH)], [values.min(), values.max()])
    return np.asarray(values, dtype=np.float64)


def _is_degenerate(element: str | Element) -> bool:
    if isinstance(element, Element):
        return isinstance(element, Degenerate)
    return get(element) is Degenerate


def candidate_elements(values: FloatArray) -> list[Element]:
    """The applicable elements, estimated from the observed values, likeliest first.

    Those under which the values alone are less likely by ``FAR_BEHIND`` each are left out.
    Whole numbers are compared under discrete elements only: a density is not a probability.
    """
    if np.all(values == 1.0):
        return [Degenerate()]
    whole = bool(np.all(values == np.floor(values))) and values.min() >= 0
    kinds = _DISCRETE if whole else _POSITIVE if values.min() > 0 else (Normal,)
    if kinds == (Normal,) and (few := int(np.sum(values <= 0))) < _FEW_NEGATIVE * values.size:
        logger.warning(
            "The normal is the only element for these values, because %d of the %d %s not above 0; "
            "without such rows gamma and inverse Gaussian could be used.",
            few, values.size, "is" if few == 1 else "are",
        )  # fmt: skip
    sample = _some(values)
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
        raise InputError(
            f"No element can be estimated from these values (all equal {sample[0]:g}?): give one, "
            "with its parameters."
        )
    found.sort(key=lambda pair: -pair[0])
    least = found[0][0] - FAR_BEHIND * sample.size
    return [element for score, element in found if score >= least]


def ways_to_vary(element: Element) -> list[str]:
    """How theta of an element can vary."""
    if element.conjugate is None:
        return []
    return [per for per in VARYING if per != "both" or element.conjugate.sharing is not None]


def likeliest_element(values: FloatArray) -> Element:
    """The applicable element under which the observed values are likeliest."""
    return candidate_elements(values)[0]


def observed_count(element: Element, values: FloatArray, priors: str | Priors) -> float:
    """E[n] of a pair when training on observed entries only.

    That of the paper; or more for a normal, because a count of E[n] alone gives the values a
    variance of mean^2 / E[n], which should be no more than half of what they have.
    """
    if priors == "paper" or not isinstance(element, Normal):
        return OBSERVED_COUNT
    mean, variance = (float(f(values, dtype=np.float64)) for f in (np.mean, np.var))
    needed = 2.0 * mean**2 / max(variance, 1e-300)
    return float(np.clip(needed, OBSERVED_COUNT, MOST_OBSERVED_COUNT))


def _for_observed(element: Element, count: float) -> Element:
    """Adapt an estimated element to training on observed entries only.

    There the expected count of a pair is ``count`` rather than close to 1, so the paper keeps
    theta and divides kappa by it. Where kappa must stay whole this makes no sense: the binomial
    keeps its trials and divides the probability, and elements on 1, 2, ... cannot have more
    elements than the value, so they are left as they are.
    """
    if isinstance(element, Normal):
        return element.replace(mean=element.mean / count, variance=element.variance / count)
    if isinstance(element, Gamma):
        return element.replace(shape=element.shape / count)
    if isinstance(element, InverseGaussian):
        return element.replace(mean=element.mean / count, shape=element.shape / count**2)
    if isinstance(element, NegativeBinomial):
        return element.replace(successes=element.successes / count)
    if isinstance(element, Poisson):
        return element.replace(rate=element.rate / count)
    if isinstance(element, Binomial):
        return element.replace(probability=element.probability / count)
    return element


def choose_priors(
    priors: str | Priors,
    matrix: Csr,
    element: Element,
    n_excluded: int,
    n_components: int,
    train_on: str,
) -> Priors:
    """Resolve the ``priors`` argument, from the training part of the data only."""
    if isinstance(priors, Priors):
        return priors
    if not isinstance(priors, str) or priors not in ("auto", "paper"):
        raise ParameterError(f"priors must be 'auto', 'paper' or Priors(...); got {priors!r}.")
    cells = max(float(matrix.shape[0]) * matrix.shape[1] - n_excluded, float(matrix.nnz))
    density = matrix.nnz / cells
    expected = expected_count(density)
    shape = FACTOR_SHAPE
    if train_on == "observed":
        # Nothing but the prior tells apart what the few entries of a row leave open.
        shape = max(shape, OBSERVED_SHAPES / n_components)
        expected = observed_count(element, matrix.data, priors)
        mean = float(np.mean(matrix.data, dtype=np.float64))
        if element.support.lowest >= 1:
            # At most y elements make up a value of y.
            expected = mean if isinstance(element, Degenerate) else min(expected, 0.9 * mean)
    elif isinstance(element, Degenerate) and not element.once:
        expected = float(np.sum(matrix.data, dtype=np.float64)) / cells
    if priors == "paper":
        return Priors.paper_for(expected, n_components)
    return Priors.matched(expected, n_components, shape)


def check_tempering(value: Any) -> str | float:
    """Return a checked ``tempering``: "auto" or a positive number."""
    if isinstance(value, str):
        return one_of("tempering", value, ("auto",))
    return number("tempering", value, 1e-3, 1e3, "'auto' or a number from 0.001 to 1000")


def is_dense(matrix: Csr, excluded: Csr | None = None) -> bool:
    """Whether most pairs are observed, of those that are not excluded."""
    return mostly_observed(matrix.nnz, matrix.shape, 0 if excluded is None else excluded.nnz)


def usual_tempering(
    matrix: Csr, train_on: str, solver: str, n_fits: int, excluded: Csr | None = None
) -> float:
    """How often the data should count, which grows with the entries of a row on the longer side.

    Independent gammas overstate how uncertain the factors are, the more so the more entries share
    them; and fits that are averaged may each be surer. Where there are few entries, or where most
    pairs are observed, the posterior itself is best.
    """
    if train_on == "observed" or solver == "entry" or is_dense(matrix, excluded):
        return 1.0
    most = MOST_TEMPERING if n_fits == 1 else MOST_TEMPERING_OF_SEVERAL
    entries_per_row = matrix.nnz / max(matrix.shape)
    return float(np.clip(entries_per_row / TEMPERING_SCALE, 1.0, most))
