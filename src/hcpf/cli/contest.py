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
    from hcpf.evaluate import Split


@dataclass(frozen=True, eq=False)
class Terms:
    """Log-likelihoods pair by pair, so that two models can be compared on each."""

    observed: "FloatArray"
    conditional: "FloatArray"
    missing: "FloatArray"


@dataclass(frozen=True, eq=False)
class Entrant:
    """A model with its scores; or why it has none."""

    name: str
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


def best_first(entrants: list[Entrant]) -> list[Entrant]:
    """By log-likelihood, those that failed last."""

    def score(one: Entrant) -> float:
        return -inf if one.log_likelihood is None else one.log_likelihood

    return sorted(entrants, key=score, reverse=True)


def candidates(
    values: "FloatArray", only: list[str] | None, components: int, settings: dict[str, Any]
) -> dict[str, tuple[str, Any]]:
    """What can be said of such values: (what it is, model) by name."""
    import numpy as np

    from hcpf.elements import ALL, Degenerate, get
    from hcpf.estimator import HCPF
    from hcpf.evaluate import HPF, BinaryHPF, Popularity

    wanted = None if not only else {get(name) for name in only}
    found: dict[str, tuple[str, Any]] = {}
    constant = bool(np.ptp(values) == 0)
    for element in ALL if not constant else ():
        fits = element is not Degenerate and bool(np.all(element.support.contains(values)))
        if fits and (wanted is None or element in wanted):
            model = HCPF(components, element=element.name, progress=False, **settings)
            found[element.name] = ("HCPF", model)
        elif wanted is not None and element in wanted and element is not Degenerate:
            raise InputError(
                f"--only {element.name}: it takes {element.support.description}, "
                "and some values are not."
            )
    settings = {**settings, "progress": False}
    if bool(np.all(Degenerate.support.contains(values))):
        found["HPF"] = ("Poisson factorization", HPF(components, **settings))
    if not constant:
        found["binary HPF"] = ("pattern, and one element", BinaryHPF(components, **settings))
    found["popularity"] = ("popular items, and one element", Popularity())
    return found


def enter(name: str, about: str, model: Any, parts: "Split", top: int, whole: bool) -> Entrant:
    """Fit a model and score it; an error is a result too."""
    from hcpf.evaluate import ranking, scores

    try:
        seconds = fit_to(model, parts)
        found = scores(model, parts)
        terms = pair_terms(model, parts, whole)
        ranked = ranking(model, parts, top)
    except HcpfError as error:
        return Entrant(name, about, error=one_line(error))
    inner = getattr(model, "model_", model)
    return Entrant(
        name,
        about,
        element=repr(model.element_),
        log_likelihood=_total(terms, parts),
        conditional=float(terms.conditional.mean()),
        auc=None if found.auc is None else found.auc.value,
        ndcg=ranked.ndcg.value,
        rmse=found.rmse.value,
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
    conditional, log_prob = np.empty(len(test)), np.empty(len(test))
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
    rate = model.rate(train.users[test.missing_users], train.items[test.missing_items])
    return Terms(conditional + log_prob, conditional, -rate)


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
