"""``hcpf report``."""

from pathlib import Path
from typing import Annotated

import typer

from hcpf.cli import options
from hcpf.cli.inputs import load_model, parse_ids, read_names
from hcpf.cli.output import note_written, prepare_file, show_json


def report(
    model: options.ModelFolder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write.", show_default=False)
    ],
    evaluation: Annotated[
        Path | None,
        typer.Option(
            "--evaluation", "-e", show_default=False,
            help="File that [b]hcpf evaluate --output[/b] wrote, for the section on predictions.",
        ),
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(
            "--user", metavar="ID", help="Id of a user to show as an example; may be repeated.",
            show_default=False,
        ),
    ] = None,
    names: options.Names = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Write a report on a model: what it found, and how well it predicts."""
    from hcpf.evaluate import Evaluation
    from hcpf.report import write_report

    prepare_file(output, overwrite=overwrite)
    scored = None if evaluation is None else Evaluation.load(evaluation)
    fitted = load_model(model)
    known = read_names(names, fitted.items)
    users = parse_ids(fitted.user_index, user) if user else None
    existed = output.exists()
    write_report(
        fitted, output, evaluation=scored, names=known or None, users=users, overwrite=overwrite
    )
    note_written(output, replaced=existed)
    if as_json:
        show_json({"path": str(output)})
