"""Draw the figure of the README: predicted purchases of one customer compared with held-out ones.

A fifth of all pairs of the bundled retail data, bought or not, is held out; the model is fitted to
the rest. Run from the root:

    .venv/bin/python docs/examples/retail_result.py docs/images/retail-result.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from hcpf import HCPF, datasets, evaluate

CUSTOMER, N_SHOWN = 14534, 12
INK, PALE, HELD_OUT = "#1f3b57", "#b9c8d6", "#d1603d"


def main(path: str) -> None:
    """Fit the model, print its scores and draw the figure."""
    sales = datasets.retail()
    missing_per_entry = sales.n_users * sales.n_items / sales.n_observed - 1
    parts = evaluate.split(sales, missing=missing_per_entry, random_state=0)
    model = HCPF(20, element="gamma", vary_by="both", random_state=0)
    model.fit(parts.train, exclude=parts.held_out)
    auc = evaluate.scores(model, parts).auc
    assert auc is not None
    sys.stdout.write(f"{len(parts.test.values):,} held-out purchases, AUC {auc.value:.3f}, ")
    sys.stdout.write(f"90% intervals contain {coverage(model, parts):.1%}\n")
    found, expected = hits(model, parts)
    sys.stdout.write(f"Best {N_SHOWN} hidden products per customer: {found:,} bought, ")
    sys.stdout.write(f"{expected:,.0f} expected\n")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), width_ratios=(1, 1))
    draw_probabilities(left, model, parts)
    draw_values(right, model, parts)
    figure.tight_layout(w_pad=3)
    figure.savefig(path, dpi=160)


def held_out(parts: evaluate.Split, customer: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the held-out products of a customer, and the spend on each."""
    own = parts.train.users[parts.test.users] == customer
    return parts.train.items[parts.test.items[own]], parts.test.values[own]


def coverage(model: HCPF, parts: evaluate.Split) -> float:
    """Return the share of all held-out purchases inside their 90% interval."""
    test = parts.test
    spend = model.predict_distribution(parts.train.users[test.users], parts.train.items[test.items])
    level = spend.observed.cdf(test.values)
    return float(np.mean((level > 0.05) & (level < 0.95)))


def hits(model: HCPF, parts: evaluate.Split) -> tuple[int, float]:
    """Return how many of all customers' best hidden products were bought, and expected."""
    users, items = parts.held_out.nonzero()
    bought = sparse.csr_array(
        (np.ones(len(parts.test)), (parts.test.users, parts.test.items)), parts.held_out.shape
    )
    probability = model.predict_proba(parts.train.users[users], parts.train.items[items])
    order = np.lexsort((-probability, users))
    rank = np.arange(len(order)) - np.searchsorted(users[order], users[order])
    best = order[rank < N_SHOWN]
    return int(bought[users[best], items[best]].sum()), float(probability[best].sum())


def label(item: str) -> str:
    """Return the name of a product, cut to fit."""
    return datasets.retail_products()[item].capitalize()[:34]


def draw_probabilities(axes: plt.Axes, model: HCPF, parts: evaluate.Split) -> None:
    """Draw the most probable held-out products; those that were bought are highlighted."""
    row = int(np.flatnonzero(parts.train.users == CUSTOMER)[0])
    hidden = parts.train.items[parts.held_out[[row]].indices]
    best = model.recommend(CUSTOMER, n=N_SHOWN, by="probability", among=hidden)
    bought = set(held_out(parts, CUSTOMER)[0])
    height = np.arange(len(best))[::-1]
    colors = [HELD_OUT if item in bought else PALE for item in best.item]
    axes.barh(height, best.probability, color=colors, height=0.72)
    axes.set_yticks(height, [label(item) for item in best.item], fontsize=8.5)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_title("Will this customer buy it?", loc="left", color=INK, fontweight="bold")
    axes.set_xlabel("Predicted probability (red: bought)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def draw_values(axes: plt.Axes, model: HCPF, parts: evaluate.Split) -> None:
    """Draw 90% intervals and means of held-out purchases, and the observed spend."""
    items, values = held_out(parts, CUSTOMER)
    shown = np.argsort(-values)[:: max(1, len(values) // N_SHOWN)][:N_SHOWN]
    items, values = items[shown], values[shown]
    spend = model.predict_distribution(np.full(len(items), CUSTOMER), items)
    low, high = spend.observed.interval(0.9)
    height = np.arange(len(items))[::-1]
    axes.hlines(height, low, high, color=PALE, linewidth=7)
    axes.plot(spend.mean_observed, height, "|", color=INK, markersize=11, markeredgewidth=2)
    axes.plot(values, height, "o", color=HELD_OUT, markersize=6)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_yticks(height, [label(item) for item in items], fontsize=8.5)
    axes.set_title("And if so, for how much?", loc="left", color=INK, fontweight="bold")
    axes.set_xlabel("Pounds: 90% interval, mean, observed (red)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(sys.argv[1])
