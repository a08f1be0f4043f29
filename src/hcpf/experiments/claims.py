"""The claims of section 5 of the paper, judged by differences paired by test pair."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from hcpf._types import FloatArray
from hcpf.evaluate.scoring import Score, mean_score
from hcpf.experiments.cells import (
    ELEMENTS,
    GROUPS,
    STAND_INS,
    TEST_PER_TRAINING,
    Cell,
    Recipe,
)

_PARTS = {"likelihood": ("observed", "missing"), "value": ("value",), "auc": ("above", "below")}


def average(scores: Sequence[Score]) -> Score | None:
    """Return the mean over splits, with the larger of two standard errors.

    One is that of the pairs within the splits, the other that of the splits; neither alone holds
    both sources of error.
    """
    return Gap.of(scores).score if scores else None


def average_score(cells: Iterable[Cell], name: str) -> Score | None:
    """Return the average of a score over the splits of a cell."""
    return average([score for cell in cells if (score := cell.score(name)) is not None])


@dataclass(frozen=True)
class Gap:
    """A paired difference of two cells, averaged over splits.

    Attributes
    ----------
    value : float
        The mean difference.
    within, between : float
        Standard errors of it: over the pairs within the splits, and over the splits (NaN for one).
    n_splits : int
        Splits that both cells have.
    """

    value: float
    within: float
    between: float
    n_splits: int

    @classmethod
    def of(cls, scores: Sequence[Score]) -> "Gap":
        """Return the average of the differences of single splits."""
        values = np.array([score.value for score in scores])
        within = float(np.sqrt(np.sum([score.error**2 for score in scores]))) / len(scores)
        return cls(float(values.mean()), within, mean_score(values).error, len(scores))

    @property
    def score(self) -> Score:
        """The difference with the larger of the two standard errors."""
        return Score(self.value, float(np.fmax(self.within, self.between)))

    @property
    def room(self) -> float:
        """How far from 0 the difference is decided, by both of its errors.

        Splits share most of their training data, so the error over them is multiplied by
        sqrt(1 + J n_test / n_train) and by the 97.5% quantile of Student's t with J - 1 degrees of
        freedom (Nadeau and Bengio 2003).
        """
        inflation = float(np.sqrt(1.0 + self.n_splits * TEST_PER_TRAINING))
        quantile = float(stats.t.ppf(0.975, max(self.n_splits - 1, 1)))
        return float(np.fmax(_ERRORS * self.within, quantile * inflation * self.between))

    def scaled(self, factor: float) -> "Gap":
        """Return the difference in another unit."""
        errors = factor * self.within, factor * self.between
        return Gap(factor * self.value, *errors, self.n_splits)


def difference(first: Iterable[Cell], second: Iterable[Cell], name: str) -> Gap | None:
    """Return how much the first is above the second, over the splits that both have.

    ``name`` is "likelihood", "value" or "auc".
    """
    others = {cell.split: cell for cell in second}
    pairs = [(cell, others[cell.split]) for cell in first if cell.split in others]
    found = [_of_split(one, other, name) for one, other in pairs]
    known = [score for score in found if score is not None]
    return Gap.of(known) if known else None


def _of_split(one: Cell, other: Cell, name: str) -> Score | None:
    a, b = one.score(name), other.score(name)
    if a is None or b is None or one.pairs != other.pairs:
        return None
    parts = [_block_error(one, other, part) for part in _PARTS[name]]
    if name == "likelihood":
        n_missing, n_observed = one.sizes
        total = n_missing + n_observed
        parts = [1000.0 * n_observed / total * parts[0], 1000.0 * n_missing / total * parts[1]]
    return Score(a.value - b.value, float(np.hypot.reduce(parts)))


def _block_error(one: Cell, other: Cell, part: str) -> float:
    """Return the standard error of the mean difference, from the means of groups of pairs."""
    gap: FloatArray = np.subtract(one.blocks[part], other.blocks[part])
    return mean_score(gap).error


def per_entry(gap: Gap, cell: Cell) -> Gap:
    """Return a difference of likelihoods per 1,000 pairs in nats per observed test pair."""
    n_missing, n_observed = cell.sizes
    return gap.scaled((n_missing + n_observed) / n_observed / 1000.0)


Verdict = Literal["holds", "fails", "undecided"]
Found = dict[tuple[str, str], list[Cell]]
"""The cells of one data set, by model and by what it was trained on, over splits."""

_RATINGS, _COUNTS, _NEAR_BINARY, _CONTINUOUS = GROUPS.values()
_MONEY = _CONTINUOUS[:2]
_ALL = tuple(STAND_INS)
_DISCRETE = (*_RATINGS, *_COUNTS, *_NEAR_BINARY)
_ERRORS = 2.0  # standard errors over pairs beyond which a difference is decided


@dataclass(frozen=True)
class Comparison:
    """A model above another in a score; models are given by name and what they were trained on."""

    first: tuple[str, str]
    second: tuple[str, str]

    def difference(self, found: Found, score: str) -> Gap | None:
        """Return the paired difference on a data set; None where a cell is missing."""
        one, other = found.get(self.first, []), found.get(self.second, [])
        gap = difference(one, other, score)
        return per_entry(gap, one[0]) if gap is not None and score == "likelihood" else gap


@dataclass(frozen=True)
class Claim:
    """A claim: every comparison holds on the sets of some kinds.

    Parameters
    ----------
    name, title
        Name of its chart, and the heading of it.
    text
        The claim in a sentence.
    kinds
        The paper's sets that it is about.
    score
        "likelihood", "value" or "auc".
    comparisons
        All have to hold; a set fails the claim if one of them fails.
    margin
        Above 0 for a claim that both are equal: the largest difference that counts as such.
    source
        Section of the paper; empty for a question of ours.
    """

    name: str
    title: str
    text: str
    kinds: tuple[str, ...]
    score: str
    comparisons: tuple[Comparison, ...]
    margin: float = 0.0
    source: str = ""

    @property
    def unit(self) -> str:
        """The unit of the differences."""
        return "AUC" if self.score == "auc" else "nats per observed pair"

    def judge(self, dataset: str, found: Found) -> "Finding | None":
        """Return the finding on a data set; None where it cannot be judged."""
        gaps = [comparison.difference(found, self.score) for comparison in self.comparisons]
        known = [gap for gap in gaps if gap is not None]
        if not known or len(known) < len(gaps):
            return None
        verdicts = [self._verdict(gap) for gap in known]
        decided: Verdict = "undecided"
        if "fails" in verdicts:
            decided = "fails"
        elif all(verdict == "holds" for verdict in verdicts):
            decided = "holds"
        # The comparison that decides: the one with the smallest difference.
        return Finding(dataset, min(known, key=lambda gap: gap.value), decided)

    def _verdict(self, gap: Gap) -> Verdict:
        low, high = gap.value - gap.room, gap.value + gap.room
        if self.margin:
            if -self.margin < low and high < self.margin:
                return "holds"
            return "fails" if low > self.margin or high < -self.margin else "undecided"
        if low > 0:
            return "holds"
        return "fails" if high < 0 else "undecided"


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim for one data set, with the difference that decided it."""

    dataset: str
    gap: Gap
    verdict: Verdict


