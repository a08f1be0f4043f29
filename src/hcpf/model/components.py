"""Summary of the components of a model: what they explain, and their items."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.model.fitted import FittedModel

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
    """

    share: FloatArray
    item_share: FloatArray
    lift: FloatArray
    overlap: FloatArray

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
    item_share = (items / np.maximum(items.sum(axis=0), 1e-300)).T[order]
    overall = np.maximum(share @ item_share, 1e-300)
    direction = item_share / np.maximum(np.linalg.norm(item_share, axis=1, keepdims=True), 1e-300)
    return Components(share, item_share, item_share / overall, direction @ direction.T)
