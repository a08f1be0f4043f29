"""What it is worth that every second fit begins from clusters of items instead of noise.

Three averaged fits of each kind, with the most likely element, shared; means over several seeds,
the split staying the same.

    .venv-bench/bin/python benchmarks/starts.py FOLDER --only msweb yelp_250k
"""

from statistics import mean
from typing import Any

import common
import sets
from hcpf import HCPF, Interactions
from hcpf.evaluate import ranking, scores, split
from hcpf.training.resolve import most_likely_element

SETS = (
    "msweb", "steam_hours", "lastfm_artist_tags", "lastfm_user_tags", "echonest_43k", "ml100k",
    "yelp_250k", "online_retail_spend", "gowalla_binary",
)  # fmt: skip
STARTS = ("noise", "clusters", "auto")
MEASURES = {"L": ".3f", "AUC": ".4f", "NDCG@20": ".4f"}


def compare(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """One row: each measure with each kind of start."""
    parts = split(data, random_state=args.seed)
    element = most_likely_element(parts.train.values)
    row: dict[str, Any] = {"data": name, "element": element.acronym}
    for start in STARTS:
        found: list[dict[str, float]] = []
        for seed in range(args.seeds):
            model = HCPF(args.components, element=type(element)(), start=start, random_state=seed)
            model.fit(parts.train, exclude=parts.held_out, n_threads=args.threads, progress=False)
            scored = scores(model, parts)
            assert scored.log_likelihood is not None
            assert scored.auc is not None
            found.append(
                {
                    "L": scored.log_likelihood.value,
                    "AUC": scored.auc.value,
                    "NDCG@20": ranking(model, parts, n=20)["ndcg"].value,
                }
            )
        row |= {f"{m}, {start}": mean(one[m] for one in found) for m in MEASURES}
    print(row, flush=True)
    return row


def main() -> None:
    """Compare on the data sets named."""
    parser = sets.parser(__doc__, SETS)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    header = common.start("Where fits begin", ", ".join(args.only))
    rows = [compare(name, data, args) for name, data in sets.each(args)]
    columns = {f"{m}, {start}": form for m, form in MEASURES.items() for start in STARTS}
    common.table(rows, {"data": "", "element": "", **columns})
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
