"""``hcpf info``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hcpf.cli import options
from hcpf.cli.about_data import describe_data, show_data
from hcpf.cli.about_model import describe_model, show_model
from hcpf.cli.models import MANIFEST
from hcpf.cli.screen import show_json
from hcpf.cli.sources import Source
from hcpf.errors import InputError


def info(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL|DATA",
            help="A saved model, or data as hcpf fit takes them.",
            show_default=False,
        ),
    ],
    user: options.User = None,
    item: options.Item = None,
    response: options.Response = None,
    duplicates: options.OnDuplicates = options.Duplicates.error,
    header: options.Header = None,
    delimiter: options.Delimiter = None,
    names: options.Names = None,
    as_json: options.Json = False,
) -> None:
    """Describe data or a model: size, values, what suits them, and what to beware of.

    Here a pair with more than one row is only counted; its values are added up.
    """
    folder = Path(data[0])
    if folder.is_dir():
        if len(data) > 1:
            raise InputError("give one model, or files.")
        if not (folder / MANIFEST).exists():
            raise InputError(
                f"{folder} is a folder but no model; for files write '{folder}/*.csv'."
            )
        about: dict[str, Any] = describe_model(folder, names)
        show_json(about) if as_json else show_model(about)
        return
    source = Source(data, user, item, response, duplicates, header, delimiter)
    entries, surplus = source.read_counting()
    about = describe_data(entries, surplus)
    show_json(about) if as_json else show_data(about)
