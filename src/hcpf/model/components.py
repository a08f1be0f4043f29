"""Summary of the components of a model: what they explain, and their items."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.posterior import Posterior
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import row_of_entries
from hcpf.elements import Presence
from hcpf.model.fitted import FittedModel

_BLOCK = 1 << 16  # entries distributed over the components at once
_RELEVANCE = 0.4  # weight of an item's share against its lift: lambda of LDAvis


@dataclass(frozen=True, eq=False)
class Components:
    """Components, sorted by what they explain, largest first.

    Attributes
    ----------
    share : ndarray
        Of all expected entries of the matrix, those that each component accounts for.
    item_share : ndarray
        K x items: of the component's expected entries, those of each item, so v_ik / sum_i v_ik.
    lift : ndarray
        K x items: how many times larger that share is than the item's share of everything.
    overlap : ndarray
        K x K: cosine of the components' item shares.
    user_share : ndarray
        K x users: of the component's expected entries, those of each user.
    value_share : ndarray or None
        Of the sum of all values in the training data, what each component accounts for. None
        without the data, with negative values, and where values are ignored.
    """

    share: FloatArray
    item_share: FloatArray
    lift: FloatArray
    overlap: FloatArray
    user_share: FloatArray
    value_share: FloatArray | None

    def __len__(self) -> int:
        return len(self.share)

    def largest(self, component: int, n: int) -> NDArray[np.intp]:
        """Return the items with the largest shares."""
        return np.argsort(-self.item_share[component], kind="stable")[:n]

    def distinctive(self, component: int, n: int) -> NDArray[np.intp]:
        """Return items with a large share here and a small one elsewhere."""
        with np.errstate(divide="ignore"):
            share, lift = np.log(self.item_share[component]), np.log(self.lift[component])
        score = _RELEVANCE * share + (1.0 - _RELEVANCE) * lift
        return np.argsort(-score, kind="stable")[:n]


def summarize_components(model: FittedModel) -> Components:
    """Summarize the components of the model's first (or best) fit."""
    posterior = model.posteriors[0]
    users, items = posterior.users.mean, posterior.items.mean
    by_component = users.sum(axis=0) * items.sum(axis=0)
    order = np.argsort(-by_component, kind="stable")
    share = by_component[order] / by_component.sum()
    item_share, user_share = _shares(items)[order], _shares(users)[order]
    overall = np.maximum(share @ item_share, 1e-300)
    direction = item_share / np.maximum(np.linalg.norm(item_share, axis=1, keepdims=True), 1e-300)
    by_value = None
    if model.data is not None and not isinstance(model.element, Presence):
        by_value = _values_by_component(posterior, model.data)
    return Components(
        share=share,
        item_share=item_share,
        lift=item_share / overall,
        overlap=direction @ direction.T,
        user_share=user_share,
        value_share=None if by_value is None else by_value[order] / by_value.sum(),
    )


def _shares(factors: FloatArray) -> FloatArray:
    """Return the share of each row in each component, K x rows."""
    return (factors / np.maximum(factors.sum(axis=0), 1e-300)).T


def _values_by_component(posterior: Posterior, data: Interactions) -> FloatArray | None:
    """Return the sum of the values, each divided among the components like its rate."""
    matrix, values = data.matrix, data.values.astype(np.float64)
    if values.size == 0 or values.min() < 0 or values.sum() <= 0:
        return None
    users, total = row_of_entries(matrix), np.zeros(posterior.n_components)
    for first in range(0, len(values), _BLOCK):
        block = slice(first, first + _BLOCK)
        parts = posterior.users.mean_[users[block]] * posterior.items.mean_[matrix.indices[block]]
        rate = np.maximum(parts.sum(axis=1, dtype=np.float64), 1e-300)
        total += (values[block] / rate) @ parts
    return total
