"""``hcpf evaluate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf import _defaults
from hcpf.cli import options
from hcpf.cli.inputs import Source, load_model, value_model_settings, with_source
from hcpf.cli.output import (
    duration,
    element_text,
    note,
    note_written,
    percent,
    prepare_file,
    show_facts,
    show_json,
)
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.data.words import Words
    from hcpf.evaluate import Calibration, Evaluation, Split

_SCORES = {
    "log_likelihood": "log-likelihood, per 1,000 pairs",
    "conditional_nonmissing": "log-likelihood of a value",
    "auc": "AUC, observed and missing pairs",
    "rmse": "RMSE of the value",
    "mae": "mean absolute error of the value",
}
_FEW_TESTS = 30  # entries; scores on fewer are uncertain


@with_source
def evaluate(
    context: typer.Context,
    source: Source,
    user_exposure: options.UserExposure = None,
    item_exposure: options.ItemExposure = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like", metavar="MODEL", show_default=False, rich_help_panel="Model",
            help="Saved model whose element and settings to use, instead of the options below.",
        ),
    ] = None,
    element: options.ElementName = "auto",
    vary_by: options.VaryBy = None,
    hurdle: options.Hurdle = False,
    components: options.Components = _defaults.N_COMPONENTS,
    fits: options.Fits = _defaults.N_FITS,
    train_on: options.TrainOn = _defaults.TRAIN_ON,
    max_iter: options.MaxIter = _defaults.MAX_ITER,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    test: options.TestShare = 0.2,
    by_time: Annotated[
        str | None,
        typer.Option(
            "--by-time", metavar="DATE", show_default=False,
            help="Train on the rows before a date, such as 2011-10-01, and test on pairs that are "
            "observed for the first time from then on; instead of --test.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="COLUMN", show_default=False,
            help="Column of the dates for --by-time. Default: detected.",
        ),
    ] = None,
    top: options.Top = 20,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", show_default=False,
            help="JSON file to write, with the scores of simpler models as well: for "
            "[b]hcpf report --evaluation[/b].",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Hold out a fifth of the entries, fit to the rest, and score the predictions.

    A further 1% of the entries is held out to decide when training stops. As many missing pairs as
    entries are held out. With --by-time, the model is trained on one period and tested on the next.
    """
    if output is not None:
        prepare_file(output, overwrite=overwrite)
    settings = value_model_settings(element, vary_by, hurdle, train_on)
    settings |= {"n_components": components, "n_fits": fits, "max_iter": max_iter}
    words = None
    if like is not None:
        settings, words = _settings_like(context, like, user_exposure, item_exposure)
    parts = _split(source, words, test, by_time, time, seed)
    from hcpf.estimator import HCPF
    from hcpf.evaluate import evaluate_model
    from hcpf.model.inspect import describe_value_model

    settings["random_state"] = seed
    model = HCPF(**settings)
    found = evaluate_model(
        model, parts, n=top, max_baselines=1 if output is None else None, early_stopping=True,
        random_state=seed, n_threads=threads,
        fit_options={"user_exposure": user_exposure, "item_exposure": item_exposure},
    )  # fmt: skip
    about = describe_value_model(model.value_model_)
    if output is not None:
        existed = output.exists()
        found.save(output)  # completely or not at all
        note_written(output, replaced=existed)
    if as_json:
        show_json(_as_json(found, about, model.n_components))
        return
    _show(found, about)
    if settings["element"] == "auto":
        note(
            "The element was chosen by short fits to the training part. To evaluate the settings "
            "of a saved model: --like MODEL."
        )


_SET_BY_MODEL = {
    "element": "--element", "vary_by": "--vary-by", "hurdle": "--hurdle", "fits": "--fits",
    "components": "--components", "train_on": "--train-on", "max_iter": "--max-iter",
}  # fmt: skip


def _settings_like(
    context: typer.Context, folder: Path, user_exposure: str | None, item_exposure: str | None
) -> "tuple[dict[str, Any], Words]":
    """Return the settings of a saved model, its choices among them, and its words."""
    for name, option in _SET_BY_MODEL.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise InputError(f"--like takes the settings from {folder}. Remove {option}.")
    from hcpf.core.axis import Axis
    from hcpf.elements import Element
    from hcpf.estimator import HCPF

    fitted = load_model(folder)
    for axis, given in ((Axis.USERS, user_exposure), (Axis.ITEMS, item_exposure)):
        if fitted.exposure.axis(axis) is not None and given is None:
            raise InputError(
                f"{folder} was fitted with exposures of {axis.word}s. Pass --{axis.word}-exposure."
            )
    settings = HCPF.from_model(fitted).get_params(deep=False)
    value_model = fitted.value_model
    if not isinstance(settings["element"], Element):  # chosen by the data: estimate it again
        settings["element"] = type(value_model.element)()
    if settings["tempering"] == "auto":
        settings["tempering"] = fitted.tempering
    settings |= {"vary_by": value_model.vary_by, "hurdle": value_model.hurdle}
    return settings, fitted.words


