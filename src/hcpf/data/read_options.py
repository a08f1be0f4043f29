"""The options of reading a table: one declaration for Python and the command line."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from hcpf._checks import flag
from hcpf.data.canonical import Duplicates
from hcpf.errors import InputError

DuplicatesChoice = Literal["auto"] | Duplicates
Returns = Literal["auto", "net", "drop", "keep", "error"]
ExcludeItems = str | Path | int | Sequence[str | Path | int]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a table becomes entries; `Interactions.read` describes each option."""

    duplicates: DuplicatesChoice = "auto"
    returns: Returns = "auto"
    drop_blank_ids: bool = False
    exclude_items: ExcludeItems = ()
    decimal: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    sheet: str | None = None
    sql: str | None = None
    layer: str | None = None
    use_raw: bool = False

    def __post_init__(self) -> None:
        _check_choice("duplicates", self.duplicates, (*get_args(Duplicates), "auto"))
        _check_choice("returns", self.returns, get_args(Returns))
        flag("drop_blank_ids", self.drop_blank_ids)
        flag("use_raw", self.use_raw)
        if self.header is not None:
            flag("header", self.header)
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        check_delimiter(self.delimiter)
        _check_encoding(self.encoding)
        for name in ("sheet", "sql", "layer"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name} must be text, got {type(value).__name__}.")
        if self.returns == "net" and self.duplicates not in ("auto", "sum"):
            raise InputError(
                f"returns='net' adds up the rows of a pair, which duplicates={self.duplicates!r} "
                "contradicts. Remove one of them."
            )


def check_delimiter(delimiter: Any) -> None:
    """Raise an InputError unless ``delimiter`` is None or one usable character."""
    if delimiter is None:
        return
    single = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not single or delimiter in '\0\r\n"':
        raise InputError(f"delimiter must be one ASCII character, got {delimiter!r}.")


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise InputError(f"{name} must be one of {known}, got {value!r}.")


def _check_encoding(encoding: Any) -> None:
    if encoding is None:
        return
    try:
        "".encode(encoding)  # codecs.lookup would accept base64, which is not text
        codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"encoding={encoding!r} is unknown. Pass for example encoding='cp1252' (Windows), "
            "'latin-1', 'utf-8' or 'utf-16'."
        ) from None
