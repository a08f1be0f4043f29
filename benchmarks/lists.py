"""Calibration of recommended lists: probabilities compared with what hidden pairs show.

A fifth of all pairs, observed or missing, is hidden at random, so that training learns nothing from
which pairs are hidden. Of the ten hidden pairs of each user with the highest probability, the
number observed is compared with the sum of the probabilities, over all of them and in eight bins of
equally many. A bin of at least 200 pairs is off if it differs by more than 10% and by more than
three standard errors. ``--tables`` prints the bins.

One file per data set is kept, so that the benchmark resumes.

    .venv-bench/bin/python benchmarks/lists.py FOLDER --output results --max-entries 270_000
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
import sets
from hcpf import HCPF, FittedModel, Interactions
from hcpf.evaluate import Split, split
from hcpf.io import write_atomically

MAX_PAIRS, BLOCK, LENGTH, N_BINS = 50_000_000, 1 << 20, 10, 8
COLUMNS = {
    "data": "", "entries": ",d", "pairs": ",d", "ratio": ".3f", "error": ".3f", "bins off": "d",
}  # fmt: skip
BINS = {"probability": ".4f", "found": ".4f", "error": ".4f", "pairs": ",d"}


def measure(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """Fit with the defaults; one row."""
    per_entry = data.n_users * data.n_items / data.n_observed - 1
    parts = split(data, missing=per_entry, random_state=args.seed)
    model = HCPF(args.components, random_state=args.seed)
    model.fit(parts.train, exclude=parts.held_out, n_threads=args.threads, progress=False)
    probability, found = best_hidden(model.model_, parts)
    order = np.argsort(probability, kind="stable")
    bins = [bin_row(probability[part], found[part]) for part in np.array_split(order, N_BINS)]
    return {
        "data": name, "entries": data.n_observed, "model": model.model_.value_model.description,
        "pairs": len(found), "ratio": found.sum() / probability.sum(),
        "error": standard_error(probability) / probability.mean(),
        "bins off": sum(is_off(row) for row in bins), "bins": bins,
    }  # fmt: skip


def best_hidden(model: FittedModel, parts: Split) -> tuple[NDArray[Any], NDArray[Any]]:
    """The probabilities of the best hidden pairs of each user, and which were observed."""
    test = parts.test
    user = np.concatenate([test.users, test.missing_users])
    item = np.concatenate([test.items, test.missing_items])
    observed = np.arange(len(user)) < len(test)
    probability = np.empty(len(user))
    for first in range(0, len(user), BLOCK):
        part = slice(first, first + BLOCK)
        probability[part] = model.predict_proba(model.users[user[part]], model.items[item[part]])
    order = np.lexsort((-probability, user))
    rank = np.arange(len(order)) - np.searchsorted(user[order], user[order])
    best = order[rank < LENGTH]
    return probability[best], observed[best]


def bin_row(probability: NDArray[Any], found: NDArray[Any]) -> dict[str, Any]:
    """Probability and share found of one bin."""
    return {
        "probability": float(probability.mean()), "found": float(found.mean()),
        "error": standard_error(probability), "pairs": len(found),
    }  # fmt: skip


def standard_error(probability: NDArray[Any]) -> float:
    """The standard error of the share found, where the probabilities are right."""
    return float(np.sqrt(np.sum(probability * (1.0 - probability)))) / len(probability)


def is_off(row: dict[str, Any]) -> bool:
    """Whether a bin is off by more than 10% and by more than three standard errors."""
    difference = abs(row["found"] - row["probability"])
    is_large = difference > max(0.1 * row["probability"], 3.0 * row["error"])
    return row["pairs"] >= 200 and is_large


def kept(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """One row; read from the output folder if it is there already."""
    path = args.output / f"{name}.json"
    if not path.exists():
        args.output.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(measure(name, data, args), indent=2) + "\n")
    row: dict[str, Any] = json.loads(path.read_text())
    print({key: value for key, value in row.items() if key != "bins"}, flush=True)
    if args.tables:
        common.table(row["bins"], BINS)
    return row


def main() -> None:
    """Measure all data sets of the folder, or those named, whose pairs fit in memory."""
    parser = sets.parser(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the results")
    parser.add_argument("--tables", action="store_true", help="print the bins of every data set")
    args = parser.parse_args()
    header = common.start("Calibration of recommended lists", str(args.folder))
    small = (one for one in sets.each(args) if one[1].n_users * one[1].n_items <= MAX_PAIRS)
    found = [kept(name, data, args) for name, data in small]
    common.table(found, COLUMNS)
    common.finish(header, {"rows": found}, args.json)


if __name__ == "__main__":
    main()
