"""Writing a report: gather the facts, lay them out, and write one file."""

import base64
import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._checks import flag, whole
from hcpf._version import __version__
from hcpf.core.axis import Axis
from hcpf.data.names import item_labels, read_names
from hcpf.errors import InputError
from hcpf.evaluate import Evaluation, evaluate_model, excluded_split
from hcpf.evaluate.evaluation import settings_text
from hcpf.evaluate.predictive_checks import check_activity, check_values
from hcpf.evaluate.protocols import explains_missing
from hcpf.io import as_path, atomic_path, os_errors
from hcpf.model.components import summarize_components
from hcpf.model.fitted import FittedModel
from hcpf.model.profiles import example_users, sample_users, user_profiles
from hcpf.model.resolve import fitted_model, training_data
from hcpf.report import portraits, scoreboard, sections, typical
from hcpf.report.markup import Markup, embedded_json, fill, joined, source

_EXPLAINED = 3  # recommendations of each user in the table, if the model is a single fit


def write_report(
    model: Any,
    output: str | Path,
    *,
    evaluation: Evaluation | str | Path | None = None,
    names: Any = None,
    users: Any = None,
    seed: int = 0,
    overwrite: bool = False,
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
        Example users to show; by default a few from active to occasional ones.
    seed : int
        Seed of all draws.
    overwrite : bool
        Whether a file of that name may be replaced.

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
    fitted = fitted_model(model)
    scored = _evaluation(fitted, evaluation)
    text = _page(fitted, scored, names, users, whole("seed", seed, least=0))
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
        return evaluate_model(replace(model, data=parts.train), parts, baselines=False)
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
    model: FittedModel, evaluation: Evaluation | None, names: Any, users: Any, seed: int
) -> str:
    known = item_labels(model.items, read_names(names, model.items))
    shown = example_users(model, users)
    rng = np.random.default_rng(seed)
    # Finding reasons takes most of the time, once per fit.
    explained = max(1, _EXPLAINED // len(model.posteriors))
    everyone = user_profiles(model, sample_users(model, shown, rng), explained)
    settings = settings_text(model)
    parts = [
        sections.headline(model, evaluation),
        scoreboard.prediction(evaluation, settings),
        sections.values(model, evaluation.values if evaluation else check_values(model, None, rng)),
        typical.section(model, known, np.random.default_rng(seed)),
        sections.convergence(model),
        _activity(model, rng),
        sections.components(model, summarize_components(model), known),
        portraits.examples(model, user_profiles(model, shown), known),
        portraits.lookup(model, everyone, known),
    ]
    script = source("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill(
        "page.html",
        # Only this script may run, and nothing may be fetched, whatever the data hold.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'",
        style=Markup(source("style.css")),
        script=Markup(script),
        typical=typical.link(model),
        sections=joined(parts),
        people=embedded_json(portraits.lookup_data(model, everyone, known)),
        settings=settings,
        version=__version__,
        date=f"{datetime.now(UTC):%d %B %Y}",
    )


def _activity(model: FittedModel, rng: np.random.Generator) -> Markup:
    if not explains_missing(model):
        return fill("no_activity.html")
    return sections.activity(*(check_activity(model, axis, rng) for axis in Axis))
