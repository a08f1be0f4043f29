"""``hcpf fit``."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf import _defaults
from hcpf.cli import options
from hcpf.cli.errors import INTERRUPTED
from hcpf.cli.inputs import Source, prepare_model, value_model_settings, with_source
from hcpf.cli.output import (
    duration,
    element_text,
    ending_text,
    note,
    note_written,
    show_facts,
    show_json,
)

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


@with_source
def fit(
    source: Source,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder to write the model to.", show_default=False),
    ],
    element: options.ElementName = "auto",
    vary_by: options.VaryBy = None,
    hurdle: options.Hurdle = False,
    quick: options.Quick = False,
    components: options.Components = _defaults.N_COMPONENTS,
    fits: options.Fits = _defaults.N_FITS,
    train_on: options.TrainOn = _defaults.TRAIN_ON,
    max_iter: options.MaxIter = _defaults.MAX_ITER,
    tol: options.Tolerance = _defaults.TOL,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    checkpoint: options.Checkpoint = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to data and save it.

    Ctrl-C ends the fit after the current pass and saves the model as it is then. While the element
    is still being chosen, the best one so far is fitted for a few passes.
    """
    prepare_model(output, overwrite=overwrite)
    if quick:
        element = "quick" if element == "auto" else element
    value_model = value_model_settings(element, vary_by, hurdle, train_on)
    entries = source.read()
    from hcpf.estimator import HCPF
    from hcpf.model.inspect import describe_fit

    began = time.perf_counter()
    estimator = HCPF(
        components,
        **value_model,
        n_fits=1 if quick else fits,
        tempering="formula" if quick else "auto",
        max_iter=max_iter,
        tol=tol,
        random_state=seed,
    ).fit(entries, n_threads=threads, checkpoint=checkpoint)
    seconds, existed, model = time.perf_counter() - began, output.exists(), estimator.model_
    model.save(output, overwrite=overwrite)
    n_bytes = note_written(output, replaced=existed)
    facts = {**describe_fit(model), "seconds": seconds, "path": str(output), "bytes": n_bytes}
    show_json(facts) if as_json else show_fit(facts)
    if model.interrupted:
        note(_how_to_resume(model, output, checkpoint, overwrite))
        raise typer.Exit(INTERRUPTED)


def show_fit(facts: dict[str, Any]) -> None:
    """Print the size of a model and how its training ended."""
    show_facts(
        {
            "data": f"{facts['users']:,} users x {facts['items']:,} items, "
            f"{facts['observed']:,} observed",
            "element": element_text(facts),
            "components": facts["components"],
            "fits": facts["fits"],
            "passes": ending_text(facts),
            "ELBO": facts["elbo"],
            "time": duration(facts["seconds"]),
        },
        f"Model {facts['path']}",
    )
    if facts["ended"] == "max_iter":
        note("The fit did not converge: a larger --max-iter may give a better model.")


def _how_to_resume(
    model: "FittedModel", output: Path, checkpoint: Path | None, overwrite: bool
) -> str:
    state = f"Interrupted after pass {model.n_iter}: {output} contains the model as it was then."
    if checkpoint is None:
        return f"{state} Fits with --checkpoint FOLDER can be resumed."
    again = ["hcpf", *sys.argv[1:], *([] if overwrite else ["--overwrite"])]
    return f"{state} To resume: {shlex.join(again)}"
