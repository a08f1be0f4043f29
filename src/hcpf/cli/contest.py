"""Models side by side on the same held-out pairs, like with like: probability with probability."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from hcpf.cli.errors import one_line
from hcpf.cli.evaluate import fit_to
from hcpf.errors import HcpfError, InputError

if TYPE_CHECKING:
    from hcpf._types import FloatArray
    from hcpf.elements import Element
    from hcpf.evaluate import Split

SHARED = "shared"
_ONCE = " once"
_LIKELIEST = 2  # elements that are tried once for each value, too


@dataclass(frozen=True, eq=False)
class Terms:
    """Log-likelihoods pair by pair, so that two models can be compared on each."""

    observed: "FloatArray"
    conditional: "FloatArray"
    missing: "FloatArray"
    rate: "FloatArray"
    """Of the observed pairs ..."""
    residual: "FloatArray"
    """... and how far their expected values are from the true ones."""


@dataclass(frozen=True, eq=False)
class Entrant:
    """A model with its scores; or why it has none."""

    model: str
    per: str | None
    about: str
    element: str = ""
    log_likelihood: float | None = None
    conditional: float | None = None
    auc: float | None = None
    ndcg: float | None = None
    rmse: float | None = None
    passes: int | None = None
    seconds: float | None = None
    error: str = ""
    terms: Terms | None = None

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return full_name(self.model, self.per)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model that is not fitted yet: its element or kind, and by what theta varies."""

    model: str
    per: str | None
    about: str
    estimator: Any

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return full_name(self.model, self.per)


def full_name(model: str, per: str | None) -> str:
    """The model and by what it varies.

    >>> full_name("gamma", "item"), full_name("gamma", None)
    ('gamma per item', 'gamma')
    """
    return model if per is None else f"{model} per {per}"


def element_of(model: str) -> str:
    """The element of a model, by name.

    >>> element_of("binomial once")
    'binomial'
    """
    return model.removesuffix(_ONCE)


def best_first(entrants: list[Entrant]) -> list[Entrant]:
    """By log-likelihood, those that failed last."""

    def score(one: Entrant) -> float:
        return -inf if one.log_likelihood is None else one.log_likelihood

    return sorted(entrants, key=score, reverse=True)


def candidates(
    values: "FloatArray",
    only: list[str] | None,
    ways: list[str],
    components: int,
    settings: dict[str, Any],
) -> list[Candidate]:
    """What can be said of such values, the elements before the baselines.

    ``ways`` are those in which theta may vary, "shared" among them.
    """
    import numpy as np

    from hcpf.elements import Degenerate
    from hcpf.estimator import HCPF
    from hcpf.evaluate import HPF, BinaryHPF, Popularity
    from hcpf.training.recipes import ways_to_vary

    settings = {**settings, "progress": False}
    found: list[Candidate] = []
    for element in _elements(values, only):
        for per in (None, *ways_to_vary(element)):
            if (per or SHARED) in ways:
                model = HCPF(components, element=element.varying(per), **settings)
                name = element.name + (_ONCE if element.once else "")
                found.append(Candidate(name, per, "HCPF", model))
    if bool(np.all(Degenerate.support.contains(values))):
        about, model = "Poisson factorization", HPF(components, **settings)
        found.append(Candidate("HPF", None, about, model))
    if np.ptp(values) > 0:
        about, model = "pattern, and one element", BinaryHPF(components, **settings)
        found.append(Candidate("binary HPF", None, about, model))
    found.append(Candidate("popularity", None, "popular items, and one element", Popularity()))
    return found


def _elements(values: "FloatArray", only: list[str] | None) -> "list[Element]":
    """The elements that can give such values, and were asked for.

    First as sums, then once for each value: those asked for, or the likeliest for the values alone.
    """
    from hcpf.training.recipes import candidate_elements

    likeliest = kinds = _kinds(values, only)
    if not only and (kinds or values[0] == 1.0):
        likeliest = [type(element) for element in candidate_elements(values)[:_LIKELIEST]]
    return [kind() for kind in kinds] + [kind(once=True) for kind in likeliest]