def _split(
    source: Source, words: "Words | None", test: float, by_time: str | None, time: str | None,
    seed: int,
) -> "Split":  # fmt: skip
    """Read the data and hold out some entries, at random or by time."""
    if by_time is None:
        if time is not None:
            raise InputError("--time requires --by-time DATE.")
        entries = source.read(like=words).data
        from hcpf.evaluate import split

        return split(entries, test=test, validation=0.01, random_state=seed)
    before, after = source.read_before_and_after(by_time, time, words)
    from hcpf.evaluate import split_by_time

    parts = split_by_time(before, after, validation=0.01, random_state=seed)
    n_left = after.n_observed - len(parts.test)
    note(
        f"Before {by_time}: {before.n_observed:,} pairs. From then on: {len(parts.test):,} new "
        f"pairs to test on; {n_left:,} pairs were observed before, or their user or item was not. "
        f"Probabilities refer to a period as long as that before {by_time}."
    )
    return parts


def _as_json(found: "Evaluation", value_model: dict[str, Any], components: int) -> dict[str, Any]:
    row, simple = found.model, found.baselines[0]
    assert row.scores is not None
    assert row.calibration is not None
    return {
        **value_model,
        "components": components,
        "passes": row.passes,
        "seconds": row.seconds,
        "train": found.n_train,
        "test": found.n_test,
        "scores": row.scores.as_dict(),
        "baseline": {"name": simple.name, "scores": simple.scores and simple.scores.as_dict()},
        "ranking": row.ranking
        and {**row.ranking.as_dict(), "n": row.ranking.n, "users": row.ranking.n_users},
        "calibration": row.calibration.as_dict(),
    }


def _show(found: "Evaluation", value_model: dict[str, Any]) -> None:
    from hcpf.data.words import count
    from hcpf.evaluate.scoring import score_text

    row, simple = found.model, found.baselines[0]
    assert row.scores is not None
    assert row.calibration is not None

    def text(name: str) -> str:
        """Return a score with that of the simplest baseline."""
        own, other = row.score(name), simple.score(name)
        shown = score_text(name, own)
        if other is None:
            return shown
        return f"{shown} ({simple.name.lower()}: {score_text(name, other)})"

    show_facts(
        {
            "trained on": f"{found.n_train:,} entries, {row.passes} passes, "
            f"{duration(row.seconds)}",
            "tested on": f"{count(found.n_test, 'entry')} and "
            f"{count(found.n_missing, 'missing pair')}",
            "element": element_text(value_model),
        },
        "Evaluation",
    )
    show_facts({label: text(name) for name, label in _SCORES.items()}, "\nHeld-out pairs")
    if (ranked := row.ranking) is not None:
        show_facts(
            {
                f"NDCG@{ranked.n}": text("ndcg"),
                f"recall@{ranked.n}": text("recall"),
                "users with a hit": f"{percent(ranked.hit_rate.value)} of {ranked.n_users:,}",
            },
            "\nRanking among all items",
        )
    show_facts(_calibration_facts(row.calibration), "\nCalibration")
    warn_of_few_tests(found.n_test)


def warn_of_few_tests(n_test: int) -> None:
    """Warn that scores on a few entries are uncertain."""
    if n_test < _FEW_TESTS:
        from hcpf.data.words import count

        note(f"Tested on {count(n_test, 'entry')} only: these scores are very uncertain.")


def _calibration_facts(found: "Calibration") -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if (curve := found.reliability) is not None:
        error = 100.0 * curve.expected_error
        facts["probability"] = f"off by {error:.2g} percentage points on average"
        best = len(curve.predicted) - 1
        facts["most likely tenth"] = (
            f"predicted {percent(float(curve.predicted[best]))}, "
            f"observed {percent(float(curve.observed[best]))}"
        )
    facts |= {
        f"{level:.0%} intervals": f"contain {percent(share.value)} of the values"
        for level, share in found.pit_coverage.items()
    }
    return facts
