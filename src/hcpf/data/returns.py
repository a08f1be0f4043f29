"""Returns and corrections: negative values among amounts or counts."""

import numpy as np

from hcpf.data.columns import Triples
from hcpf.data.read_options import Returns
from hcpf.data.words import count

_ROUNDING = 1e-9
"""A sum below this share of the sum of absolute values is 0: 0.1 + 0.2 - 0.3 is not."""


def settle_returns(triples: Triples, name: str, returns: Returns) -> tuple[Triples, list[str]]:
    """Return triples without returns, and what was done in a sentence.

    Negative values that are an error were found before, with all other bad rows.

    Parameters
    ----------
    triples : Triples
        All rows.
    name : str
        The column of the values, for messages.
    returns : {"auto", "net", "drop", "keep", "error"}
        "net" leaves out pairs whose rows add up to 0 or less, "drop" leaves out negative rows and
        then pairs of 0, all others do nothing.
    """
    if returns == "keep":
        return triples, []
    negative = triples.values < 0.0
    n_negative = int(negative.sum())
    if returns == "net":
        settled, n_gone = _without_nothing(triples)
        subtracted = f"Returns: {count(n_negative, 'negative row')} subtracted"
        return settled, [f"{subtracted}; left out {count(n_gone, 'pair')} at or below 0."]
    if returns == "drop":
        settled, n_gone = _without_nothing(triples.select(~negative) if n_negative else triples)
        free = f"; left out {count(n_gone, 'pair')} of 0" if n_gone else ""
        dropped = f"Returns: dropped {count(n_negative, 'row')} with a negative value{free}."
        return settled, [dropped] if n_negative or n_gone else []
    if not n_negative:
        return triples, []
    return triples, [
        f"{name}: {count(n_negative, 'value')} of {len(negative):,} are negative and kept "
        "(otherwise pass returns=...)."
    ]


def _without_nothing(triples: Triples) -> tuple[Triples, int]:
    """Leave out the rows of all pairs whose sum is 0 or less; return the number of pairs, too."""
    keys = triples.rows.astype(np.int64) * len(triples.items) + triples.columns
    _, pair = np.unique(keys, return_inverse=True)
    totals, sizes = (np.bincount(pair, x) for x in (triples.values, np.abs(triples.values)))
    gone = totals <= _ROUNDING * sizes
    return (triples.select(~gone[pair]) if gone.any() else triples), int(gone.sum())
