"""What limiting odd entries is worth: held-out values with the limit and without it, paired.

One fit per data set, element and pooling; the limit is removed from its theta posteriors and the
test entries are scored again. Standard errors are over users or over items, whichever are larger.

    .venv-bench/bin/python benchmarks/odd_entries.py FOLDER -K 20 --only steam_hours echonest_43k
"""

from dataclasses import replace
from typing import Any

import numpy as np

import common
import sets
from hcpf import HCPF, Interactions
from hcpf.core.axis import Axis
from hcpf.data.held_out import HeldOutPairs
from hcpf.evaluate import split
from hcpf.model.fitted import FittedModel

COLUMNS = {
    "data": "", "element": "", "mean": "", "limit of users": ".1f", "limit of items": ".1f",
    "rows": ",", "gain": "+.5f", "error": ".5f",
}  # fmt: skip


def without_limit(model: FittedModel) -> FittedModel:
    """The same model with every entry counted in full."""
    posteriors = list(model.posteriors)
    for axis in Axis:
        for j, fit in enumerate(posteriors):
            own = fit.axis(axis)
            if own.theta is not None:
                theta = replace(own.theta, limit=np.inf, counted=None)
                posteriors[j] = replace(fit, **{axis.value: replace(own, theta=theta)})
    return replace(model, posteriors=tuple(posteriors))


def log_likelihoods(model: FittedModel, test: HeldOutPairs) -> Any:
    """Of each held-out value, given that it is observed."""
    pairs = model.users[test.users], model.items[test.items]
    return model.predict_distribution(*pairs).observed.log_density(test.values)


def compare(name: str, data: Interactions, element: str, mean: str, args: Any) -> dict[str, Any]:
    """One row of the table."""
    parts = split(data, random_state=args.seed)
    settings: dict[str, Any] = {"element": element, "vary_by": mean, "n_fits": 1, "tempering": 1.0}
    estimator = HCPF(args.components, **settings, max_iter=30, random_state=args.seed)
    estimator.fit(parts.train, exclude=parts.held_out, n_threads=args.threads, progress=False)
    model, test = estimator.model_, parts.test
    gain = log_likelihoods(model, test) - log_likelihoods(without_limit(model), test)
    thetas = {axis.value: model.posteriors[0].axis(axis).theta for axis in Axis}
    squares = (np.sum(np.bincount(rows, gain) ** 2) for rows in (test.users, test.items))
    row = {
        "data": name, "element": element, "mean": mean, "gain": float(gain.mean()),
        "error": float(np.sqrt(max(squares))) / len(gain),
        **{f"limit of {word}": theta and float(theta.limit) for word, theta in thetas.items()},
        "rows": sum(
            int(np.sum(theta.counted < 1)) for theta in thetas.values()
            if theta is not None and theta.counted is not None
        ),
    }  # fmt: skip
    print(row, flush=True)
    return row


def main() -> None:
    """Compare on all data sets of the folder, or on those named."""
    parser = sets.parser(__doc__)
    parser.add_argument("--elements", nargs="*", default=["gamma"])
    parser.add_argument("--means", nargs="*", default=["user", "item", "both"])
    args = parser.parse_args()
    header = common.start("Odd entries", str(args.folder))
    rows = [
        compare(name, data, element, mean, args)
        for name, data in sets.each(args)
        for element in args.elements
        for mean in args.means
    ]
    common.table(rows, COLUMNS)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
