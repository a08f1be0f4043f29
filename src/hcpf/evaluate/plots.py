"""Figures of evaluations; matplotlib is loaded when one is asked for."""

from typing import TYPE_CHECKING

from hcpf.errors import MissingDependencyError
from hcpf.evaluate.components import ComponentPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(path: ComponentPath, ax: "Axes | None" = None) -> "Axes":
    """Draw the held-out likelihood against the number of components, and the best of them.

    Parameters
    ----------
    path
        What ``choose_components`` returned.
    ax
        Where to draw; by default a new figure, ``plot(path).figure``.
    """
    if ax is None:
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingDependencyError(
                "plot needs matplotlib: pip install 'hcpf[plots]'."
            ) from error
        ax = Figure(figsize=(5.0, 3.2), layout="constrained").subplots()
    sizes = [c.n_components for c in path.candidates]
    values = [c.log_likelihood.value for c in path.candidates]
    errors = [c.log_likelihood.error for c in path.candidates]
    ax.errorbar(sizes, values, yerr=errors, marker="o", capsize=3)
    ax.axvline(
        path.best, linestyle="--", color="grey", label=f"best by one standard error: {path.best}"
    )
    ax.set_xscale("log")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set_xlabel("number of components")
    ax.set_ylabel("held-out log likelihood")
    ax.legend()
    return ax
