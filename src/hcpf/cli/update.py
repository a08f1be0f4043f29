"""``hcpf update``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.errors import INTERRUPTED
from hcpf.cli.fit import show_fit
from hcpf.cli.inputs import (
    Source,
    all_in_memory,
    load_model,
    prepare_model,
    with_ids_like,
    with_source,
)
from hcpf.cli.output import note, note_written, show_json
from hcpf.errors import InputError


@with_source
def update(
    model: options.ModelFolder,
    source: Source,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", show_default=False,
            help="Folder to write the new model to. Default: the model itself is replaced.",
        ),
    ] = None,
    user_exposure: options.UserExposure = None,
    item_exposure: options.ItemExposure = None,
    threads: options.Threads = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Add more data to a model, new users and items included, and continue its training.

    If the model has an entry for a pair already, the two are merged by the rule of --duplicates.
    The old model is replaced only when the new one is complete.
    """
    if output is not None:
        prepare_model(output, overwrite=overwrite)
    fitted = load_model(model)
    from hcpf.data.shards.folder import Shards

    if isinstance(fitted.data, Shards):
        raise InputError(
            f"{model} was fitted to shards, but update requires the entries in memory. Write all "
            "data with hcpf shard, and fit a new model to them."
        )
    found = source.read(like=fitted.words)
    entries = with_ids_like(fitted, all_in_memory(found.data))
    from hcpf.estimator import HCPF
    from hcpf.model.inspect import describe_fit

    updated = HCPF.from_model(fitted)
    updated.partial_fit(
        entries, duplicates=found.duplicates, user_exposure=user_exposure,
        item_exposure=item_exposure, n_threads=threads,
    )  # fmt: skip
    new, target = replace(updated.model_, words=fitted.words.joined(found.words)), output or model
    if new.interrupted and output is None:
        note(f"Interrupted: {model} stays as it was.")
        raise typer.Exit(INTERRUPTED)
    existed = target.exists()
    new.save(target, overwrite=overwrite or output is None)
    n_bytes = note_written(target, replaced=existed)
    about = describe_fit(new)
    facts = {
        **about, "path": str(target), "bytes": n_bytes,
        "new_users": about["users"] - len(fitted.users),
        "new_items": about["items"] - len(fitted.items),
        "new_entries": about["observed"] - (fitted.data.n_observed if fitted.data else 0),
    }  # fmt: skip
    if as_json:
        show_json(facts)
    else:
        _show(facts, entries.n_observed, found.duplicates)
    if new.interrupted:
        raise typer.Exit(INTERRUPTED)


def _show(facts: dict[str, Any], n_given: int, duplicates: str) -> None:
    """Print what was added; ``n_given`` is the number of entries in the data."""
    from hcpf.data.words import count

    note(
        f"Added {facts['new_entries']:,} entries, {facts['new_users']:,} users and "
        f"{facts['new_items']:,} items."
    )
    n_again = n_given - int(facts["new_entries"])
    if n_again and duplicates != "error":
        how = {"sum": "values were added", "mean": "mean was taken", "last": "new value counts"}
        note(f"{count(n_again, 'pair')} had an entry before: the {how[duplicates]}.")
    show_fit(facts)
