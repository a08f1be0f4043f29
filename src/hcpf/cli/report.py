"""``hcpf report``."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.files import prepare_file, replacing
from hcpf.cli.models import load_model
from hcpf.cli.screen import show_json
from hcpf.cli.sources import Source, read_names
from hcpf.errors import MissingDependencyError


def report(
    model: options.ModelFolder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write.", show_default=False)
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Other data than those the model was fitted to."),
    ] = None,
    user: options.User = None,
    item: options.Item = None,
    response: options.Response = None,
    duplicates: options.OnDuplicates = options.Duplicates.error,
    header: options.Header = None,
    delimiter: options.Delimiter = None,
    names: options.Names = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Write a report of a model: what it learnt, and how far it can be trusted."""
    write_report = _writer()
    prepare_file(output, overwrite=overwrite)
    fitted = load_model(model)
    entries = None
    if data:
        entries = Source(data, user, item, response, duplicates, header, delimiter).read()
    known = read_names(names, fitted.items_)
    with replacing(output) as partial:
        # The ending may tell the writer the format, so it stays.
        named = partial.with_name(f"{partial.name}{output.suffix}")
        try:
            write_report(fitted, named, data=entries, names=known or None)
            named.replace(partial)
        finally:
            named.unlink(missing_ok=True)
    if as_json:
        show_json({"path": str(output)})


def _writer() -> Any:
    try:
        return import_module("hcpf.report").write_report
    except ModuleNotFoundError as error:
        if error.name != "hcpf.report":
            raise
    except AttributeError:
        pass
    raise MissingDependencyError("this version of hcpf writes no reports yet: upgrade hcpf.")
