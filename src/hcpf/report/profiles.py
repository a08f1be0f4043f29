"""Users for a report, as text: their entries, and what to recommend to them and why."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.core.axis import Axis
from hcpf.evaluate.scoring import explains_missing
from hcpf.model.entry_counts import count_entries, entries_of_row
from hcpf.model.fitted import FittedModel
from hcpf.model.predict import listed
from hcpf.model.resolve import training_data
from hcpf.model.tables import NOT_APPLICABLE
from hcpf.report.sections import Facts
from hcpf.report.text import id_text, percent, short

_ACTIVE, _RANDOM = 250, 250  # users of a sample
_ENTRIES, _RECOMMENDATIONS, _REASONS = 8, 6, 3  # of a profile
_EXAMPLE_QUANTILES = (0.98, 0.75, 0.5, 0.2)  # of the number of items
Rows = NDArray[np.int64]


def example_users(model: FittedModel, users: Any = None) -> Rows:
    """Return positions of the users asked for, or of a few from active to occasional ones."""
    if users is not None:
        return np.array(list(dict.fromkeys(listed(model.user_index, users).tolist())))
    count = np.diff(training_data(model).matrix.indptr)
    active = np.flatnonzero(count)
    order = active[np.argsort(count[active], kind="stable")]
    ranks = [round(q * (len(order) - 1)) for q in _EXAMPLE_QUANTILES]
    return order[list(dict.fromkeys(ranks))].astype(np.int64)


def sample_users(model: FittedModel, include: Rows, rng: np.random.Generator) -> Rows:
    """Return positions of given users, the most active ones and a random sample."""
    count = np.diff(training_data(model).matrix.indptr)
    order = np.argsort(-count, kind="stable")
    drawn = rng.permutation(order[_ACTIVE:])[:_RANDOM]
    chosen = np.unique(np.concatenate([include, order[:_ACTIVE], drawn]))
    return chosen[np.argsort(-count[chosen], kind="stable")].astype(np.int64)


def user_profiles(
    model: FittedModel, rows: Rows, labels: list[str], *, all_reasons: bool = False
) -> list[Facts]:
    """Return users with the main reason of each recommendation, or with several."""
    predicts_missing = explains_missing(model)
    # Without a model of missing pairs there is no probability to rank by.
    by = "consensus" if predicts_missing else "value"
    best = model.recommend(model.users[rows], _RECOMMENDATIONS, by=by, details=True)
    owner, items = model.user_index.positions(best.user), model.item_index.positions(best.item)
    popularity = count_entries(training_data(model).matrix, Axis.ITEMS)
    by_user: dict[int, list[Facts]] = {}
    first_probability: dict[int, float] = {}
    for row, item, one in zip(owner.tolist(), items.tolist(), best, strict=True):
        reasons = [] if one.reason is None else [(one.reason, one.reason_share)]
        if all_reasons:
            reasons = _main_reasons(model, one.user, one.item)
        first_probability.setdefault(row, one.probability)
        by_user.setdefault(row, []).append({
            "item": labels[item],
            "probability": percent(one.probability) if predicts_missing else NOT_APPLICABLE,
            "value": short(one.value),
            "range": f"{short(one.low)} – {short(one.high)}",
            "entries": int(popularity[item]),
            "reasons": [
                [labels[int(model.item_index.positions([source])[0])], percent(share)]
                for source, share in reasons
            ],
        })  # fmt: skip
    return [
        {
            **_entries(model, row, labels),
            "first_probability": first_probability.get(row) if predicts_missing else None,
            "recommendations": by_user.get(row, []),
        }
        for row in rows.tolist()
    ]


def _main_reasons(model: FittedModel, user: Any, item: Any) -> list[tuple[Any, float]]:
    """Return the user's own items that contribute most, with their shares of the rate."""
    own = list(model.explain(user, item))[:-1]  # the last one is the prior
    return [(one.source, one.share) for one in own[:_REASONS] if one.share > 0]


def _entries(model: FittedModel, row: int, labels: list[str]) -> Facts:
    """Return the number and the sum of a user's entries, and the largest of them."""
    items, values = entries_of_row(training_data(model).matrix, Axis.USERS, row)
    values = values.astype(np.float64)
    largest = np.argsort(-values, kind="stable")[:_ENTRIES]
    total = float(values.sum())
    return {
        "id": id_text(model.users[row]),
        "n_items": len(values),
        "total": short(total),
        "total_key": total,
        "mean": total / len(values) if len(values) else None,
        "entries": [[labels[items[j]], short(float(values[j]))] for j in largest],
    }


def for_script(users: list[Facts]) -> Facts:
    """Return users for the script: every item once, and its index where it occurs."""
    indices: dict[str, int] = {}

    def index(item: str) -> int:
        return indices.setdefault(item, len(indices))

    rows = [
        [
            one["id"],
            one["n_items"],
            one["total"],
            [[index(item), value] for item, value in one["entries"]],
            [
                [
                    index(r["item"]), r["probability"], r["value"], r["range"], r["entries"],
                    [[index(item), share] for item, share in r["reasons"]],
                ]
                for r in one["recommendations"]
            ],
        ]
        for one in users
    ]  # fmt: skip
    return {"items": list(indices), "users": rows}