def _kinds(values: "FloatArray", only: list[str] | None) -> "list[type[Element]]":
    import numpy as np

    from hcpf.elements import ALL, Degenerate, get

    wanted = None if not only else {get(name) for name in only}
    if np.ptp(values) == 0:
        return []
    found: list[type[Element]] = []
    for kind in ALL:
        if kind is Degenerate or (wanted is not None and kind not in wanted):
            continue
        if bool(np.all(kind.support.contains(values))):
            found.append(kind)
        elif wanted is not None:
            raise InputError(
                f"--only {kind.name}: it takes {kind.support.description}, and some values are not."
            )
    return found


def enter(candidate: Candidate, parts: "Split", top: int, whole: bool) -> Entrant:
    """Fit a model and score it; an error is a result too."""
    import numpy as np

    from hcpf.evaluate import ranking
    from hcpf.evaluate.scoring import auc

    model = candidate.estimator
    who: dict[str, Any] = {"model": candidate.model, "per": candidate.per, "about": candidate.about}
    try:
        seconds = fit_to(model, parts)
        terms = pair_terms(model, parts, whole)
        ranked = ranking(model, parts, top)
    except HcpfError as error:
        return Entrant(**who, error=one_line(error))
    inner = getattr(model, "model_", model)
    return Entrant(
        **who,
        element=repr(model.element_),
        log_likelihood=_total(terms, parts),
        conditional=float(terms.conditional.mean()),
        auc=auc(terms.rate, -terms.missing).value,
        ndcg=ranked.ndcg.value,
        rmse=float(np.sqrt(np.mean(np.square(terms.residual)))),
        passes=getattr(inner, "n_iter_", None),
        seconds=seconds,
        terms=terms,
    )


def pair_terms(model: Any, parts: "Split", whole: bool) -> Terms:
    """Log-likelihoods of the test pairs.

    A density at a whole number is no probability: for whole-number data a continuous element
    counts by its mass between y - 1/2 and y + 1/2.
    """
    import numpy as np

    train, test = parts.train, parts.test
    conditional, log_prob, rate, residual = np.empty((4, len(test)))
    for part in _blocks(len(test)):
        ids = train.users[test.users[part]], train.items[test.items[part]]
        predictive, values = model.predictive(*ids), test.values[part]
        response = predictive.observed
        if whole and not response.element.support.discrete:
            mass = response.cdf(values + 0.5) - response.cdf(values - 0.5)
            conditional[part] = np.log(np.maximum(mass, 1e-300))
        else:
            conditional[part] = response.log_density(values)
        log_prob[part] = np.log(np.maximum(predictive.prob_observed, 1e-300))
        rate[part], residual[part] = predictive.rate, response.mean - values
    missing = model.rate(train.users[test.missing_users], train.items[test.missing_items])
    return Terms(conditional + log_prob, conditional, -missing, rate, residual)


def _blocks(size: int) -> Iterator[slice]:
    step = 1 << 18
    return (slice(first, first + step) for first in range(0, size, step))


def _weights(parts: "Split") -> tuple[float, float]:
    """What a mean over observed, and over missing, test pairs counts per thousand entries."""
    n_missing = parts.test.share * parts.n_missing
    entries = n_missing + len(parts.test)
    return 1000.0 * len(parts.test) / entries, 1000.0 * n_missing / entries


def _total(terms: Terms, parts: "Split") -> float:
    observed, missing = _weights(parts)
    lost = float(terms.missing.mean()) if terms.missing.size else 0.0
    return observed * float(terms.observed.mean()) + missing * lost


def ahead(first: Terms, second: Terms, parts: "Split") -> tuple[float, float]:
    """By how much the first log-likelihood is higher, and the standard error of that."""
    import numpy as np

    from hcpf.evaluate.score import mean_score

    weights = _weights(parts)
    observed = mean_score(first.observed - second.observed)
    if not first.missing.size:
        return weights[0] * observed.value, weights[0] * observed.error
    missing = mean_score(first.missing - second.missing)
    value = weights[0] * observed.value + weights[1] * missing.value
    return value, float(np.hypot(weights[0] * observed.error, weights[1] * missing.error))
