"""Calibration of recommended lists: probabilities compared with what held-out pairs show.

Of the ten best unseen items of each user, the share found among test pairs over the share expected,
without and with the recalibration that training learns; and the bins (of eight, with at least 200
pairs) that are off by more than 10% and by more than three standard errors. ``--tables`` prints the
bins. Gains are in the log-likelihood of which pairs are observed, of all test pairs, over the
probability at the mean rate of the fits: of the mean of 1 - exp(-rate) over the fits, and of the
recalibration. They are in nats per observed pair, each with its share of the missing ones.

One file per data set is kept, so that the benchmark resumes.

    .venv-bench/bin/python benchmarks/lists.py FOLDER --output results --max-entries 1_100_000
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import common
import sets
from hcpf import HCPF, FittedModel, Interactions
from hcpf.evaluate import ListCalibration, Split, list_calibration, split
from hcpf.io import write_atomically
from hcpf.model.combine import Combined
from hcpf.training.held_out import split_validation
from hcpf.training.recalibration import learn_recalibration
from hcpf.training.selection import PairLikelihoods

COLUMNS = {
    "data": "", "entries": ",d", "pairs": ",d", "before": ".3f", "error": ".3f",
    "bins off before": "d", "after": ".3f", "bins off after": "d", "share of CPU": ".1%",
    "gain of mean": "+.4f", "its error": ".4f", "gain recalibrated": "+.4f",
    "error recalibrated": ".4f",
}  # fmt: skip
BINS = {
    "probability": ".3f", "expected": ".4f", "found": ".4f", "error": ".4f", "pairs": ",d",
}  # fmt: skip


def measure(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """Fit with the defaults; one row."""
    parts = split(data, random_state=args.seed)
    model = HCPF(args.components, random_state=args.seed)
    with common.Stopwatch() as fit:
        model.fit(parts.train, exclude=parts.held_out, n_threads=args.threads, progress=False)
    fitted = model.model_
    matrix = fitted.element.seen(parts.train.matrix.data)
    seen = common.with_values(parts.train.matrix, matrix)
    rng = np.random.default_rng(args.seed)
    pairs = split_validation(seen, None, fitted.excluded, 0.0, "full", rng)
    with common.Stopwatch() as learn:
        learn_recalibration(fitted, pairs, args.threads)
    before, after = (
        list_calibration(one, parts) for one in (replace(fitted, recalibration=None), fitted)
    )
    return {
        "data": name, "entries": data.n_observed, "model": fitted.value_model.description,
        "pairs": int(before.count.sum()), "before": before.ratio.value,
        "error": before.ratio.error, "bins off before": before.n_off(),
        "after": after.ratio.value, "bins off after": after.n_off(),
        "share of CPU": learn.cpu / fit.cpu, **gains(fitted, parts),
        "bins": {"before": rows(before), "after": rows(after)},
    }  # fmt: skip


def gains(model: FittedModel, parts: Split) -> dict[str, float]:
    """Gains in the log-likelihood of which test pairs are observed, over that of the mean rate."""
    test, tiny = parts.test, 1e-16
    pairs = (test.users, test.items), (test.missing_users, test.missing_items)
    per_entry = test.missing_weight * len(test.missing_users) / len(test)

    def likelihoods(probability_of: Callable[..., Any]) -> PairLikelihoods:
        observed, missing = (np.clip(probability_of(*ids), tiny, 1.0 - tiny) for ids in pairs)
        return PairLikelihoods(np.log(observed), np.log1p(-missing), per_entry)

    def at_mean_rate(u: Any, i: Any) -> Any:
        return -np.expm1(-model.combined.rates(u, i))

    def mean_over_fits(u: Any, i: Any) -> Any:
        return np.mean([-np.expm1(-Combined((fit,)).rates(u, i)) for fit in model.posteriors], 0)

    def recalibrated(u: Any, i: Any) -> Any:
        return model.predict_proba(model.users[u], model.items[i])

    base = likelihoods(at_mean_rate)
    mean, mapped = (likelihoods(p).gain_over(base) for p in (mean_over_fits, recalibrated))
    return {
        "gain of mean": mean.value, "its error": mean.error,
        "gain recalibrated": mapped.value, "error recalibrated": mapped.error,
    }  # fmt: skip


def rows(table: ListCalibration) -> list[dict[str, Any]]:
    """The bins of a table."""
    columns = table.predicted, table.expected, table.found, table.error, table.count
    return [
        dict(zip(BINS, (x.item() for x in one), strict=True)) for one in zip(*columns, strict=True)
    ]


def kept(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """One row; read from the output folder if it is there already."""
    path = args.output / f"{name}.json"
    if not path.exists():
        args.output.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(measure(name, data, args), indent=2) + "\n")
    row: dict[str, Any] = json.loads(path.read_text())
    print({key: value for key, value in row.items() if key != "bins"}, flush=True)
    if args.tables:
        for which, bins in row["bins"].items():
            print(f"\n{name}, {which}\n")
            common.table(bins, BINS)
    return row


def main() -> None:
    """Measure all data sets of the folder, or those named."""
    parser = sets.parser(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the results")
    parser.add_argument("--tables", action="store_true", help="print the bins of every data set")
    args = parser.parse_args()
    header = common.start("Calibration of recommended lists", str(args.folder))
    found = [kept(name, data, args) for name, data in sets.each(args)]
    common.table(found, COLUMNS)
    common.finish(header, {"rows": found}, args.json)


if __name__ == "__main__":
    main()
