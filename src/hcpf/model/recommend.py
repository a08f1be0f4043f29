"""Recommendations and neighbors of a fitted model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import flag, one_of, whole
from hcpf._types import Csr
from hcpf.core.axis import Axis
from hcpf.errors import InputError
from hcpf.model.alignment import at_exposure, over_both
from hcpf.model.combine import Positions
from hcpf.model.entry_counts import entry_columns, entry_counts
from hcpf.model.explain import main_sources
from hcpf.model.predict import describe, listed
from hcpf.model.ranking import (
    FillTile,
    Rates,
    Score,
    Tile,
    best_items,
    consensus,
    nearest,
    profiles,
)
from hcpf.model.tables import Neighbors, Recommendations

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

CRITERIA = ("consensus", "probability", "value", "expected_value")
DETAILS_LEVEL = 0.9
"""Probability of the intervals in detailed recommendations."""
_MIN_RATE = np.float32(1e-30)  # the value if observed has a limit at 0, but not in floating point


def seen_matrix(model: "FittedModel", seen: Any, purpose: str) -> Csr:
    """Return the entries to use as the users' own: those given, else the training data."""
    if seen is not None:
        return over_both("seen", seen, model.user_index, model.item_index)
    if model.data is None:
        raise InputError(
            f"{purpose} requires the entries of the users, but this model does not have its "
            "training data. Pass them as seen=."
        )
    return model.data.matrix


def best(
    model: "FittedModel",
    rows: Positions,
    n: int,
    *,
    by: str,
    exclude_seen: bool,
    seen: Any,
    among: Any,
    deny: Any,
    details: bool,
    exposure: Any,
) -> Iterator[Recommendations]:
    """Return the best items of some users, a few users at a time; see ``FittedModel.recommend``."""
    skips, explains = flag("exclude_seen", exclude_seen), flag("details", details)
    own = counts = None
    if skips or explains:
        own = seen_matrix(model, seen, "exclude_seen=True" if skips else "details=True")
    if explains:
        counts = model.entry_counts if model.data is not None else entry_counts(model, own)
    denied, n, shown = _denied(model, among, deny), whole("n", n), at_exposure(model, exposure)
    score, skipped = _score(shown, by), own if skips else None
    for part in best_items(score, len(model.items), skipped, rows, n, denied):
        u, i = part.rows, part.columns
        columns = describe(shown, u, i, DETAILS_LEVEL if explains else None)
        ids = {name: columns.pop(name) for name in ("user", "item")}
        if own is not None and counts is not None:
            columns |= _reasons(model, u, i, own) | entry_columns(counts, u, i)
        yield Recommendations(**ids, rank=part.rank, **columns)


def similar(model: "FittedModel", axis: Axis, ids: Any, n: int) -> Neighbors:
    """Return the users (or items) with the most similar rates over all items (or users)."""
    index = model.index[axis]
    vectors = profiles(model.combined.factors(axis), model.combined.factors(axis.other))
    parts = nearest(vectors, listed(index, ids), whole("n", n))
    return Neighbors.concatenate(
        Neighbors(
            of=index.ids[part.rows],
            id=index.ids[part.columns],
            similarity=np.clip(part.scores.astype(np.float64), -1.0, 1.0),
        )
        for part in parts
    )


def _reasons(model: "FittedModel", u: Positions, i: Positions, own: Csr) -> dict[str, NDArray[Any]]:
    """Return the main source of the rate of each pair and its share, as columns."""
    source, share = main_sources(model, u, i, own)
    reason = np.full(len(u), None, dtype=object)
    reason[source >= 0] = model.items[source[source >= 0]]
    return {"reason": reason, "reason_share": share}


def _denied(model: "FittedModel", among: Any, deny: Any) -> NDArray[np.bool_]:
    denied = np.full(len(model.items), among is not None)
    if among is not None:
        denied[model.item_index.positions(among)] = False
    if deny is not None:
        denied[model.item_index.positions(deny)] = True
    return denied


def _score(model: "FittedModel", by: str) -> Score:
    """Return what scores all items for some users."""
    if one_of("by", by, CRITERIA) == "consensus":
        return consensus(model.posteriors)
    value_model, exposure = model.value_model, model.exposure
    fits = [(fit.users.mean_, fit.items.mean_) for fit in model.posteriors]
    if by == "probability":
        return Rates(fits, exposure=exposure)
    if value_model.hurdle and by == "value" and not value_model.varies(Axis.ITEMS):
        # All items of a user have the same value: the probability decides.
        return Rates(fits, exposure=exposure)
    if value_model.vary_by is None:
        # With a shared mean every criterion is monotone in the rate.
        sign = float(np.sign(float(np.asarray(value_model.element.mean))))
        return Rates(fits, sign=sign, exposure=exposure)
    return _PooledValues(model, by, Rates(fits, exposure=exposure))


@dataclass(frozen=True, eq=False)
class _PooledValues:
    """Score by the value if observed, or by the expected value, where means differ."""

    model: "FittedModel"
    by: str
    rates: Rates
    n_parts: int = 1

    def of(self, rows: Positions) -> FillTile:
        """Return a function that fills in the tile of these users and a range of items."""
        fill_rates, combined = self.rates.of(rows), self.model.combined
        is_hurdle, n_fits = self.model.value_model.hurdle, len(self.model.posteriors)

        def fill(columns: slice, tile: Tile) -> None:
            fill_rates(columns, tile)
            rate = tile[0] / np.float32(n_fits)
            items = np.arange(columns.start, columns.stop)
            pairs = np.repeat(rows, len(items)), np.tile(items, len(rows))
            mean = combined.element_means(self.model.element, *pairs).reshape(rate.shape)
            positive = np.maximum(rate, _MIN_RATE)
            observed = -np.expm1(-positive)
            if self.by == "expected_value":
                n_elements = observed if is_hurdle else rate
            else:
                n_elements = np.float32(1.0) if is_hurdle else positive / observed
            np.multiply(mean, n_elements, out=tile[0], casting="same_kind")

        return fill
