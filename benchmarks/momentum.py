"""What momentum and minibatch passes save: passes until the bound is where coordinate ascent ends.

solver="cavi" makes a number of passes; how many of them do momentum alone (without minibatches)
and the default need for the same ELBO? The element is the most likely one,
shared, and stays as it is.

    .venv-bench/bin/python benchmarks/momentum.py FOLDER --only ml1m yelp_250k
"""

from typing import Any

import common
import sets
from hcpf import Interactions
from hcpf.training.fit import fit_model
from hcpf.training.resolve import most_likely_element
from hcpf.training.settings import Auto, FitPlan

SETS = (
    "gowalla_binary", "ml1m", "yelp_250k", "online_retail_spend", "lastfm_artist_tags", "msweb",
    "steam_hours", "geuvadis_ceu_chr19_genes",
)  # fmt: skip
COLUMNS = {
    "data": "", "element": "", "bound of CAVI": ",.0f", "passes": "d", "with momentum": "d",
    "default": "d", "bound with momentum": ",.0f", "bound of the default": ",.0f",
}  # fmt: skip


def compare(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """One row: coordinate ascent, with momentum, and after minibatch passes."""
    element = most_likely_element(data.values)

    def bounds(**settings: Any) -> dict[int, float]:
        plan = FitPlan(
            args.components, element=element, learn_element=False, n_fits=1, max_iter=args.passes,
            tol=0.0, check_every=1, random_state=args.seed, n_threads=args.threads, **settings,
        )  # fmt: skip
        return {check.iteration: check.elbo for check in fit_model(data, plan).history}

    runs = [bounds(solver="cavi"), bounds(solver=Auto(svi_passes=0)), bounds()]
    plain, pushed, default = (run[args.passes] for run in runs)
    needed = [min((i for i, bound in run.items() if bound >= plain), default=-1) for run in runs]
    return {
        "data": name, "element": element.acronym, "bound of CAVI": plain, "passes": needed[0],
        "with momentum": needed[1], "default": needed[2], "bound with momentum": pushed,
        "bound of the default": default,
    }  # fmt: skip


def main() -> None:
    """Compare on the data sets named."""
    parser = sets.parser(__doc__, SETS)
    parser.add_argument("--passes", type=int, default=60)
    args = parser.parse_args()
    header = common.start("Momentum", ", ".join(args.only))
    rows = [compare(name, data, args) for name, data in sets.each(args)]
    common.table(rows, COLUMNS)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
