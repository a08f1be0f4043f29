"""Summary of the components of a model: what they explain, and their items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import number, one_of, whole
from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.posterior import Posterior, unit_rows
from hcpf.data.canonical import IdArray
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import entry_blocks
from hcpf.elements import Presence
from hcpf.errors import InputError
from hcpf.model.factors import KINDS, RELEVANCE_WEIGHT, fit_at, scaled, shares
from hcpf.model.tables import Table, rows_of

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

RANKINGS = ("relevance", *KINDS)
_BLOCK = 1 << 16  # entries distributed over the components at once


@dataclass(frozen=True, eq=False)
class Components:
    """Components, sorted by what they explain, largest first.

    Attributes
    ----------
    share : ndarray
        Of all expected entries of the matrix, those that each component accounts for.
    item_share : ndarray
        K x items: of the component's expected entries, those of each item: v_ik / sum_i v_ik, with
        v_ik times the exposure of the item.
    lift : ndarray
        K x items: how many times larger that share is than the item's share of everything.
    overlap : ndarray
        K x K: cosine of the components' item shares.
    user_share : ndarray
        K x users: of the component's expected entries, those of each user.
    value_share : ndarray or None
        Of the sum of all values in the training data, what each component accounts for. None
        without the data, with negative values, and where values are ignored.
    number : ndarray of int
        The column of each component among the factors of the model, counted from 0.
    mean, scaled : ndarray
        K x items: the factors, and the factors times the activity parameter of the item.
    """

    share: FloatArray
    item_share: FloatArray
    lift: FloatArray
    overlap: FloatArray
    user_share: FloatArray
    value_share: FloatArray | None
    number: NDArray[np.intp]
    mean: FloatArray
    scaled: FloatArray

    def __len__(self) -> int:
        return len(self.share)

    def scores(self, kind: str = "relevance", weight: float = RELEVANCE_WEIGHT) -> FloatArray:
        """Return what items are ranked by, K x items; see ``FittedModel.top_items``."""
        one_of("kind", kind, RANKINGS)
        weight = number("weight", weight, 0.0, 1.0, "between 0 and 1")
        if kind != "relevance":
            return {"mean": self.mean, "scaled": self.scaled, "share": self.item_share}[kind]
        return _relevance(self.item_share, self.lift, weight)

    def largest(self, component: int, n: int) -> NDArray[np.intp]:
        """Return the items with the largest shares."""
        return highest(self.item_share[component], n)

    def distinctive(self, component: int, n: int) -> NDArray[np.intp]:
        """Return items with a large share here and a small one elsewhere."""
        return highest(_relevance(self.item_share[component], self.lift[component]), n)


class TopItems(Table):
    """The items of each component, best first.

    Attributes
    ----------
    component : ndarray of int
        The column of the component among the factors of the model, counted from 0.
    rank : ndarray of int
        1, 2, ... within each component.
    item, name : ndarray
        Ids, and names where ``names`` was given.
    score : ndarray of float
        What the items are ranked by.
    share : ndarray of float
        Of the component's expected entries, those of the item.
    lift : ndarray of float
        How many times larger that share is than the item's share of everything.
    """

    component: NDArray[np.int64]
    rank: NDArray[np.int64]
    item: IdArray
    score: FloatArray
    share: FloatArray
    lift: FloatArray

    def of(self, component: int) -> IdArray:
        """Return the items of one component, best first."""
        return self.item[rows_of("component", self.component, component)]


def top_items(
    model: "FittedModel",
    n: int = 10,
    *,
    kind: str = "relevance",
    weight: float = RELEVANCE_WEIGHT,
    fit: int = 0,
    names: Any = None,
) -> TopItems:
    """Return the best items of each component of one fit, in the order of the columns."""
    found, labels = summarize_components(model, fit), {}
    if names is not None:
        labels["name"] = _labels(model.items, names)
    return rank_items(found, model.items, n, kind=kind, weight=weight, **labels)


def rank_items(
    components: Components,
    items: IdArray,
    n: int,
    *,
    kind: str = "relevance",
    weight: float = RELEVANCE_WEIGHT,
    **labels: NDArray[Any],
) -> TopItems:
    """Return the best items of each component, in the order of the columns.

    ``labels`` are further columns, given for all items.
    """
    scores, size = components.scores(kind, weight), min(whole("n", n), len(items))
    order = np.argsort(components.number)
    best = np.array([highest(scores[k], size) for k in order])
    k, i = np.repeat(order, size), best.ravel()
    more = {name: label[i] for name, label in labels.items()}
    return TopItems(
        component=components.number[k], rank=np.tile(np.arange(1, size + 1), len(order)),
        item=items[i], **more, score=scores[k, i], share=components.item_share[k, i],
        lift=components.lift[k, i],
    )  # fmt: skip


def summarize_components(model: "FittedModel", fit: int = 0) -> Components:
    """Summarize the components of one fit, by default of the first (or best)."""
    posterior = fit_at(model, fit)
    users, items = (
        posterior.axis(axis).exposed_mean_.astype(np.float64) for axis in (Axis.USERS, Axis.ITEMS)
    )
    by_component = users.sum(axis=0) * items.sum(axis=0)
    order = np.argsort(-by_component, kind="stable")
    share = by_component[order] / by_component.sum()
    item_share, user_share = shares(items).T[order], shares(users).T[order]
    overall = np.maximum(share @ item_share, 1e-300)
    direction = unit_rows(item_share)
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
        number=order + fit * model.n_components,
        mean=posterior.items.mean.T[order],
        scaled=scaled(posterior.items).T[order],
    )


def _relevance(share: FloatArray, lift: FloatArray, weight: float = RELEVANCE_WEIGHT) -> FloatArray:
    with np.errstate(divide="ignore"):
        return weight * np.log(share) + (1.0 - weight) * np.log(lift)


def highest(scores: FloatArray, n: int) -> NDArray[np.intp]:
    """Return the positions of the n highest scores, highest first."""
    return np.argsort(-scores, kind="stable")[:n]


def _labels(items: IdArray, names: Any) -> NDArray[Any]:
    """Return a name per item: of a mapping, a file, or a sequence in the order of the items."""
    from hcpf.data.names import item_labels, read_names  # which loads pyarrow

    if isinstance(names, Sequence | np.ndarray) and not isinstance(names, str):
        if len(names) != len(items):
            raise InputError(f"names has {len(names)} names, but {len(items)} items are fitted.")
        names = dict(zip(items.tolist(), names, strict=True))
    known: Mapping[str, str] = read_names(names, items)
    return np.array(item_labels(items, known), dtype=object)


def _values_by_component(posterior: Posterior, data: Interactions) -> FloatArray | None:
    """Return the sum of the values, each divided among the components like its rate."""
    total = np.zeros(posterior.n_components)
    for users, items, values in entry_blocks(data.matrix, _BLOCK):
        if values.min() < 0:
            return None
        parts = posterior.users.mean_[users] * posterior.items.mean_[items]
        rate = np.maximum(parts.sum(axis=1, dtype=np.float64), 1e-300)
        total += (values.astype(np.float64) / rate) @ parts
    return total if total.sum() > 0 else None
