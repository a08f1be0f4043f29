"""Predictions for pairs with intervals, in a table."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf.data.canonical import IdArray
from hcpf.distributions.intervals import value_intervals
from hcpf.model.tables import Table

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

_BLOCK = 1 << 20  # pairs predicted at once


def predict_table(model: "FittedModel", users: Any, items: Any, level: float = 0.9) -> Table:
    """Return the predictions for pairs with intervals of their values.

    Parameters
    ----------
    model : FittedModel
    users, items : ids
        Users and items of the pairs, of equal length.
    level : float, default 0.9
        Probability of the interval.

    Returns
    -------
    Table
        Columns: user, item, probability, response (the value if observed), expected (the product of
        the two), and low and high (bounds of the value if observed).
    """
    predicted: Any = model.predict_distribution(users, items)
    low, high = value_intervals(predicted, level)
    return Table(
        user=users,
        item=items,
        probability=predicted.prob_observed,
        response=predicted.mean_observed,
        expected=predicted.mean,
        low=low,
        high=high,
    )


def predict_all(
    model: "FittedModel", users: IdArray, items: IdArray, level: float = 0.9
) -> Iterator[Table]:
    """Yield the predictions of some users for some items, a few users at a time."""
    step = max(1, _BLOCK // max(len(items), 1))
    for first in range(0, len(users), step):
        block = users[first : first + step]
        pairs = np.repeat(block, len(items)), np.tile(items, len(block))
        yield predict_table(model, *pairs, level)
