"""What section 5 of the paper claims, looked up in computed cells."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hcpf.experiments.cells import STAND_INS, VARYING, Cell

RATINGS = ("amazon", "movielens", "netflix", "yelp")
COUNTS = ("wordpress", "tencent", "echonest")
NEAR_BINARY = ("bestbuy", "merck")
MONEY = ("donation", "dchoose")

Found = dict[tuple[str, str], Cell]
"""The cells of one data set by model and what it was trained on."""


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
    """Every claim that the cells at hand can decide; elements that vary are not the paper's."""
    by_set: dict[str, Found] = {}
    for cell in cells:
        if not cell.error and not cell.model.endswith(VARYING):
            by_set.setdefault(cell.dataset, {})[cell.model, cell.trained_on] = cell
    found = [_judge(claim, kinds, test, by_set) for claim, kinds, test in _CLAIMS]
    return [verdict for verdict in found if verdict.holds or verdict.fails]


def render(cells: Iterable[Cell]) -> str:
    """The verdicts in Markdown."""
    lines = "\n".join(map(str, verdicts(cells)))
    return f"### The claims of section 5\n\n{lines}\n"


def _judge(
    claim: str,
    kinds: tuple[str, ...],
    test: Callable[[Found], bool | None],
    by_set: dict[str, Found],
) -> Verdict:
    names = [name for kind in kinds for name in (kind, *STAND_INS[kind]) if name in by_set]
    answers = {name: test(by_set[name]) for name in names}
    return Verdict(
        claim,
        tuple(name for name, answer in answers.items() if answer),
        tuple(name for name, answer in answers.items() if answer is False),
    )


def _value(found: Found, model: str, trained: str, score: str) -> float | None:
    cell = found.get((model, trained))
    return None if cell is None else getattr(cell, score)


def _best(found: Found, trained: str, score: str, *, only: tuple[str, ...] = ()) -> float | None:
    """The best HCPF, or the best of some."""
    values = [
        value
        for (model, on), cell in found.items()
        if model.startswith("HCPF") and on == trained and (not only or model in only)
        if (value := getattr(cell, score)) is not None
    ]
    return max(values, default=None)


def _above(mine: float | None, other: float | None) -> bool | None:
    return None if mine is None or other is None else mine > other


def _near(mine: float | None, other: float | None, share: float = 0.05) -> bool | None:
    if mine is None or other is None:
        return None
    return mine >= other - share * abs(other)


def _money(found: Found) -> bool | None:
    normal = _value(found, "HCPF-N", "F", "log_likelihood")
    gamma = _value(found, "HCPF-GA", "F", "log_likelihood")
    gaussian = _value(found, "HCPF-IG", "F", "log_likelihood")
    return _above(min(gamma, gaussian) if gamma and gaussian else None, normal)


def _density_best(found: Found) -> bool | None:
    gaussian = _value(found, "HCPF-IG", "F", "conditional_nonmissing")
    paper = ("HCPF-N", "HCPF-GA", "HCPF-PO", "HCPF-BI", "HCPF-NB", "HCPF-ZTP")
    return _above(gaussian, _best(found, "F", "conditional_nonmissing", only=paper))


def _mass_best(found: Found) -> bool | None:
    gaussian = _value(found, "HCPF-IG", "F", "conditional_mass")
    paper = ("HCPF-N", "HCPF-GA", "HCPF-PO", "HCPF-BI", "HCPF-NB", "HCPF-ZTP")
    return _above(gaussian, _best(found, "F", "conditional_mass", only=paper))


_EVERYTHING = tuple(STAND_INS)
_CLAIMS: tuple[tuple[str, tuple[str, ...], Callable[[Found], bool | None]], ...] = (
    (
        "Ratings: the best HCPF has a higher test likelihood than HPF.",
        RATINGS,
        lambda f: _above(_best(f, "F", "log_likelihood"), _value(f, "HPF", "F", "log_likelihood")),
    ),
    (
        "Counts (social media, music): the best HCPF is above HPF.",
        COUNTS,
        lambda f: _above(_best(f, "F", "log_likelihood"), _value(f, "HPF", "F", "log_likelihood")),
    ),
    (
        "Near-binary data: HPF is enough (within 5% of the best HCPF).",
        NEAR_BINARY,
        lambda f: _near(_value(f, "HPF", "F", "log_likelihood"), _best(f, "F", "log_likelihood")),
    ),
    ("Money: gamma and inverse Gaussian are above the normal.", MONEY, _money),
    (
        "HPF trained on observed entries models values better than HPF trained on the full matrix.",
        (*RATINGS, *COUNTS, *NEAR_BINARY),
        lambda f: _above(
            _value(f, "HPF", "NM", "nonmissing"), _value(f, "HPF", "F", "conditional_nonmissing")
        ),
    ),
    (
        "Ratings: the binomial trained on the full matrix is above HPF trained on observed "
        "entries.",
        RATINGS,
        lambda f: _above(
            _value(f, "HCPF-BI", "F", "conditional_nonmissing"),
            _value(f, "HPF", "NM", "nonmissing"),
        ),
    ),
    (
        "Counts: the inverse Gaussian is the best value model of the paper's seven (density "
        "against probability, as the paper compares them).",
        COUNTS,
        _density_best,
    ),
    ("The same, comparing probabilities of whole numbers.", COUNTS, _mass_best),
    (
        "The best HCPF has a higher AUC than HPF on binarised data (10 of 12 in the paper).",
        _EVERYTHING,
        lambda f: _above(_best(f, "F", "auc"), _value(f, "HPF", "B", "auc")),
    ),
    (
        "HCPF has a higher AUC than popularity.",
        _EVERYTHING,
        lambda f: _above(_best(f, "F", "auc"), _value(f, "popularity", "F", "auc")),
    ),
    (
        "HCPF has a higher test likelihood than popularity with one element for all values.",
        _EVERYTHING,
        lambda f: _above(
            _best(f, "F", "log_likelihood"), _value(f, "popularity", "F", "log_likelihood")
        ),
    ),
)
