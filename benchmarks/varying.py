"""What a mean per item, per user, or per user and item gains over a shared one, on real data.

The element is the one that element="auto" would take, or those named. Run from the root:

    .venv-bench/bin/python benchmarks/varying.py FOLDER --only ml1m steam_hours
"""

import time
from typing import Any

import common
import sets
from hcpf import HCPF, Interactions, elements
from hcpf.core.value_model import ways_to_vary
from hcpf.errors import EstimationError
from hcpf.evaluate import scores, split
from hcpf.training.resolve import candidate_elements

SETS = (
    "online_retail_spend", "completejourney_spend", "steam_hours", "ml1m",
    "geuvadis_ceu_chr19_genes",
)  # fmt: skip


def compare(name: str, data: Interactions, args: Any) -> list[dict[str, Any]]:
    """Fit one data set with every element, shared and varying."""
    parts = split(data, random_state=args.seed)
    kinds = [elements.get(kind) for kind in args.elements or ()]
    kinds = kinds or [type(candidate_elements(parts.train.values)[0])]
    rows: list[dict[str, Any]] = []
    for kind in kinds:
        shared: dict[str, float] = {}
        for vary_by in (None, *ways_to_vary(kind)):
            row = fit(kind(), vary_by, parts, args)
            shared = shared or row
            label = kind.acronym + (" hurdle" if args.hurdle else "")
            row |= {"data": name, "element": label, "vary by": vary_by or "shared"}
            row["gain"] = row["conditional"] - shared["conditional"]
            row["AUC gain"] = row["AUC"] - shared["AUC"]
            rows.append(row)
            common.table([row], COLUMNS)
    return rows


COLUMNS = {
    "data": "", "element": "", "vary by": "", "conditional": ".4f", "gain": "+.4f", "AUC": ".4f",
    "AUC gain": "+.4f", "L": ".3f", "RMSE": ".4f", "seconds": ".1f", "passes": "d",
    "ms per pass": ".1f",
}  # fmt: skip


def fit(element: elements.Element, vary_by: str | None, parts: Any, args: Any) -> dict[str, Any]:
    """Fit one element with the default settings, and score it."""
    model = HCPF(
        args.components, element=element, vary_by=vary_by, hurdle=args.hurdle,
        random_state=args.seed, n_fits=args.fits,
    )  # fmt: skip
    begin = time.perf_counter()
    try:
        model.fit(parts.train, exclude=parts.held_out)
    except EstimationError as error:
        return {"conditional": float("nan"), "note": str(error)}
    seconds = time.perf_counter() - begin
    found = scores(model, parts)
    last = model.history_[-1]
    return {
        "conditional": found.conditional_nonmissing.value,
        "AUC": found.auc.value if found.auc else float("nan"),
        "L": found.log_likelihood.value if found.log_likelihood else float("nan"),
        "RMSE": found.rmse.value,
        "seconds": seconds,
        "passes": model.n_iter_,
        "ms per pass": 1e3 * last.seconds / max(model.n_iter_, 1),
    }


def main() -> None:
    """Compare on the data sets named."""
    parser = sets.parser(__doc__, SETS)
    parser.add_argument("--elements", nargs="*", help="names of elements")
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--hurdle", action="store_true", help="a value is a single element")
    args = parser.parse_args()
    header = common.start("Varying elements", ", ".join(args.only))
    rows = [row for name, data in sets.each(args) for row in compare(name, data, args)]
    common.table(rows, COLUMNS)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
