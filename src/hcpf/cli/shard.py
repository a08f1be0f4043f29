"""``hcpf shard``."""

from pathlib import Path
from typing import Annotated

import typer

from hcpf.cli import options
from hcpf.cli.errors import name_options
from hcpf.cli.inputs import Source, with_source
from hcpf.cli.output import note, percent, readable_size, show_facts, show_json, size


@with_source
def shard(
    source: Source,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder to write the shards to.", show_default=False),
    ],
    shards: Annotated[
        int,
        typer.Option(
            "--shards", min=1, metavar="N", help="Number of shards; at least as many as workers."
        ),
    ] = 1,
    append: Annotated[
        bool, typer.Option("--append", help="Add new users to the shards in the folder.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Write data to a folder that commands read without loading it into memory.

    Files are streamed: memory is bounded by the numbers of users and items. The folder is then
    passed to fit, evaluate, info and compare instead of files.
    """
    from hcpf.data.shards.folder import Shards

    if source.is_table():
        _stream(source, output, shards, append)
    else:
        source.read().data.to_shards(output, n_shards=shards, append=append)
    data = Shards.open(output, check=False)
    n_bytes = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    if as_json:
        show_json(
            {
                "path": str(output), "shards": data.n_shards, "users": data.n_users,
                "items": data.n_items, "observed": data.n_observed, "bytes": n_bytes,
            }
        )  # fmt: skip
        return
    show_facts(
        {
            "data": size(data.n_users, data.n_items),
            "observed": f"{data.n_observed:,} ({percent(data.density)} of all pairs)",
            "shards": f"{data.n_shards:,} ({readable_size(n_bytes)})",
        },
        f"Shards {output}",
    )


def _stream(source: Source, output: Path, n_shards: int, append: bool) -> None:
    """Write the rows of files as shards; report on stderr what was decided."""
    from hcpf.data.shards.streaming import stream_to_shards

    files, _ = source.open_files()
    _, remarks = stream_to_shards(files, output, n_shards=n_shards, append=append)
    for remark in remarks:
        note(name_options(remark))
