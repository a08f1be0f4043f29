"""Writing of a report: gather the facts, fill in the templates, and write one file."""

import base64
import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from hcpf._checks import flag, whole
from hcpf._progress import Advance, progress_bar
from hcpf._version import __version__
from hcpf.core.axis import Axis
from hcpf.data.names import item_labels, read_names
from hcpf.data.words import capitalized, count, plural, with_article
from hcpf.elements import Degenerate, Presence
from hcpf.errors import InputError
from hcpf.evaluate import Evaluation, evaluate_model, excluded_split
from hcpf.evaluate.evaluation import settings_text
from hcpf.evaluate.predictive_checks import check_activity, check_values
from hcpf.evaluate.scoring import explains_missing
from hcpf.io import as_path, atomic_path, os_errors
from hcpf.model.components import summarize_components
from hcpf.model.fitted import FittedModel
from hcpf.model.recommend import DETAILS_LEVEL
from hcpf.model.resolve import fitted_model, training_data
from hcpf.report import sections
from hcpf.report.drawing import DARK, LIGHT, style_sheet
from hcpf.report.profiles import example_users, for_script, sample_users, user_profiles
from hcpf.report.text import label, listed, percent, short

_STAGES = 5  # of writing a report, for the progress bar


def write_report(
    model: Any,
    output: str | Path,
    *,
    evaluation: Evaluation | str | Path | None = None,
    names: Any = None,
    users: Any = None,
    random_state: int = 0,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Path:
    """Write a report on a fitted model: one HTML file that needs nothing else.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model, or the folder of a saved one.
    output : path
        The file to write.
    evaluation : Evaluation or path, optional
        What ``hcpf.evaluate.evaluate_model`` returned, or a file that ``Evaluation.save`` or
        ``hcpf evaluate --output`` wrote. By default the entries that the model was given but that
        were excluded from training are scored, if there are any; otherwise the report says how to
        make an evaluation.
    names : dict or path, optional
        Readable names of items by their ids; or a CSV or Parquet file with columns id and name.
    users : ids, optional
        Example users to show; by default four, from active to occasional ones. The look-up
        includes them, the most active users and a random sample.
    random_state : int, default 0
        Seed of all draws.
    overwrite : bool
        Whether a file of that name may be replaced.
    progress : bool, optional
        Whether to show a progress bar; by default only in a terminal.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        If an argument cannot be used as it was given, or the file exists or cannot be written.
    """
    target = as_path("output", output)
    if os.path.lexists(target) and (not flag("overwrite", overwrite) or target.is_dir()):
        raise InputError(f"{target} exists already: pass overwrite=True to replace a file.")
    seed = whole("random_state", random_state, least=0)
    with progress_bar(progress, "Report", _STAGES, is_even=False) as advance:
        advance(0, "reading the model")
        fitted = fitted_model(model)
        advance(1, "scoring held-out pairs")
        scored = _evaluation(fitted, evaluation)
        text = _page(fitted, scored, names, users, seed, advance)
    with os_errors(InputError, f"{target} cannot be written"), atomic_path(target) as partial:
        partial.write_text(text, encoding="utf-8", errors="replace")
    return target


def _evaluation(model: FittedModel, given: Any) -> Evaluation | None:
    """Return the evaluation given, or that of the entries excluded from training."""
    if given is None:
        parts = excluded_split(model)
        if parts is None:
            return None
        # Held-out items can only be recommended if they do not count as seen.
        return evaluate_model(replace(model, data=parts.train), parts, max_baselines=0)
    found = Evaluation.load(given) if isinstance(given, (str, Path)) else given
    if not isinstance(found, Evaluation):
        raise InputError(
            f"evaluation must be an Evaluation or the path of one; got {type(found).__name__}."
        )
    if (found.n_users, found.n_items) != training_data(model).shape:
        raise InputError(
            f"The evaluation is of {found.n_users:,} users and {found.n_items:,} items, the model "
            f"of {len(model.users):,} and {len(model.items):,}. Evaluate the model's own data."
        )
    return found


def _page(
    model: FittedModel, evaluation: Evaluation | None, names: Any, users: Any, seed: int,
    advance: Advance,
) -> str:  # fmt: skip
    labels = [label(text) for text in item_labels(model.items, read_names(names, model.items))]
    shown = example_users(model, users)
    rng = np.random.default_rng(seed)
    advance(1, "looking at users")
    people = user_profiles(model, sample_users(model, shown, rng), labels)
    examples = user_profiles(model, shown, labels, all_reasons=True)
    advance(1, "comparing data with the model")
    check = evaluation.values if evaluation else check_values(model, None, rng)
    has_missing = explains_missing(model)
    advance(1, "drawing")
    checks = {axis: check_activity(model, axis, rng) for axis in Axis} if has_missing else {}
    settings, script = settings_text(model), _source("script.js")
    headline = sections.headline(model, evaluation)
    is_constant = isinstance(model.element, Degenerate) and headline["one_value"] is not None
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _templates()
        .get_template("report.html")
        .render(
            # Only this script may run, and nothing may be fetched, even if the data contain markup.
            policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
            f"script-src 'sha256-{digest}'",
            light=LIGHT,
            dark=DARK,
            style=style_sheet() + _source("style.css"),
            script=script,
            settings=settings,
            version=__version__,
            date=f"{datetime.now(UTC):%d %B %Y}",
            w=model.words,
            named={"user": model.words.user, "item": model.words.item},
            headline=headline,
            prediction=evaluation and sections.prediction(evaluation, settings),
            values=sections.values(model, check),
            typical=sections.typical(model, labels, seed),
            convergence=sections.convergence(model),
            activity=sections.activity(checks, model.words),
            components=sections.components(model, summarize_components(model), labels),
            level=DETAILS_LEVEL,
            has_missing=has_missing,
            has_values=not (is_constant or isinstance(model.element, Presence)),
            n_fits=len(model.posteriors),
            n_users=len(model.users),
            examples=examples,
            people=people,
            people_json=for_script(people),
        )
    )


@cache
def _source(name: str) -> str:
    """Return a file of the templates' folder as it is."""
    folder = resources.files("hcpf.report").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


def _named(word: str, named: dict[str, str]) -> str:
    """Return the reader's word for "user" or "item"."""
    return named[word]


@jinja2.pass_context
def _with_currency(context: jinja2.runtime.Context, value: float) -> str:
    """Return a value as text with the currency of the data, if it has one."""
    text, currency = short(value), context["w"].currency
    return f"−{currency}{text[1:]}" if text.startswith("−") else f"{currency}{text}"


@cache
def _templates() -> jinja2.Environment:
    """Return the templates, which escape all text that is not markup already."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("hcpf.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "counted": count,
        "integer": "{:,}".format,
        "listed": listed,
        "percent": percent,
        "short": short,
        "sort_key": "{:.6g}".format,
        "article": with_article,
        "capitalized": capitalized,
        "money": _with_currency,
        "named": _named,
        "plural": plural,
    }
    found.filters.update(filters)
    found.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False, "separators": (",", ":"), "allow_nan": False,
    }  # fmt: skip
    return found
