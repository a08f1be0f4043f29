"""Negative values of a table: returns to subtract or to drop, values to keep, or an error.

Reading a table and streaming it to shards share these rules and messages.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import BoolArray
from hcpf.data.guess import has_amounts
from hcpf.data.read_options import Returns
from hcpf.data.words import count

if TYPE_CHECKING:
    from hcpf.data.columns import Triples

ADVICE = (
    "If these are returns, pass returns='net' to subtract them from the purchases of the same "
    "pair, or returns='drop' to drop these rows; if values may be negative, returns='keep'."
)
REMEDY = "returns='net'"
"""What fixes negative values, together with the remedies of other bad rows."""

_FEW = 0.5
"""Share of negative values below which they are returns if the column has amounts or counts."""
_ROUNDING = 1e-9
"""A sum below this share of the sum of absolute values is 0: 0.1 + 0.2 - 0.3 is not."""


class _Number(float):
    def __repr__(self) -> str:
        return f"{float(self):.12g}"


def describe_problem(name: str) -> str:
    """Return what is wrong with the negative values of a column."""
    return f"Column {name!r} has negative values"


def first_values(values: NDArray[Any]) -> Sequence[float]:
    """Return the first values as messages show them."""
    return [_Number(value) for value in values[:3].tolist()]


def are_undecided(
    returns: Returns, n_negative: int, n_values: int, name: str, currency: str
) -> bool:
    """Return whether negative values are an error: returns that no option decides about."""
    if returns == "auto":
        return 0 < n_negative < _FEW * n_values and bool(currency or has_amounts(name))
    return returns == "error" and n_negative > 0


def without_value(triples: "Triples") -> tuple[BoolArray, int]:
    """Return which rows belong to pairs whose sum is 0 or less, and the number of these pairs."""
    keys = triples.rows.astype(np.int64) * len(triples.items) + triples.columns
    _, pair = np.unique(keys, return_inverse=True)
    totals, sizes = (np.bincount(pair, x) for x in (triples.values, np.abs(triples.values)))
    gone = totals <= _ROUNDING * sizes
    return gone[pair], int(gone.sum())


def describe(returns: Returns, name: str, n_negative: int, n_values: int, n_gone: int) -> list[str]:
    """Return what was done about negative values, in a sentence; nothing where there are none.

    ``n_gone`` is the number of pairs that were left out at or below 0.
    """
    if returns == "net":
        subtracted = f"Returns: {count(n_negative, 'negative row')} subtracted"
        return [f"{subtracted}; left out {count(n_gone, 'pair')} at or below 0."]
    if returns == "drop":
        free = f"; left out {count(n_gone, 'pair')} of 0" if n_gone else ""
        dropped = f"Returns: dropped {count(n_negative, 'row')} with a negative value{free}."
        return [dropped] if n_negative or n_gone else []
    if returns == "keep" or not n_negative:
        return []
    return [
        f"{name}: {count(n_negative, 'value')} of {n_values:,} are negative and kept "
        "(otherwise pass returns=...)."
    ]
