"""The claims of section 5 of the paper, checked with computed cells."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hcpf.experiments.cells import STAND_INS, VARYING, Cell

RATINGS = ("amazon", "movielens", "netflix", "yelp")
COUNTS = ("wordpress", "tencent", "echonest")
NEAR_BINARY = ("bestbuy", "merck")
MONEY = ("donation", "dchoose")
PAPER_ELEMENTS = ("HCPF-N", "HCPF-GA", "HCPF-PO", "HCPF-BI", "HCPF-NB", "HCPF-ZTP")
"""The paper's elements but for the inverse Gaussian."""

Found = dict[tuple[str, str], Cell]
"""The cells of one data set by model and by what it was trained on."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the best, or the worst, score of some models."""

    score: str
    models: tuple[str, ...] = ()
    """Empty for all HCPF models."""
    trained_on: str = "F"
    pick: Callable[[list[float]], float] = max

    def value(self, found: Found) -> float | None:
        """Return the score; None where a named model, or every one, has none."""
        cells = {
            model: getattr(cell, self.score)
            for (model, trained_on), cell in found.items()
            if trained_on == self.trained_on
            and (model in self.models if self.models else model.startswith("HCPF"))
        }
        known = [value for value in cells.values() if value is not None]
        if not known or (self.pick is min and len(known) < len(self.models)):
            return None
        return self.pick(known)


@dataclass(frozen=True)
class Claim:
    """A claim that one side is above the other on some kinds of data."""

    text: str
    kinds: tuple[str, ...]
    higher: Side
    lower: Side
    slack: float = 0.0
    """Share of the lower side that the higher one may be below it."""

    def holds(self, found: Found) -> bool | None:
        """Return whether the claim holds on a data set; None where it cannot be decided."""
        higher, lower = self.higher.value(found), self.lower.value(found)
        if higher is None or lower is None:
            return None
        return higher >= lower - self.slack * abs(lower) if self.slack else higher > lower


@dataclass(frozen=True)
class Verdict:
    """A claim, and on which data sets it holds."""

    claim: str
    holds: tuple[str, ...]
    fails: tuple[str, ...]

    def __str__(self) -> str:
        total = len(self.holds) + len(self.fails)
        against = f"; not on {', '.join(self.fails)}" if self.fails else ""
        return f"- {self.claim} **Holds on {len(self.holds)} of {total}{against}.**"


def verdicts(cells: Iterable[Cell]) -> list[Verdict]:
    """Return the verdict on every claim that the cells can decide.

    Partially pooled models are left out: they are not the paper's.
    """
    by_set: dict[str, Found] = {}
    for cell in cells:
        if not cell.error and not cell.model.endswith(VARYING):
            by_set.setdefault(cell.dataset, {})[cell.model, cell.trained_on] = cell
    found = [_judge(claim, by_set) for claim in _CLAIMS]
    return [verdict for verdict in found if verdict.holds or verdict.fails]


def render(cells: Iterable[Cell]) -> str:
    """Return the verdicts in Markdown."""
    lines = "\n".join(map(str, verdicts(cells)))
    return f"### The claims of section 5\n\n{lines}\n"


def _judge(claim: Claim, by_set: dict[str, Found]) -> Verdict:
    names = [name for kind in claim.kinds for name in (kind, *STAND_INS[kind]) if name in by_set]
    answers = {name: claim.holds(by_set[name]) for name in names}
    return Verdict(
        claim.text,
        tuple(name for name, answer in answers.items() if answer),
        tuple(name for name, answer in answers.items() if answer is False),
    )


_BEST = Side("log_likelihood")
_HPF = Side("log_likelihood", ("HPF",))
_HPF_OBSERVED = Side("nonmissing", ("HPF",), "NM")
_ALL = tuple(STAND_INS)
_CLAIMS = (
    Claim("Ratings: the best HCPF has a higher test likelihood than HPF.", RATINGS, _BEST, _HPF),
    Claim("Counts (social media, music): the best HCPF is above HPF.", COUNTS, _BEST, _HPF),
    Claim(
        "Near-binary data: HPF is enough (within 5% of the best HCPF).",
        NEAR_BINARY, _HPF, _BEST, slack=0.05,
    ),
    Claim(
        "Money: gamma and inverse Gaussian are above the normal.",
        MONEY,
        Side("log_likelihood", ("HCPF-GA", "HCPF-IG"), pick=min),
        Side("log_likelihood", ("HCPF-N",)),
    ),
    Claim(
        "HPF trained on observed entries models values better than HPF trained on the full matrix.",
        (*RATINGS, *COUNTS, *NEAR_BINARY),
        _HPF_OBSERVED,
        Side("conditional_nonmissing", ("HPF",)),
    ),
    Claim(
        "Ratings: the binomial trained on the full matrix is above HPF trained on observed "
        "entries.",
        RATINGS,
        Side("conditional_nonmissing", ("HCPF-BI",)),
        _HPF_OBSERVED,
    ),
    Claim(
        "Counts: the inverse Gaussian is the best value model of the paper's seven (density "
        "compared with probability, as in the paper).",
        COUNTS,
        Side("conditional_nonmissing", ("HCPF-IG",)),
        Side("conditional_nonmissing", PAPER_ELEMENTS),
    ),
    Claim(
        "The same, comparing probabilities of integers.",
        COUNTS,
        Side("conditional_mass", ("HCPF-IG",)),
        Side("conditional_mass", PAPER_ELEMENTS),
    ),
    Claim(
        "The best HCPF has a higher AUC than HPF on binary data (10 of 12 in the paper).",
        _ALL, Side("auc"), Side("auc", ("HPF",), "B"),
    ),
    Claim(
        "HCPF has a higher AUC than popularity.",
        _ALL, Side("auc"), Side("auc", ("popularity",)),
    ),
    Claim(
        "HCPF has a higher test likelihood than popularity with a shared element.",
        _ALL, _BEST, Side("log_likelihood", ("popularity",)),
    ),
)  # fmt: skip