@dataclass(frozen=True)
class Judgment:
    """A claim judged on all data sets with one recipe."""

    claim: Claim
    recipe: Recipe
    findings: tuple[Finding, ...]

    def count(self, verdict: Verdict) -> int:
        """Return on how many sets the claim has a verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def summary(self) -> str:
        """The verdict in a sentence, with the number of sets and the size."""
        total = len(self.findings)
        median = float(np.median([finding.gap.value for finding in self.findings]))
        return (
            f"holds on {self.count('holds')} of {total} sets, fails on {self.count('fails')}, "
            f"undecided on {self.count('undecided')}; median difference {median:+.3g} "
            f"{self.claim.unit}"
        )


def recipes_in(cells: Iterable[Cell]) -> list[Recipe]:
    """Return the recipes that cells were computed with, the paper's first."""
    found = {cell.recipe_key for cell in cells if cell.recipe != "any"}
    order = {("paper", "cavi"): 0, ("default", "auto"): 1, ("paper", "algorithm1"): 2}
    ranked = sorted(found, key=lambda key: (key[2], order.get(key[:2], 3)))
    return [Recipe(*key) for key in ranked]


def by_set(cells: Iterable[Cell], recipe: Recipe) -> dict[str, Found]:
    """Return the cells of a recipe, and the baselines of its sets, by data set and model."""
    cells, out = list(cells), dict[str, Found]()
    fitted = {cell.dataset for cell in cells if cell.recipe_key == recipe.key}
    for cell in cells:
        is_wanted = cell.is_baseline or cell.recipe_key == recipe.key
        if is_wanted and not cell.error and cell.dataset in fitted:
            models = out.setdefault(cell.dataset, {})
            models.setdefault((cell.model, cell.trained_on), []).append(cell)
    return out


def judge(claim: Claim, cells: Iterable[Cell], recipe: Recipe) -> Judgment | None:
    """Judge a claim on the cells of one recipe; None where no data set can decide it."""
    found = by_set(cells, recipe)
    names = [name for kind in claim.kinds for name in (kind, *STAND_INS[kind]) if name in found]
    findings = [claim.judge(name, found[name]) for name in names]
    known = tuple(finding for finding in findings if finding is not None)
    return Judgment(claim, recipe, known) if known else None


def with_element(claim: Claim, acronym: str) -> Claim:
    """Return the claim about another element, the same on both sides where both have one."""

    def swapped(model: tuple[str, str]) -> tuple[str, str]:
        kind, _, old = model[0].partition("-")
        return (f"{kind}-{acronym}", model[1]) if old else model

    pairs = tuple(Comparison(swapped(c.first), swapped(c.second)) for c in claim.comparisons)
    return replace(claim, comparisons=pairs)


