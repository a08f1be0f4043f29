"""Draw the picture of the README: what a customer was expected to buy, and what it cost.

A fifth of the bundled retail data is held out; the model is fitted to the rest. Run from the root:

    .venv/bin/python docs/examples/retail_result.py docs/images/retail-result.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from hcpf import HCPF, datasets, evaluate

CUSTOMER, SHOWN = 14534, 12
INK, PALE, HIT = "#1f3b57", "#b9c8d6", "#d1603d"


def main(path: str) -> None:
    """Fit, and draw."""
    parts = evaluate.split(datasets.retail(), random_state=0)
    model = HCPF(20, element="gamma", vary_by="both", random_state=0)
    model.fit(parts.train, exclude=parts.exclude)
    auc = evaluate.scores(model, parts).auc
    assert auc is not None
    sys.stdout.write(f"AUC {auc.value:.3f}, 90% intervals hold {covered(model, parts):.1%}\n")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), width_ratios=(1, 1))
    draw_chances(left, model, parts)
    draw_spending(right, model, parts)
    figure.tight_layout(w_pad=3)
    figure.savefig(path, dpi=160)


def held_out(parts: evaluate.Split, customer: int) -> tuple[np.ndarray, np.ndarray]:
    """Products that the customer bought in the held-out part, and what was spent."""
    mine = parts.train.users[parts.test.users] == customer
    return parts.train.items[parts.test.items[mine]], parts.test.values[mine]


def covered(model: HCPF, parts: evaluate.Split) -> float:
    """The share of all held-out purchases inside their 90% interval."""
    test = parts.test
    spend = model.predict_distribution(parts.train.users[test.users], parts.train.items[test.items])
    level = spend.observed.cdf(test.values)
    return float(np.mean((level > 0.05) & (level < 0.95)))


def label(item: str) -> str:
    """The name of a product, cut to fit."""
    return datasets.retail_products()[item].capitalize()[:34]


def draw_chances(axes: plt.Axes, model: HCPF, parts: evaluate.Split) -> None:
    """The products most likely to be bought next; those that were are marked."""
    best = model.recommend(CUSTOMER, n=SHOWN)
    bought = set(held_out(parts, CUSTOMER)[0])
    colours = [HIT if item in bought else PALE for item in best.item]
    place = np.arange(len(best.item))[::-1]
    axes.barh(place, best.probability, color=colours, height=0.72)
    axes.set_yticks(place, [label(item) for item in best.item], fontsize=8.5)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_title("Will this customer buy it?", loc="left", color=INK, fontweight="bold")
    axes.set_xlabel("predicted probability (red: held out, and bought)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def draw_spending(axes: plt.Axes, model: HCPF, parts: evaluate.Split) -> None:
    """Held-out purchases: the 90% interval and the expectation, and what was spent."""
    items, values = held_out(parts, CUSTOMER)
    some = np.argsort(-values)[:: max(1, len(values) // SHOWN)][:SHOWN]
    items, values = items[some], values[some]
    spend = model.predict_distribution(np.full(len(items), CUSTOMER), items)
    low, high = spend.observed.interval(0.9)
    place = np.arange(len(items))[::-1]
    axes.hlines(place, low, high, color=PALE, linewidth=7)
    axes.plot(spend.mean_observed, place, "|", color=INK, markersize=11, markeredgewidth=2)
    axes.plot(values, place, "o", color=HIT, markersize=6)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_yticks(place, [label(item) for item in items], fontsize=8.5)
    axes.set_title("And if so, for how much?", loc="left", color=INK, fontweight="bold")
    axes.set_xlabel("pounds: 90% interval, mean, truth (red)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(sys.argv[1])
