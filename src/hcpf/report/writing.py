"""Writing a report: gather the facts, lay them out, and put one file in its place."""

import base64
import hashlib
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._checks import flag, whole
from hcpf._version import __version__
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.model.predict import as_path
from hcpf.report import habits, people, portraits, scoreboard, sections
from hcpf.report.components import components
from hcpf.report.degrees import degrees
from hcpf.report.evaluation import Evaluation, NotEvaluated, evaluate_model
from hcpf.report.markup import Markup, embedded_json, fill, joined, source
from hcpf.report.models import fitted_model
from hcpf.report.names import labels
from hcpf.report.responses import response_fit

_EXPLAINED = 3  # recommendations of each user in the table, if there is one fit to look at


def write_report(
    model: HCPF | str | Path,
    output: str | Path,
    *,
    data: Any = None,
    names: Any = None,
    users: Any = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Path:
    """Write a report on a fitted model: one HTML file that needs nothing else, offline too.

    Parameters
    ----------
    model : HCPF or path
        A fitted model, or the folder of a saved one.
    output : path
        The file to write.
    data : Interactions, matrix or Split, optional
        What to score predictions on. By default the entries that the model was fitted to: a model
        with the same settings is fitted to 80% of them and scored on the rest, and so it is for
        other Interactions or another matrix. A ``Split`` to whose training part the model was
        fitted is used as it is, without a second fit.
    names : dict or path, optional
        Readable names of items by their ids; or a CSV or Parquet file with columns id and name.
    users : ids, optional
        Example users to show; by default a few from busy to occasional ones.
    seed : int
        Seed of the split, of the second fit and of all draws.
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
    text = _page(fitted, data, names, users, whole("seed", seed, least=0))
    temporary = target.with_name(f".{target.name}.part")
    try:
        temporary.write_text(text, encoding="utf-8", errors="replace")
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from None
    finally:
        with suppress(OSError):
            temporary.unlink()
    return target


def _page(model: HCPF, data: Any, names: Any, users: Any, seed: int) -> str:
    known = labels(model.items_, names)
    shown = people.examples(model, users)
    rng = np.random.default_rng(seed)
    # To find reasons takes most of the time, once for every fit.
    explained = max(1, _EXPLAINED // len(model.posteriors_))
    everyone = people.describe(model, people.looked_up(model, shown, rng), explained)
    evaluation = evaluate_model(model, data, seed)
    parts = [
        sections.headline(model, evaluation),
        scoreboard.prediction(evaluation),
        _response(model, evaluation, rng),
        habits.habits(model, known, np.random.default_rng(seed)),
        sections.convergence(model),
        _activity(model, rng),
        sections.factors(model, components(model), known),
        portraits.examples(model, people.describe(model, shown), known),
        portraits.lookup(model, everyone, known),
    ]
    script = source("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill(
        "page.html",
        # Only this very script may run, and nothing may be fetched, whatever the data hold.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'",
        style=Markup(source("style.css")),
        script=Markup(script),
        usual=habits.link(model),
        sections=joined(parts),
        people=embedded_json(portraits.lookup_data(model, everyone, known)),
        settings=_settings(model),
        version=__version__,
        date=f"{datetime.now(UTC):%d %B %Y}",
    )


def _settings(model: HCPF) -> str:
    """The model in a few words."""
    per = {"user": " by user", "item": " by item", "both": " by user and item", None: ""}
    once = ", once for each pair" if model.element_.once else ""
    element = model.element_.name.replace("_", " ") + per[model.element_.per] + once
    return f"{len(model.posteriors_[0].users.mean_[0])} factors; the element: {element}"


def _response(
    model: HCPF, evaluation: Evaluation | NotEvaluated, rng: np.random.Generator
) -> Markup:
    if isinstance(evaluation, NotEvaluated):
        return sections.response(model, response_fit(model, None, rng))
    scored = evaluation.model.model
    return sections.response(scored, response_fit(scored, evaluation.split, rng))


def _activity(model: HCPF, rng: np.random.Generator) -> Markup:
    if model.train_on == "observed":
        return fill("no_activity.html")
    return sections.activity(degrees(model, "users", rng), degrees(model, "items", rng))
