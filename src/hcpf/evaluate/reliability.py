"""Calibration of predicted probabilities and value intervals on held-out pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hcpf._checks import generator, one_of, whole
from hcpf._types import FloatArray
from hcpf.data.held_out import HeldOutPairs
from hcpf.errors import InputError
from hcpf.evaluate.scoring import Model, Score, blocks, explains_missing, mean_score
from hcpf.evaluate.splits import Split

LEVELS = (0.5, 0.8, 0.9, 0.95)
POPULATIONS = ("whole", "training")
_MAX_VALUES = 50_000  # the standard error of a share is then below a quarter of a percent
_PIT_BINS = 20


@dataclass(frozen=True, eq=False)
class Reliability:
    """Reliability curve: bins of the predicted probability, lowest first.

    Attributes
    ----------
    predicted, observed, error : ndarray
        Mean probability of the bin, the share of its pairs that are observed, and the standard
        error of that share; missing pairs are weighted to the sparsity of the data.
    weight : ndarray
        Share of all pairs that the bin represents; sums to 1.
    count : ndarray
        Number of held-out pairs in the bin.
    """

    predicted: FloatArray
    observed: FloatArray
    error: FloatArray
    weight: FloatArray
    count: NDArray[np.int64]

    @property
    def expected_error(self) -> float:
        r"""Expected calibration error, :math:`\sum_b w_b |\bar p_b - \bar o_b|`."""
        return float(self.weight @ np.abs(self.predicted - self.observed))


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    r"""Calibration of predicted probabilities and value intervals on held-out pairs.

    Attributes
    ----------
    reliability : Reliability or None
        Of the probability that a pair is observed; None for a model trained on observed pairs only.
    coverage : dict of float to Score
        By level, the share of values inside the model's interval of that level. Intervals of a
        discrete value contain at least the level, often more.
    pit_coverage : dict of float to Score
        The same by the randomized transform, which gives the level itself if the model is right.
    pit_histogram : ndarray
        Density of the probability integral transforms of the held-out values in 20 equal bins of
        [0, 1], randomized where values are discrete; all 1 if the value model is right.
    pit_distance : float
        Kolmogorov's distance of the transforms from uniform, :math:`\sup_x |F(x) - x|`.
    pit : ndarray or None
        The transforms themselves; None where an Evaluation was loaded from a file.
    """

    reliability: Reliability | None
    coverage: dict[float, Score]
    pit_coverage: dict[float, Score]
    pit_histogram: FloatArray
    pit_distance: float
    pit: FloatArray | None = None

    @property
    def expected_error(self) -> float | None:
        """Expected calibration error of the probability."""
        return None if self.reliability is None else self.reliability.expected_error

    def as_dict(self) -> dict[str, float | None]:
        """Return the summary as plain numbers."""
        out: dict[str, float | None] = {"expected_error": self.expected_error}
        out["pit_distance"] = self.pit_distance
        for name, table in (("coverage", self.coverage), ("pit_coverage", self.pit_coverage)):
            out |= {f"{name}_{100 * level:g}": score.value for level, score in table.items()}
        return out

    def __repr__(self) -> str:
        lines = ["Calibration"]
        if (curve := self.reliability) is not None:
            lines.append(f"  expected calibration error {curve.expected_error:.3g}")
            lines.append("  probability     observed  share of pairs")
            for p, o, w in zip(curve.predicted, curve.observed, curve.weight, strict=True):
                lines.append(f"  {_percent(p):>11}  {_percent(o):>11}  {w:14.1%}")
        lines.append(f"  distance of the PIT from uniform {self.pit_distance:.3g}")
        lines += [
            f"  {level:.0%} intervals contain {inside.value:.1%} (randomized {exact.value:.1%})"
            for (level, inside), exact in zip(
                self.coverage.items(), self.pit_coverage.values(), strict=True
            )
        ]
        return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:#.4g}%"


def calibration(
    model: Model,
    data: Split,
    *,
    bins: int | Sequence[float] = 10,
    levels: Sequence[float] = LEVELS,
    max_values: int = _MAX_VALUES,
    population: str = "whole",
    on: HeldOutPairs | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Calibration:
    r"""Measure the calibration of the probability, and of the value given that it is observed.

    The transform of a value is :math:`F(y)` or, where it is discrete,
    :math:`F(y - 1) + U (F(y) - F(y - 1))` with U uniform.

    Parameters
    ----------
    model
        A fitted model, as for ``scores``.
    data
        The split.
    bins
        Number of bins with equally many held-out pairs each, or the edges of bins.
    levels
        Levels of the intervals.
    max_values
        Largest number of values to use.
    population
        Sparsity to which held-out pairs are weighted: "whole", that of all the data; or
        "training", that of the training data, which are sparser because the split holds out a
        share of the observed pairs but hardly any missing ones. "training" estimates the
        calibration of the same model when it is fitted to all the data.
    on
        Other pairs than the test pairs, such as ``data.validation``.
    random_state
        Seed of the randomized transform, and of the choice of values where there are too many.
    """
    pairs = data.test if on is None else on
    if not len(pairs):
        raise InputError("calibration: no observed pairs are held out. Split with test=0.2.")
    if any(not 0 < level < 1 for level in levels):
        raise InputError(f"levels must lie strictly between 0 and 1, got {levels!r}.")
    rng = generator(random_state)
    weights = _weights(data, pairs, one_of("population", population, POPULATIONS))
    curve = _reliability(model, data, pairs, bins, weights) if explains_missing(model) else None
    below, upto = _cdf_at(
        model, data, pairs, _sample(len(pairs), whole("max_values", max_values), rng)
    )
    pit = below + rng.random(len(upto)) * (upto - below)
    inside: dict[float, Score] = {}
    exact: dict[float, Score] = {}
    for level in levels:
        tail = 0.5 * (1.0 - level)
        # y lies between the quantiles of tail and 1 - tail exactly if these hold.
        inside[level] = mean_score((upto >= tail) & (below < 1.0 - tail))
        exact[level] = mean_score((pit >= tail) & (pit < 1.0 - tail))
    histogram = np.histogram(pit, bins=_PIT_BINS, range=(0.0, 1.0))[0] * (_PIT_BINS / len(pit))
    distance = float(stats.kstest(pit, "uniform", method="asymp").statistic)
    return Calibration(curve, inside, exact, histogram, distance, pit)


def _sample(size: int, max_values: int, rng: np.random.Generator) -> Any:
    return slice(None) if size <= max_values else rng.choice(size, max_values, replace=False)


def _cdf_at(
    model: Model, data: Split, pairs: HeldOutPairs, chosen: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the probability of less than each value, and of at most each value."""
    users, items = data.train.users[pairs.users[chosen]], data.train.items[pairs.items[chosen]]
    values = pairs.values[chosen]
    below, upto = np.empty(len(values)), np.empty(len(values))
    for part in blocks(len(values)):
        observed = model.predict_distribution(users[part], items[part]).observed
        seen = observed.element.seen(values[part])
        observed.element.support.check(type(observed.element).__name__, seen)
        upto[part] = below[part] = observed.cdf(seen)
        if observed.element.support.discrete:
            below[part] = observed.cdf(seen - 1.0)
    return below, upto


