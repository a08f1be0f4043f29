"""How many true rates lie in their 90% intervals, on data simulated from the model.

K and the element are known; priors, tempering and fits are the defaults, as are the priors of the
simulation. "Variational" are draws from the fits as they are, "Gibbs" those of ``model.posterior``.
The ratio is that of their standard deviations, its median over the pairs. "P" is the mean of
1 - exp(-rate) over the Gibbs draws. "P error" is how far what predictions use, 1 - exp(-rate) at
the mean rate of the fits, is above it on average, and 95% of the pairs differ by at most "P 95%".

    .venv-bench/bin/python benchmarks/intervals.py --fits 1 4
"""

import itertools
from time import process_time
from typing import Any

import numpy as np

import common
from hcpf import HCPF, simulate
from hcpf.elements import Element, Gamma, Normal, Poisson

ELEMENTS: dict[str, Element] = {
    "gamma": Gamma(2.0, 1.0),
    "poisson": Poisson(3.0),
    "normal": Normal(5.0, 2.0),
}
SIZES = {0.01: (1000, 600), 0.3: (200, 150)}
COLUMNS = {
    "element": "", "density": "", "K": "", "fits": "", "tempering": ".1f", "variational": ".3f",
    "Gibbs": ".3f", "ratio": ".2f", "P": ".4f", "P error": "+.4f", "P 95%": ".4f",
    "fit CPU s": ".1f", "Gibbs CPU s": ".1f",
}  # fmt: skip
N_PAIRS, LEVEL = 4000, 0.9


def measure(name: str, density: float, n_components: int, n_fits: int, args: Any) -> dict[str, Any]:
    """One row: coverage before and after."""
    element, size = ELEMENTS[name], SIZES[density]
    drawn = simulate(
        *size, n_components=n_components, element=element, density=density, random_state=args.seed
    )
    begin = process_time()
    estimator = HCPF(
        n_components, element=element, learn_element=False, n_fits=n_fits, random_state=args.seed
    )
    model = estimator.fit(drawn.interactions, n_threads=args.threads, progress=False).model_
    fitted = process_time()
    posterior = model.posterior
    sampled = process_time()
    rng = np.random.default_rng(args.seed)
    users, items = (rng.integers(0, n, N_PAIRS) for n in size)
    true = drawn.rate(users, items)
    variational = np.array(
        [
            np.einsum("jk,jk->j", s[users], v[items])
            for fit in model.posteriors
            for s, v in zip(
                fit.users.sample(len(posterior) // n_fits, rng),
                fit.items.sample(len(posterior) // n_fits, rng),
                strict=True,
            )
        ]
    )
    tails = [0.5 - LEVEL / 2, 0.5 + LEVEL / 2]
    before = np.quantile(variational, tails, axis=0, method="weibull")
    after = posterior.interval(users, items, LEVEL)
    draws = posterior.rate(users, items)
    ratio = variational.std(axis=0) / draws.std(axis=0)
    probability = -np.expm1(-draws).mean(axis=0)
    error = -np.expm1(-model.rate(users, items)) - probability
    row = {
        "element": name, "density": density, "K": n_components, "fits": n_fits,
        "tempering": model.tempering, "ratio": float(np.median(ratio)),
        "P": float(probability.mean()), "P error": float(error.mean()),
        "P 95%": float(np.quantile(np.abs(error), 0.95)),
        "fit CPU s": fitted - begin, "Gibbs CPU s": sampled - fitted,
    }  # fmt: skip
    for label, (low, high) in (("variational", before), ("Gibbs", after)):
        row[label] = float(np.mean((low <= true) & (true <= high)))
    print(row, flush=True)
    return row


def main() -> None:
    """Measure all combinations."""
    parser = common.parser(__doc__)
    parser.add_argument("-K", "--components", type=int, nargs="*", default=[5, 20])
    parser.add_argument("--density", type=float, nargs="*", default=list(SIZES))
    parser.add_argument("--elements", nargs="*", default=list(ELEMENTS))
    parser.add_argument("--fits", type=int, nargs="*", default=[1, 4])
    args = parser.parse_args()
    header = common.start("Coverage of 90% intervals of rates", "simulated")
    cells = itertools.product(args.elements, args.density, args.components, args.fits)
    rows = [measure(*cell, args) for cell in cells]
    common.table(rows, COLUMNS)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()
