"""``hcpf fit``."""

import shlex
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf import _defaults
from hcpf.cli import options
from hcpf.cli.errors import INTERRUPTED
from hcpf.cli.inputs import Source, prepare_model, value_model_settings, with_source
from hcpf.cli.output import (
    duration,
    elbo_text,
    element_text,
    ending_text,
    note,
    note_written,
    show_facts,
    show_json,
    size,
)
from hcpf.errors import InputError


@with_source
def fit(
    source: Source,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder to write the model to.", show_default=False),
    ],
    user_exposure: options.UserExposure = None,
    item_exposure: options.ItemExposure = None,
    element: options.ElementName = "auto",
    vary_by: options.VaryBy = None,
    hurdle: options.Hurdle = False,
    quick: options.Quick = False,
    components: Annotated[
        int | None,
        options.model_option(
            "--components",
            "-K",
            min=1,
            metavar="N",
            show_default=False,
            help=f"Number of components. Default: {_defaults.N_COMPONENTS}; 160 with --recipe "
            "paper.",
        ),
    ] = None,
    fits: Annotated[
        int | None,
        options.model_option(
            "--fits",
            min=1,
            metavar="N",
            show_default=False,
            help=f"Number of fits whose rates are averaged. Default: {_defaults.N_FITS}; 1 with "
            "--quick or --recipe paper.",
        ),
    ] = None,
    train_on: options.TrainOn = _defaults.TRAIN_ON,
    max_iter: Annotated[
        int | None,
        options.model_option(
            "--max-iter",
            min=1,
            metavar="N",
            show_default=False,
            help=f"Maximum number of passes over the data. Default: {_defaults.MAX_ITER}; 100 "
            "with Algorithm 1 of --recipe paper.",
        ),
    ] = None,
    tol: options.Tolerance = None,
    recipe: options.Recipe = "default",
    solver: options.SolverName = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    checkpoint: options.Checkpoint = None,
    engine: options.EngineName = "local",
    workers: options.Workers = None,
    address: options.Address = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to data and save it.

    Ctrl-C ends the fit after the current pass and saves the model as it is then. While the element
    is still being chosen, the best one so far is fitted for a few passes.
    """
    prepare_model(output, overwrite=overwrite)
    is_paper = recipe == "paper"
    if is_paper:
        _require_paper(vary_by, hurdle, quick, fits)
    if quick or is_paper:
        element = "quick" if element == "auto" else element
    value_model = value_model_settings(element, vary_by, hurdle, train_on)
    with _interrupted_without_a_model():
        found = source.read()
        from hcpf.estimator import HCPF
        from hcpf.model.inspect import describe_fit

        began = time.perf_counter()
        if is_paper:
            estimator = HCPF.paper(
                components or 160, element=value_model["element"], train_on=train_on,
                solver=solver or "algorithm1", max_iter=max_iter, tol=tol, random_state=seed,
            )  # fmt: skip
        else:
            estimator = HCPF(
                components or _defaults.N_COMPONENTS,
                **value_model,
                n_fits=fits or (1 if quick else _defaults.N_FITS),
                tempering="formula" if quick else "auto",
                solver=solver or "auto",
                max_iter=max_iter or _defaults.MAX_ITER,
                tol=_defaults.TOL if tol is None else tol,
                random_state=seed,
            )
        estimator.fit(
            found.data, user_exposure=user_exposure, item_exposure=item_exposure, n_threads=threads,
            checkpoint=checkpoint, engine=engine, workers=workers, address=address,
        )  # fmt: skip
    seconds, existed = time.perf_counter() - began, output.exists()
    model = replace(estimator.model_, words=found.words)
    model.save(output, overwrite=overwrite)
    n_bytes = note_written(output, replaced=existed)
    facts = {**describe_fit(model), "seconds": seconds, "path": str(output), "bytes": n_bytes}
    show_json(facts) if as_json else show_fit(facts)
    if model.interrupted:
        note(_how_to_resume(output, checkpoint, overwrite))
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _interrupted_without_a_model() -> Generator[None]:
    """Say of Ctrl-C in the block that it leaves no model."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(str(error) or "interrupted; no model was saved.") from None


def _require_paper(vary_by: str | None, hurdle: bool, quick: bool, fits: int | None) -> None:
    """Refuse options that the paper's recipe does not have."""
    given = {
        f"--vary-by {vary_by}": vary_by is not None, "--hurdle": hurdle, "--quick": quick,
        f"--fits {fits}": fits not in (None, 1),
    }  # fmt: skip
    for option, is_given in given.items():
        if is_given:
            raise InputError(
                f"{option} is not part of --recipe paper, which has one fit with a shared mean. "
                f"Remove one of them."
            )


def show_fit(facts: dict[str, Any]) -> None:
    """Print the size of a model and how its training ended."""
    show_facts(
        {
            "data": f"{size(facts['users'], facts['items'])}, {facts['observed']:,} observed",
            "element": element_text(facts),
            "components": facts["components"],
            "fits": facts["fits"],
            "passes": ending_text(facts),
            "ELBO": elbo_text(facts),
            "time": duration(facts["seconds"]),
        },
        f"Model {facts['path']}",
    )
    if facts["ended"] == "max_iter" and facts["tol"] != 0:
        note("The fit did not converge: a larger --max-iter may give a better model.")


def _how_to_resume(output: Path, checkpoint: str | None, overwrite: bool) -> str:
    state = f"{output} contains the model as it was then."
    if checkpoint is None:
        return f"{state} Fits with --checkpoint FOLDER can be resumed."
    again = ["hcpf", *sys.argv[1:], *([] if overwrite else ["--overwrite"])]
    return f"{state} To resume: {shlex.join(again)}"
