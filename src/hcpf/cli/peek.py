"""The layout of a file as the command line asks for it; see `hcpf.data.detect`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hcpf.cli.columns import Column
from hcpf.data.detect import detect_layout


@dataclass(frozen=True)
class Layout:
    """The columns of a file, and whether its first line names them."""

    columns: Sequence[Column]
    header: bool


def peek(path: Path, delimiter: str | None, header: bool | None) -> Layout:
    """Look at the columns of a file; the rules are those of reading it."""
    layout = detect_layout(path, delimiter, header)
    columns = [
        Column(column.name, "whole" if column.kind == "integer" else column.kind)
        for column in layout.columns
    ]
    return Layout(columns, layout.header)
