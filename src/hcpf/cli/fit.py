"""``hcpf fit``."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.elements import describe_element, element_text, parse_element
from hcpf.cli.errors import INTERRUPTED
from hcpf.cli.files import readable_size
from hcpf.cli.models import prepare_model
from hcpf.cli.screen import note as say
from hcpf.cli.screen import show_facts, show_json
from hcpf.cli.sources import Source

if TYPE_CHECKING:
    from hcpf.estimator import HCPF


def fit(
    data: options.DataFiles,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model.", show_default=False)
    ],
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
    tol: options.Tolerance = 1e-4,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    checkpoint: options.Checkpoint = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to data and save it.

    Ctrl-C ends the fit after the current pass and saves the model as it is then.
    """
    prepare_model(output, overwrite=overwrite)
    chosen = parse_element(element, per and per.value, once)
    source = Source(data, user, item, response, duplicates, header, delimiter)
    entries = source.read()
    from hcpf.estimator import HCPF

    began = time.perf_counter()
    model = HCPF(
        components,
        element=chosen,
        train_on=train_on.value,
        n_fits=fits,
        max_iter=max_iter,
        tol=tol,
        random_state=seed,
        n_threads=threads,
        checkpoint=checkpoint,
    ).fit(entries)
    seconds = time.perf_counter() - began
    existed = output.exists()
    model.save(output, overwrite=overwrite)
    size = sum(file.stat().st_size for file in output.iterdir())
    say(f"{'Overwrote' if existed else 'Wrote'} {output} ({readable_size(size)}).")
    facts = summary(model) | {"seconds": round(seconds, 2), "path": str(output), "bytes": size}
    show_json(facts) if as_json else _show(facts)
    if model.interrupted_:
        say(how_to_go_on(model, output, checkpoint, overwrite))
        raise typer.Exit(INTERRUPTED)


def summary(model: "HCPF") -> dict[str, Any]:
    """What a fit came to, as JSON."""
    last = model.history_[-1] if model.history_ else None
    users, items = model.interactions_.shape
    return {
        "users": users,
        "items": items,
        "observed": model.interactions_.n_observed,
        "element": describe_element(model.element_),
        "components": model.n_components,
        "fits": len(model.posteriors_),
        "train_on": model.train_on,
        "passes": model.n_iter_,
        "max_iter": model.max_iter,
        "bound": None if last is None else last.elbo,
        "interrupted": model.interrupted_,
        "ended": how_it_ended(model),
    }


def how_it_ended(model: "HCPF") -> str:
    """Why training stopped."""
    if model.interrupted_:
        return "interrupted"
    return "converged" if model.n_iter_ < model.max_iter else "at --max-iter"


def _show(facts: dict[str, Any]) -> None:
    show_facts(
        {
            "data": f"{facts['users']:,} users x {facts['items']:,} items, "
            f"{facts['observed']:,} observed",
            "element": element_text(facts["element"]),
            "components": facts["components"],
            "passes": f"{facts['passes']}, {facts['ended']}",
            "bound": facts["bound"],
            "time": f"{facts['seconds']:.1f} s",
        },
        f"Model {facts['path']}",
    )
    if facts["ended"] == "at --max-iter":
        say("The fit had not settled yet: a larger --max-iter may give a better model.")


def how_to_go_on(model: "HCPF", output: Path, checkpoint: Path | None, overwrite: bool) -> str:
    """What to type after Ctrl-C."""
    state = f"Interrupted after pass {model.n_iter_}: {output} holds the model as it was then."
    if checkpoint is None:
        return f"{state} A fit with --checkpoint FOLDER could be gone on with."
    again = ["hcpf", *sys.argv[1:], *([] if overwrite else ["--overwrite"])]
    return f"{state} To go on: {shlex.join(again)}"
