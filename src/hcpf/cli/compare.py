"""``hcpf compare``."""

import math
import shlex
import sys
from enum import StrEnum
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf import _defaults
from hcpf.cli import options
from hcpf.cli.errors import INCOMPLETE, INTERRUPTED
from hcpf.cli.evaluate import warn_of_few_tests
from hcpf.cli.fit import fit
from hcpf.cli.inputs import Source, in_memory, with_source
from hcpf.cli.output import Field, duration, note, number, show_json, show_rows
from hcpf.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hcpf.evaluate import ModelScores, Split
    from hcpf.evaluate.candidates import CandidateModel, Verdict

_QUICK = 10  # passes


class _Means(StrEnum):
    shared = "shared"
    user = "user"
    item = "item"
    both = "both"


_COLUMNS = {
    "log_likelihood": "log_likelihood",
    "conditional": "conditional_nonmissing",
    "auc": "auc",
    "ndcg": "ndcg",
    "rmse": "rmse",
}
_BASELINE = "popularity"  # always shown
_MAX_SHOWN = 10  # models at a terminal
_CLOSE = 0.02  # relative difference of two rankings that counts as equal


@with_source
def compare(
    context: typer.Context,
    source: Source,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="ELEMENT",
            help="An element to compare; may be repeated. Default: all.",
        ),
    ] = None,
    vary_by: Annotated[
        list[_Means] | None,
        typer.Option(
            "--vary-by",
            show_default=False,
            help="A shared mean, or a mean per user, per item or both; may be repeated. "
            "Default: all.",
        ),
    ] = None,
    user_exposure: options.UserExposure = None,
    item_exposure: options.ItemExposure = None,
    components: options.Components = _defaults.N_COMPONENTS,
    max_iter: options.MaxIter = _defaults.MAX_ITER,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"One fit of at most {_QUICK} passes per model, and partial pooling only for the "
            "two elements that are best with a shared mean.",
        ),
    ] = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    test: options.TestShare = 0.2,
    top: options.Top = 20,
    as_json: options.Json = False,
) -> None:
    """Compare elements on held-out pairs, with HPF and popularity as baselines.

    Every suitable element is fitted as a compound model, and the two most likely ones as hurdle
    models, too; each with a shared mean and with a mean per user, per item and both. All models are
    trained on the same entries and scored on the same held-out pairs. The log-likelihood measures
    how well a model predicts both which pairs are observed and what their values are.
    """
    import numpy as np

    from hcpf.evaluate import split
    from hcpf.evaluate.candidates import candidate_models
    from hcpf.evaluate.comparison import scored_by_mass

    entries = in_memory(source.read().data)
    values = entries.values.astype(np.float64)
    settings: dict[str, Any] = {
        "max_iter": min(max_iter, _QUICK) if quick else max_iter,
        "random_state": seed,
    }
    if quick:
        settings["n_fits"] = 1
    ways = [None if way is _Means.shared else str(way) for way in vary_by or _Means]
    models = candidate_models(
        values, only=only or (), vary_by=ways, n_components=components, **settings
    )
    parts = split(entries, test=test, validation=0.01, random_state=seed)
    as_mass = scored_by_mass(parts)
    fit_options = {
        "n_threads": threads, "user_exposure": user_exposure, "item_exposure": item_exposure,
    }  # fmt: skip
    found, n_left = _run(models, quick and None in ways, parts, top, as_mass, fit_options)
    done = [row for row in found if not row.error]
    if not (done or n_left):
        raise InputError(f"no model could be fitted; the first: {found[0].error}")
    verdict = _verdict(done, models, context) if done else None
    if as_json:
        show_json(_as_json(found, models, verdict, parts, as_mass, top))
    elif done:
        _show(found, verdict, as_mass, top, len(parts.test))
    for row in found:
        if row.error:
            note(f"hcpf: failed: {row.name}: {row.error}")
    if n_left:
        note(f"Interrupted: {len(found)} of {len(found) + n_left} models were compared.")
        raise typer.Exit(INTERRUPTED)
    if len(done) < len(found):
        raise typer.Exit(INCOMPLETE)


