"""``hcpf compare``."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.contest import (
    SHARED,
    Candidate,
    Entrant,
    ahead,
    best_first,
    candidates,
    element_of,
    enter,
)
from hcpf.cli.errors import INCOMPLETE, INTERRUPTED
from hcpf.cli.evaluate import Length, TestShare, split_data
from hcpf.cli.screen import Field, note, number, show_json, show_rows
from hcpf.cli.sources import Source
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.evaluate import Split

_QUICK = 10  # passes
_VARIED = 2  # elements that are tried with a varying theta in a quick look
_SURE = 2.0  # standard errors
_CLOSE = 0.02  # share of a score within which two rank alike


def compare(
    data: options.DataFiles,
    user: options.User = None,
    item: options.Item = None,
    response: options.Response = None,
    duplicates: options.OnDuplicates = options.Duplicates.error,
    header: options.Header = None,
    delimiter: options.Delimiter = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="An element to compare; may be repeated. All that apply."),
    ] = None,
    per: Annotated[
        list[options.Ways] | None,
        typer.Option(
            "--per",
            show_default=False,
            help="Whether all pairs share one element, or its mean varies by user, item or both; "
            "may be repeated. All of these.",
        ),
    ] = None,
    components: options.Components = 50,
    max_iter: options.MaxIter = 300,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"A first look: one fit of at most {_QUICK} passes for each, and only the "
            f"{_VARIED} best elements varied.",
        ),
    ] = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    test: TestShare = 0.2,
    top: Length = 20,
    as_json: options.Json = False,
) -> None:
    """Which element suits the data? All that apply, with HPF and popularity beside them.

    Each element enters with one mean for all pairs, and with means that vary by user, by item and
    by both; and, "once", as the value of a pair itself rather than a part of it, as a rating is.
    Every model is fitted to the same four fifths of the entries and scored on the same rest. The
    log-likelihood judges both questions at once: which pairs are observed, and their values.
    """
    import numpy as np

    source = Source(data, user, item, response, duplicates, header, delimiter)
    entries = source.read()
    values = entries.values.astype(np.float64)
    whole = bool(np.all(values == np.floor(values)))
    settings = {
        "max_iter": min(max_iter, _QUICK) if quick else max_iter,
        "random_state": seed,
        "n_threads": threads,
    }
    if quick:
        settings["n_fits"] = 1
    ways = [way.value for way in per or options.Ways]
    models = candidates(values, only, ways, components, settings)
    parts = split_data(entries, test, seed)
    found, left = _run(models, quick and SHARED in ways, parts, top, whole)
    stopped = left > 0
    done = [one for one in found if not one.error]
    if not done and not stopped:
        raise InputError(f"no model could be fitted; the first: {found[0].error}")
    verdict = decide(done, parts, top) if done else None
    if as_json:
        show_json(_as_json(found, verdict, parts, whole, top))
    elif done:
        _show(found, verdict, whole, top)
    for one in found:
        if one.error:
            note(f"hcpf: failed: {one.name}: {one.error}")
    if stopped:
        note(f"Interrupted: {len(found)} of {len(found) + left} models were compared.")
        raise typer.Exit(INTERRUPTED)
    if len(done) < len(found):
        raise typer.Exit(INCOMPLETE)


def _run(
    models: list[Candidate], quick: bool, parts: "Split", top: int, whole: bool
) -> tuple[list[Entrant], int]:
    """Fit one after the other, and say how many are left; Ctrl-C keeps those that are done."""
    found: list[Entrant] = []
    if not quick:
        return found, _enter_all("Comparing", models, found, parts, top, whole)
    first = [one for one in models if one.per is None]
    if left := _enter_all("Comparing", first, found, parts, top, whole):
        return found, left
    elements = {element_of(one.model) for one in models if one.per is not None}
    done = [element_of(one.model) for one in best_first(found) if not one.error]
    ranked = [name for name in dict.fromkeys(done) if name in elements][:_VARIED]
    varied = [one for one in models if one.per is not None and element_of(one.model) in ranked]
    return found, _enter_all("Varying theta", varied, found, parts, top, whole)


def _enter_all(
    title: str, models: list[Candidate], found: list[Entrant],
    parts: "Split", top: int, whole: bool,
) -> int:  # fmt: skip
    """Add what each comes to; returns how many Ctrl-C left out."""
    from hcpf._progress import progress_bar

    waiting = models[::-1]
    try:
        with progress_bar(None, title, len(models)) as advance:
            while waiting:
                advance(0, waiting[-1].name)
                found.append(enter(waiting[-1], parts, top, whole))
                advance(1, waiting.pop().name)  # a fitted model is let go
    except KeyboardInterrupt:
        return len(waiting)
    return 0


def decide(done: list[Entrant], parts: "Split", top: int) -> dict[str, Any]:
    """The model to take, and one sentence that says why."""
    ordered = best_first(done)
    first = ordered[0]
    assert first.terms is not None
    text = f"Take {first.name}{_as_options(first)}: "
    if len(ordered) == 1:
        return {"winner": first.name, "why": text + "nothing else applies to these values."}
    second = ordered[1]
    assert second.terms is not None
    lead, error = ahead(first.terms, second.terms, parts)
    clear = lead > _SURE * error
    text += "its held-out log-likelihood is the highest, "
    text += f"{number(lead)} ± {number(error)} per 1,000 entries above {second.name}"
    if not clear:
        text += ", which is no clear difference"
    ranker = max(done, key=lambda one: one.ndcg or 0.0)
    if (first.ndcg or 0.0) >= (1.0 - _CLOSE) * (ranker.ndcg or 0.0):
        text += ", and nothing ranks clearly better."
    else:
        text += (
            f"; for ranking alone {ranker.name} is better "
            f"(NDCG@{top} {number(ranker.ndcg)} against {number(first.ndcg)})."
        )
    gain = _gain(first, done, parts)
    if gain is not None:
        text += (
            f" Letting its mean vary gains {number(gain[0])} ± {number(gain[1])} over one for all."
        )
    return {
        "winner": first.name, "second": second.name, "lead": lead, "lead_error": error,
        "clear": clear, "best_ranking": ranker.name, "why": text,
        "gain_of_varying": gain and gain[0], "gain_error": gain and gain[1],
    }  # fmt: skip


def _as_options(winner: Entrant) -> str:
    """How to fit it."""
    if winner.about != "HCPF":
        return ""
    name = element_of(winner.model)
    once = "" if name == winner.model else " --once"
    per = "" if winner.per is None else f" --per {winner.per}"
    return f" (--element {name}{once}{per})"


def _gain(winner: Entrant, done: list[Entrant], parts: "Split") -> tuple[float, float] | None:
    """What a varying theta is worth: the lead over the same element with one for all."""
    for one in done:
        if winner.per is not None and one.model == winner.model and one.per is None:
            assert winner.terms is not None
            assert one.terms is not None
            return ahead(winner.terms, one.terms, parts)
    return None


def _as_json(
    found: list[Entrant], verdict: dict[str, Any] | None, parts: "Split", whole: bool, top: int
) -> dict[str, Any]:
    hidden = ("terms", "error")
    models = [
        {"name": one.name}
        | {name: value for name, value in vars(one).items() if name not in hidden}
        | {"error": one.error or None}
        for one in found
    ]
    return {
        "train": parts.train.n_observed,
        "test": len(parts.test),
        "likelihood_of_values": "probability" if whole else "density",
        "top": top,
        "models": models,
        "verdict": verdict,
    }


def _fixed(places: int, value: float | None) -> str:
    return "–" if value is None else f"{value:,.{places}f}"


def _show(found: list[Entrant], verdict: dict[str, Any] | None, whole: bool, top: int) -> None:
    fields = [
        Field("model", "model", str, right=False),
        Field("per", "per", lambda value: value or "–", right=False),
        Field("log_likelihood", "log-lik. /1,000", partial(_fixed, 2)),
        Field("conditional", "of a value", partial(_fixed, 3)),
        Field("auc", "AUC", partial(_fixed, 3)),
        Field("ndcg", f"NDCG@{top}", partial(_fixed, 3)),
        Field("rmse", "RMSE"),
        Field("seconds", "time", lambda value: "–" if value is None else f"{value:.1f} s"),
    ]
    ordered = best_first(found)
    best = verdict["winner"] if verdict else None
    show_rows(fields, [vars(one) | {"best": one.name == best} for one in ordered])
    kind = "probabilities of whole numbers" if whole else "densities"
    note(
        "Higher is better but for RMSE and time. log-lik.: how well the held-out pairs were "
        f"foreseen, both whether and with what value; of a value: the values alone ({kind}). AUC: "
        "how often an observed pair is put above one that was not. NDCG: how well the best of the "
        "list are picked. RMSE: how far expected values are off. per: who has a mean of their own."
    )
    if verdict:
        note(verdict["why"])