def _weights(data: Split, pairs: HeldOutPairs, population: str) -> tuple[float, float]:
    """Return how many pairs an observed, and a missing, held-out pair stands for."""
    missing = pairs.missing_weight
    if population == "whole":
        return 1.0, missing
    held = len(data.test) + len(data.validation)
    kept = data.train.n_observed / (data.train.n_observed + held)
    return kept, missing * (1.0 - (data.held_out.nnz - held) / max(data.n_missing, 1))


def _reliability(
    model: Model,
    data: Split,
    pairs: HeldOutPairs,
    bins: int | Sequence[float],
    weights: tuple[float, float],
) -> Reliability:
    users, items = data.train.users, data.train.items
    probability = np.concatenate(
        [
            _probability(model, users[pairs.users], items[pairs.items]),
            _probability(model, users[pairs.missing_users], items[pairs.missing_items]),
        ]
    )
    label = np.arange(len(probability)) < len(pairs)
    return reliability(probability, label, np.where(label, *weights), bins)


def _probability(model: Model, users: Any, items: Any) -> FloatArray:
    """Return the probabilities that a model predicts; of a baseline, those of its rates."""
    predict = getattr(model, "predict_proba", None)
    return -np.expm1(-model.rate(users, items)) if predict is None else predict(users, items)


def reliability(
    probability: FloatArray,
    label: Any,
    weight: FloatArray,
    bins: int | Sequence[float] = 10,
) -> Reliability:
    """Return the reliability curve of weighted predictions, without empty bins.

    Examples
    --------
    >>> curve = reliability(np.array([0.1, 0.1, 0.6, 0.8]), [0, 0, 1, 0], np.ones(4), [0, 0.5, 1])
    >>> curve.predicted.round(3), curve.observed, round(curve.expected_error, 3)
    (array([0.1, 0.7]), array([0. , 0.5]), 0.15)
    """
    if isinstance(bins, int):
        inner = np.unique(np.quantile(probability, np.linspace(0, 1, whole("bins", bins) + 1)))
        edges = inner[1:-1]
    else:
        edges = np.asarray(bins, dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2 or np.any(np.diff(edges) <= 0):
            raise InputError(f"bins must be an integer or ascending edges, got {bins!r}.")
        if probability.min() < edges[0] or probability.max() > edges[-1]:
            raise InputError(f"bins must range from 0 to 1, got {bins!r}.")
        edges = edges[1:-1]
    bin_of = np.searchsorted(edges, probability, side="right")
    observed = np.asarray(label, dtype=np.float64)

    def total(x: FloatArray) -> FloatArray:
        sums = np.bincount(bin_of, weights=x, minlength=len(edges) + 1)
        return np.asarray(sums, dtype=np.float64)

    count = np.bincount(bin_of, minlength=len(edges) + 1)
    used = count > 0
    mass = np.where(used, total(weight), 1.0)
    share = total(weight * observed) / mass
    spread = total(np.square(weight * (observed - share[bin_of])))
    return Reliability(
        predicted=(total(weight * probability) / mass)[used],
        observed=share[used],
        error=(np.sqrt(spread) / mass)[used],
        weight=mass[used] / weight.sum(),
        count=count[used],
    )