def _run(
    models: "list[CandidateModel]",
    in_rounds: bool,
    parts: "Split",
    top: int,
    as_mass: bool,
    fit_options: dict[str, Any],
) -> "tuple[list[ModelScores], int]":
    """Fit and score one after the other; return the scores and how many models Ctrl-C skipped."""
    from hcpf.evaluate import fit_and_score
    from hcpf.evaluate.candidates import most_promising

    found: list[ModelScores] = []

    def score(one: "CandidateModel") -> None:
        found.append(
            fit_and_score(
                one.name, one.model, parts, top, about=one.about, early_stopping=True,
                as_mass=as_mass, keep_errors=True, progress=False, fit_options=fit_options,
            )
        )  # fmt: skip

    if not in_rounds:
        return found, _each("Comparing", models, score)
    if n_left := _each("Comparing", [one for one in models if one.vary_by is None], score):
        return found, n_left
    return found, _each("Partial pooling", most_promising(models, found), score)


def _each(
    title: str, models: "list[CandidateModel]", score: "Callable[[CandidateModel], None]"
) -> int:
    """Score models under a progress bar; return how many Ctrl-C skipped."""
    from hcpf._progress import progress_bar

    waiting = models[::-1]
    try:
        with progress_bar(None, title, len(models)) as advance:
            for number in range(1, len(models) + 1):
                text = f"{waiting[-1].name} ({number} of {len(models)})"
                advance(0, text)
                score(waiting[-1])
                waiting.pop()  # the fitted model is released
                advance(1, text)
    except KeyboardInterrupt:
        return len(waiting)
    return 0


def _verdict(
    done: "list[ModelScores]", models: "list[CandidateModel]", context: typer.Context
) -> dict[str, Any]:
    """Return the verdict as JSON, with the words for people under "why"."""
    from hcpf.evaluate.candidates import decide

    verdict = decide(done, models)
    winner = next(one for one in models if one.name == verdict.winner.name)
    return {
        **_verdict_json(verdict, _sentences(verdict, winner) + _lowest_rmse(verdict, done)),
        "command": _fit_command(winner, context),
    }


def _lowest_rmse(verdict: "Verdict", done: "list[ModelScores]") -> str:
    """Return a sentence about the model with the lowest RMSE, if it is another one."""
    errors = {row.name: score.value for row in done if (score := row.score("rmse")) is not None}
    best = min(errors, key=errors.__getitem__, default=None)
    if best is None or not errors[best] < (1.0 - _CLOSE) * errors.get(verdict.winner.name, 0.0):
        return ""
    return (
        f" The lowest RMSE is that of {best}: RMSE weighs the few largest values most, the "
        "log-likelihood counts every pair alike."
    )


def _fit_command(winner: "CandidateModel", context: typer.Context) -> str | None:
    """Return the command that fits the winner to the same data; None for a baseline."""
    if winner.element is None:
        return None
    words, shared = ["hcpf", "fit", *context.params["data"]], set(signature(fit).parameters)
    shared -= {"data", "vary_by", "quick"}  # --quick shortens the comparison alone
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if given and parameter.name in shared:
            value = context.params[parameter.name]
            if isinstance(value, bool):
                words.append((parameter.opts if value else parameter.secondary_opts)[0])
            else:
                values = value if isinstance(value, list | tuple) else [value]
                words += [word for one in values for word in (parameter.opts[0], str(one))]
    return shlex.join([*words, *_winner_options(winner), "-o", "model"])


def _sentences(verdict: "Verdict", winner: "CandidateModel") -> str:
    """Return the verdict in words."""
    best = verdict.winner
    options = " ".join(_winner_options(winner))
    text = f"Recommended: {best.name}{f' ({options})' if options else ''}."
    if verdict.runner_up is None or (lead := verdict.lead) is None:
        return f"{text} No other model applies to these values."
    likelihood, second = best.score("log_likelihood"), verdict.runner_up.name
    assert likelihood is not None
    text += f" Log-likelihood per 1,000 pairs: {likelihood.value:,.2f}, which is "
    if lead.value < 0:
        text += f"{-lead} below {second}, too little for a model that is harder to interpret."
    else:
        clear = "." if verdict.is_clear else "; the difference is not clear."
        text += f"{lead} above the runner-up, {second}{clear}"
    ranks, best_ranks = (row.score("ndcg") for row in (best, verdict.best_ranker))
    if ranks and best_ranks and ranks.value < (1.0 - _CLOSE) * best_ranks.value:
        text += (
            f" For ranking alone {verdict.best_ranker.name} is better: NDCG {best_ranks.value:.3f} "
            f"compared with {ranks.value:.3f}."
        )
    if verdict.pooling_gain is not None:
        text += f" Partial pooling gains {verdict.pooling_gain} over a shared mean."
    return text


