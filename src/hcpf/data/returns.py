"""Returns and corrections: negative values among amounts or counts."""

import numpy as np

from hcpf._types import BoolArray
from hcpf.data.columns import Triples, count
from hcpf.data.read_options import Returns
from hcpf.data.rows import BadRows

_FEW = 0.5
"""Share of negative values below which they are returns if the column has amounts or counts."""
_ROUNDING = 1e-9
"""A sum below this share of the sum of absolute values is 0: 0.1 + 0.2 - 0.3 is not."""


def settle_returns(
    triples: Triples, name: str, returns: Returns, *, has_amounts: bool
) -> tuple[Triples, list[str]]:
    """Return triples without returns, and what was done in a sentence.

    Parameters
    ----------
    triples : Triples
        All rows.
    name : str
        The column of the values, for messages.
    returns : {"auto", "net", "drop", "keep", "error"}
        "net" leaves out pairs whose rows add up to 0 or less, "drop" leaves out negative rows,
        "keep" does nothing. "auto" is "error" if a column of amounts or counts has some negative
        values, and "keep" otherwise.
    has_amounts : bool
        Whether the values are amounts of money or counts.
    """
    if returns == "keep":
        return triples, []
    negative = triples.values < 0.0
    n_negative = int(negative.sum())
    if returns == "net":
        return _net(triples, n_negative)
    if not n_negative:
        return triples, []
    if returns == "drop":
        dropped = f"Returns: dropped {count(n_negative, 'row')} with a negative value."
        return triples.select(~negative), [dropped]
    if returns == "error" or (has_amounts and n_negative < _FEW * len(negative)):
        _refuse(triples, name, negative)
    return triples, [
        f"{name}: {count(n_negative, 'value')} of {len(negative):,} are negative and kept "
        "(otherwise pass returns=...)."
    ]


def _refuse(triples: Triples, name: str, negative: BoolArray) -> None:
    bad_rows, positions = BadRows(), np.flatnonzero(negative)
    bad_rows.add_kept(
        f"Column {name!r} has negative values: {{rows}}",
        "If these are returns, pass returns='net' to subtract them from the purchases of the same "
        "pair, or returns='drop' to drop these rows; if values may be negative, returns='keep'.",
        triples.locator,
        positions,
        [_Number(triples.values[position]) for position in positions[:3].tolist()],
    )
    bad_rows.raise_if_any()


class _Number(float):
    def __repr__(self) -> str:
        return f"{float(self):.12g}"


def _net(triples: Triples, n_negative: int) -> tuple[Triples, list[str]]:
    """Leave out the rows of all pairs whose sum is 0 or less."""
    keys = triples.rows.astype(np.int64) * len(triples.items) + triples.columns
    _, pair = np.unique(keys, return_inverse=True)
    totals = np.bincount(pair, triples.values)
    sizes = np.bincount(pair, np.abs(triples.values))
    gone = totals <= _ROUNDING * sizes
    remark = (
        f"Returns: {count(n_negative, 'negative row')} subtracted; left out "
        f"{count(int(gone.sum()), 'pair')} at or below 0."
    )
    return (triples.select(~gone[pair]) if gone.any() else triples), [remark]