def _above(first: str, second: str) -> Comparison:
    """Return the comparison of two models, such as "HCPF-BI F" and "HPF NM"."""
    one, other = first.split(" "), second.split(" ")
    return Comparison((one[0], one[1]), (other[0], other[1]))


BY_ELEMENT = ("ratings", "counts", "auc", "popularity")
"""Claims that are also judged with every other element."""

CLAIMS = (
    Claim(
        "ratings", "Ratings: HCPF against HPF",
        "Ratings: HCPF (binomial) has a higher test likelihood than HPF.",
        _RATINGS, "likelihood", (_above("HCPF-BI F", "HPF F"),), source="5.3",
    ),
    Claim(
        "counts", "Counts: HCPF against HPF",
        "Social media and music: HCPF (negative binomial) has a higher test likelihood "
        "than HPF.", _COUNTS, "likelihood", (_above("HCPF-NB F", "HPF F"),), source="5.3",
    ),
    Claim(
        "near-binary", "Near-binary data: HCPF against HPF",
        "Near-binary data: HCPF (zero-truncated Poisson) and HPF are very similar "
        "(within 0.1 nats per observed pair).", _NEAR_BINARY, "likelihood",
        (_above("HCPF-ZTP F", "HPF F"),), margin=0.1, source="5.3",
    ),
    Claim(
        "money", "Money: gamma and inverse Gaussian",
        "Money: gamma and inverse Gaussian both have a higher test likelihood than the "
        "normal.", _MONEY, "likelihood",
        (_above("HCPF-GA F", "HCPF-N F"), _above("HCPF-IG F", "HCPF-N F")), source="5.3",
    ),
    Claim(
        "hpf-observed", "HPF on observed entries, or on all",
        "HPF trained on observed entries models values better than HPF trained on "
        "all pairs.", _DISCRETE, "value", (_above("HPF NM", "HPF F"),), source="5.4",
    ),
    Claim(
        "ratings-values", "Values of ratings",
        "Ratings: the binomial trained on all pairs models values better than "
        "HPF trained on observed entries.", _RATINGS, "value",
        (_above("HCPF-BI F", "HPF NM"),), source="5.4",
    ),
    Claim(
        "counts-values", "Values of counts",
        "Social media and music: the inverse Gaussian trained on all pairs models "
        "values better than HPF trained on observed entries.", _COUNTS, "value",
        (_above("HCPF-IG F", "HPF NM"),), source="5.4",
    ),
    Claim(
        "counts-best", "The best element for counts",
        "Social media and music: the inverse Gaussian is the best value model, "
        "better than each other element.", _COUNTS, "value",
        tuple(_above("HCPF-IG F", f"HCPF-{e} F") for e in ELEMENTS if e != "IG"), source="5.4",
    ),
    Claim(
        "full-values", "Values of ratings, with missing pairs",
        "Ratings: the binomial trained on all pairs models values better than the "
        "binomial trained on observed entries.", _RATINGS, "value",
        (_above("HCPF-BI F", "HCPF-BI NM"),), source="5.4",
    ),
    Claim(
        "auc", "AUC of HCPF against HPF",
        "HCPF (gamma) has a higher AUC than HPF on binary data.", _ALL, "auc",
        (_above("HCPF-GA F", "HPF B"),), source="5.5",
    ),
    Claim(
        "popularity", "Likelihood against popularity",
        "HCPF (gamma) has a higher test likelihood than popularity with the same "
        "element.", _ALL, "likelihood", (_above("HCPF-GA F", "popularity-GA F"),),
    ),
    Claim(
        "popularity-auc", "AUC against popularity",
        "HCPF (gamma) has a higher AUC than popularity.", _ALL, "auc",
        (_above("HCPF-GA F", "popularity-GA F"),),
    ),
)  # fmt: skip


def compare_recipes(cells: Iterable[Cell], first: Recipe, second: Recipe) -> Judgment | None:
    """Judge whether one recipe has a higher test likelihood than another, with a gamma element."""
    claim = Claim(
        f"{first.name}-{first.solver}-K{first.n_components}-above-"
        f"{second.name}-{second.solver}-K{second.n_components}",
        "One recipe against another",
        f"HCPF-GA with {first}, has a higher test likelihood than with {second}.",
        _ALL, "likelihood", (_above("first F", "second F"),),
    )  # fmt: skip
    cells = list(cells)
    one, other = by_set(cells, first), by_set(cells, second)
    findings: list[Finding] = []
    for name in (n for kind in _ALL for n in (kind, *STAND_INS[kind])):
        mine, theirs = (found.get(name, {}).get(("HCPF-GA", "F"), []) for found in (one, other))
        finding = claim.judge(name, {("first", "F"): mine, ("second", "F"): theirs})
        findings += [] if finding is None else [finding]
    return Judgment(claim, first, tuple(findings)) if findings else None