def _verdict_json(verdict: "Verdict", why: str) -> dict[str, Any]:
    lead, gain = verdict.lead, verdict.pooling_gain
    return {
        "winner": verdict.winner.name,
        "second": verdict.runner_up and verdict.runner_up.name,
        "lead": lead and lead.value,
        "lead_error": lead and lead.error,
        "clear": verdict.is_clear,
        "best_ranking": verdict.best_ranker.name,
        "pooling_gain": gain and gain.value,
        "pooling_gain_error": gain and gain.error,
        "why": why,
    }


def _winner_options(winner: "CandidateModel") -> list[str]:
    """Return the options of ``hcpf fit`` for a model; none for a baseline."""
    if winner.element is None:
        return []
    hurdle = ["--hurdle"] if winner.hurdle else []
    pooling = [] if winner.vary_by is None else ["--vary-by", winner.vary_by]
    return ["--element", winner.element, *hurdle, *pooling]


def _record(row: "ModelScores") -> dict[str, Any]:
    """Return the numbers of a model as they are shown."""
    scores = {key: row.score(name) for key, name in _COLUMNS.items()}
    values = {key: score and score.value for key, score in scores.items()}
    return {"model": row.name, **values, "seconds": row.seconds}


def _as_json(
    found: "list[ModelScores]", models: "list[CandidateModel]", verdict: dict[str, Any] | None,
    parts: "Split", as_mass: bool, top: int,
) -> dict[str, Any]:  # fmt: skip
    elements = {one.name: one.element for one in models}
    rows = [
        {
            "name": row.name, "about": row.about, **_record(row), "model": elements[row.name],
            "vary_by": row.vary_by, "hurdle": row.hurdle, "element": row.element,
            "passes": row.passes, "error": row.error or None,
        }
        for row in found
    ]  # fmt: skip
    return {
        "train": parts.train.n_observed,
        "test": len(parts.test),
        "likelihood_of_values": "probability" if as_mass else "density",
        "top": top,
        "models": rows,
        "verdict": verdict,
    }


def _fixed(places: int, value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:,.{places}f}"


def _show(
    found: "list[ModelScores]", verdict: dict[str, Any] | None, as_mass: bool, top: int,
    n_test: int,
) -> None:  # fmt: skip
    fields = [
        Field("model", "Model", str, right=False, wraps=True),
        Field("log_likelihood", "Log-lik. per 1,000", partial(_fixed, 2)),
        Field("conditional", "Of a value", partial(_fixed, 3)),
        Field("auc", "AUC", partial(_fixed, 3)),
        Field("ndcg", f"NDCG@{top}", partial(_fixed, 3)),
        Field("rmse", "RMSE", number),
        Field("seconds", "Time", duration),
    ]
    from hcpf.evaluate.candidates import most_likely_first

    best, ordered = verdict["winner"] if verdict else None, most_likely_first(found)
    shown = [row for row in ordered if row.name == best or row in ordered[:_MAX_SHOWN]]
    shown += [row for row in ordered if row.name == _BASELINE and row not in shown]
    if not sys.stdout.isatty():
        shown = ordered
    show_rows(fields, [_record(row) | {"best": row.name == best} for row in shown])
    if left := [row.name for row in ordered if row not in shown]:
        note(f"Less likely, not shown: {', '.join(left)}.")
    kind = "probabilities of integers" if as_mass else "densities"
    note(
        "Higher is better except for RMSE and time. Log-lik.: log-likelihood of held-out pairs, "
        f"observed and missing, per 1,000 of them; of a value: of the values alone ({kind}). AUC: "
        "how often an observed pair is ranked above a missing one. NDCG: how early held-out "
        "items come in the lists. RMSE: error of the value if observed."
    )
    warn_of_few_tests(n_test)
    if verdict:
        note(verdict["why"])
        if verdict["command"]:
            typer.echo(f"To fit it:\n{verdict['command']}", err=True)
