"""Recipes: settings that belong together."""

from typing import Any

from hcpf import _defaults
from hcpf._checks import one_of
from hcpf.training.settings import Algorithm1, Solver, solver_of

RECIPES = ("default", "paper")
PAPER_COMPONENTS = 160
PAPER_PASSES = 100
"""Passes of Algorithm 1, whose validation likelihood is flat in the first ones: a rule that stops
where it no longer rises would end the fit before it has begun."""


def paper_settings(
    solver: str | Solver = "algorithm1",
    start: str = "noise",
    *,
    max_iter: int | None = None,
    tol: float | None = None,
) -> dict[str, Any]:
    """Return the parameters of ``HCPF`` that follow the paper's experiments.

    Its priors, theta and kappa at maximum likelihood and fixed, the ordinary posterior, one fit;
    the constants of Algorithm 1 (xi = 0.7, tau = 10,000) are its defaults.
    """
    one_of("start", start, ("noise", "symmetric"))
    by_draws = isinstance(solver_of(solver), Algorithm1)
    if max_iter is None:
        max_iter = PAPER_PASSES if by_draws else _defaults.MAX_ITER
    if tol is None:
        tol = 0.0 if by_draws else _defaults.TOL
    return {
        "priors": "paper", "learn_element": False, "tempering": 1.0, "n_fits": 1,
        "solver": solver, "start": start, "max_iter": max_iter, "tol": tol,
    }  # fmt: skip
