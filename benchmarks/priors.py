"""Compare priors (and averages of several fits) on real data: held-out likelihood and AUC.

The last table asks whether the shapes should be learned: it compares the fixed default with the
shapes that the validation pairs, or the bound, would choose for each data set.

    .venv-bench/bin/python benchmarks/priors.py FOLDER --json priors.json
"""

import time
from typing import Any

import numpy as np

import common
import sets
from hcpf import HCPF, Interactions, Priors
from hcpf.core.priors import expected_count
from hcpf.evaluate import ranking, scores, split
from hcpf.training.resolve import most_likely_element

DEFAULT = "0.3/1"
SHAPES = ((0.1, 1.0), (0.3, 0.3), (0.3, 1.0), (0.3, 5.0), (1.0, 1.0), (1.0, 5.0))


def settings(density: float, components: int) -> dict[str, dict[str, Any]]:
    """What is compared, by name."""
    expected = expected_count(density)
    chosen: dict[str, dict[str, Any]] = {"paper": {"priors": "paper"}}
    for shape, activity in SHAPES:
        activities = {"user_activity_shape": activity, "item_activity_shape": activity}
        priors = Priors.matched(expected, components, shape).with_numbers(activities)
        chosen[f"{shape:g}/{activity:g}"] = {"priors": priors}
    chosen["auto x3"] = {"n_fits": 3}
    return chosen


def compare(name: str, data: Interactions, args: Any) -> list[dict[str, Any]]:
    """Fit one data set with every setting."""
    parts = split(data, random_state=args.seed)
    element = most_likely_element(parts.train.values)
    rows: list[dict[str, Any]] = []
    for label, keywords in settings(parts.train.density, args.components).items():
        model = HCPF(
            args.components, element=element, random_state=args.seed, **({"n_fits": 1} | keywords)
        )
        begin = time.perf_counter()
        model.fit(parts.train, exclude=parts.held_out)
        seconds = time.perf_counter() - begin
        found = scores(model, parts)
        row = {"data": name, "element": element.acronym, "priors": label, "seconds": seconds}
        row["passes"] = model.n_iter_
        row["elbo"] = model.history_[-1].elbo
        on_validation = scores(model, parts, on=parts.validation).log_likelihood
        row["validation"] = on_validation.value if on_validation else float("nan")
        for key in ("log_likelihood", "auc", "conditional_nonmissing"):
            row[key] = found[key].value
        row["ndcg"] = ranking(model, parts, n=20).ndcg.value
        rows.append(row)
        print(
            {key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()}, flush=True
        )
    return rows


def main() -> None:
    """Compare on all data sets of the folder, or on those named."""
    args = sets.parser(__doc__).parse_args()
    header = common.start("priors", str(args.folder))
    rows: list[dict[str, Any]] = []
    for name, data in sets.each(args):
        rows += compare(name, data, args)
    common.table(
        rows,
        {
            "data": "", "element": "", "priors": "", "passes": "d", "seconds": ".1f",
            "log_likelihood": ".4f", "auc": ".4f", "conditional_nonmissing": ".4f",
            "ndcg": ".4f",
        },
    )  # fmt: skip
    ranks(rows)
    learned(rows)
    common.finish(header, {"rows": rows}, args.json)


def ranks(rows: list[dict[str, Any]]) -> None:
    """Print how often each setting of a single fit is best, and its mean distance to the best."""
    single = [row for row in rows if row["priors"] != "auto x3"]
    labels = list(dict.fromkeys(row["priors"] for row in single))
    names = list(dict.fromkeys(row["data"] for row in single))
    summary: list[dict[str, Any]] = []
    for label in labels:
        gaps: dict[str, list[float]] = {"log_likelihood": [], "auc": [], "ndcg": []}
        for key, found in gaps.items():
            for name in names:
                here = {r["priors"]: r[key] for r in single if r["data"] == name}
                gap = max(here.values()) - here[label]
                found.append(gap / abs(max(here.values())))
        summary.append(
            {
                "priors": label,
                "best likelihood": sum(g == 0 for g in gaps["log_likelihood"]),
                "likelihood gap %": 100 * float(np.mean(gaps["log_likelihood"])),
                "best auc": sum(g == 0 for g in gaps["auc"]),
                "auc gap %": 100 * float(np.mean(gaps["auc"])),
                "best ndcg": sum(g == 0 for g in gaps["ndcg"]),
                "ndcg gap %": 100 * float(np.mean(gaps["ndcg"])),
            }
        )
    columns = {"priors": "", "best likelihood": "d", "likelihood gap %": ".3f"}
    columns |= {"best auc": "d", "auc gap %": ".3f", "best ndcg": "d", "ndcg gap %": ".3f"}
    common.table(summary, columns)


def learned(rows: list[dict[str, Any]]) -> None:
    """Print the likelihood of the default, and of the shapes that the data would choose."""
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(row["data"] for row in rows):
        grid = [row for row in rows if row["data"] == name and "/" in row["priors"]]
        line: dict[str, Any] = {"data": name}
        default = next(row for row in grid if row["priors"] == DEFAULT)
        line["default"] = default["log_likelihood"]
        for label, key in (("by validation", "validation"), ("by bound", "elbo")):
            chosen = max(grid, key=lambda row: row[key])
            line[label] = chosen["priors"]
            line["gain " + label] = chosen["log_likelihood"] - default["log_likelihood"]
        found.append(line)
    columns = {"data": "", "default": ".4f", "by validation": "", "gain by validation": "+.4f"}
    common.table(found, columns | {"by bound": "", "gain by bound": "+.4f"})


if __name__ == "__main__":
    main()
