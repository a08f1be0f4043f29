"""``hcpf evaluate``."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.elements import describe_element, element_text, parse_element
from hcpf.cli.screen import hint, number, percent, show_facts, show_json
from hcpf.cli.sources import Source

if TYPE_CHECKING:
    from hcpf.evaluate import Calibration, RankingScores, Scores, Split

Length = Annotated[int, typer.Option("--top", min=1, help="Length of the ranked lists.")]
TestShare = Annotated[
    float, typer.Option("--test", help="Share of the observed entries to test on.")
]

_SCORES = {
    "log_likelihood": "log-likelihood, per 1,000 entries",
    "conditional_nonmissing": "log-likelihood of a value",
    "auc": "AUC, observed against missing",
    "rmse": "RMSE of the value",
    "mae": "mean error of the value",
}


def evaluate(
    data: options.DataFiles,
    user: options.User = None,
    item: options.Item = None,
    response: options.Response = None,
    duplicates: options.OnDuplicates = options.Duplicates.error,
    header: options.Header = None,
    delimiter: options.Delimiter = None,
    element: options.ElementName = "auto",
    per: options.PerWhat = None,
    once: options.Once = False,
    components: options.Components = 50,
    fits: options.Fits = 1,
    train_on: options.OnWhat = options.TrainOn.full,
    max_iter: options.MaxIter = 300,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    test: TestShare = 0.2,
    top: Length = 20,
    as_json: options.Json = False,
) -> None:
    """Hold out a fifth of the entries, fit to the rest, and see how well the fit predicts them.

    One more percent decides when to stop. As many missing pairs as observed ones are held out.
    """
    chosen = parse_element(element, per and per.value, once)
    entries = Source(data, user, item, response, duplicates, header, delimiter).read()
    parts = split_data(entries, test, seed)
    from hcpf import evaluate as judge
    from hcpf.estimator import HCPF

    settings: dict[str, Any] = {
        "n_fits": fits, "max_iter": max_iter, "random_state": seed, "n_threads": threads,
    }  # fmt: skip
    model = HCPF(components, element=chosen, train_on=train_on.value, **settings)
    seconds = fit_to(model, parts)
    hint("Scoring ...")
    found = judge.scores(model, parts)
    # A model of observed entries only does not know which pairs will be observed.
    ranked = None if train_on is options.TrainOn.observed else judge.ranking(model, parts, top)
    # The population that training saw: the split itself makes the data a fifth sparser.
    trust = judge.calibration(model, parts, population="training")
    if as_json:
        show_json(
            {
                "element": describe_element(model.element_),
                "components": components,
                "passes": model.n_iter_,
                "seconds": seconds,
                "train": parts.train.n_observed,
                "test": len(parts.test),
                "scores": found.as_dict(),
                "ranking": ranked and {**ranked.as_dict(), "k": ranked.k, "users": ranked.n_users},
                "calibration": trust.as_dict(),
            }
        )
        return
    _show(model, parts, seconds, found, ranked, trust)


def split_data(entries: Any, test: float, seed: int) -> "Split":
    """Held-out pairs: the share asked for, and one percent to decide when to stop."""
    from hcpf.evaluate import split

    return split(entries, test=test, validation=0.01, random_state=seed)


def fit_to(model: Any, parts: "Split") -> float:
    """Fit to the training part; returns the seconds. Ctrl-C ends more than the fit here."""
    began = time.perf_counter()
    held: dict[str, Any] = {"exclude": parts.exclude}
    if len(parts.validation) and hasattr(model, "n_components"):
        held["validation"] = parts.validation_matrix
    model.fit(parts.train, **held)
    inner = getattr(model, "model_", model)
    if getattr(inner, "interrupted_", False):
        raise KeyboardInterrupt
    return time.perf_counter() - began


def _show(
    model: Any,
    parts: "Split",
    seconds: float,
    found: "Scores",
    ranked: "RankingScores | None",
    trust: "Calibration",
) -> None:
    show_facts(
        {
            "trained on": f"{parts.train.n_observed:,} entries, {model.n_iter_} passes, "
            f"{seconds:.1f} s",
            "tested on": f"{len(parts.test):,} entries and {len(parts.test.missing_users):,} "
            "missing pairs",
            "element": element_text(describe_element(model.element_)),
        },
        "Evaluation",
    )
    scores = {label: _score(found[name]) for name, label in _SCORES.items()}
    show_facts(scores, "\nHeld-out pairs")
    if ranked is not None:
        show_facts(
            {
                f"NDCG@{ranked.k}": _score(ranked.ndcg),
                f"recall@{ranked.k}": _score(ranked.recall),
                "users with a hit": f"{percent(ranked.hit_rate.value)} of {ranked.n_users:,}",
            },
            "\nRanking among all items",
        )
    show_facts(_calibration_facts(trust), "\nCan it be taken at its word?")


def _calibration_facts(trust: "Calibration") -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if (curve := trust.reliability) is not None:
        facts["probability"] = f"off by {percent(curve.expected_error)} on average"
        best = len(curve.predicted) - 1
        facts["likeliest tenth"] = (
            f"said {percent(float(curve.predicted[best]))}, "
            f"observed {percent(float(curve.observed[best]))}"
        )
    facts |= {
        f"{level:.0%} intervals": f"hold {percent(share.value)} of the values"
        for level, share in trust.pit_coverage.items()
    }
    return facts


def _score(score: Any) -> str:
    return (
        "does not apply"
        if score is None
        else str(score)
        if score.error > 0
        else number(score.value)
    )
