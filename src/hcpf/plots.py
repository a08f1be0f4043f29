"""Figures of a fitted model for notebooks; matplotlib is loaded when one is asked for.

Each function draws into the axes that it is given, or into a new figure, and returns the axes:
``plots.convergence(model).figure`` is that figure. They show what ``hcpf.report`` shows, from the
same numbers.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf._checks import generator
from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.data.names import item_labels, read_names
from hcpf.errors import InputError, MissingDependencyError
from hcpf.evaluate import Calibration, ComponentPath, Split
from hcpf.evaluate.predictive_checks import ValueCheck, check_activity, check_values
from hcpf.evaluate.protocols import explains_missing
from hcpf.model.components import summarize_components
from hcpf.model.resolve import fitted_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["activity", "calibration", "component_path", "convergence", "factors", "response_fit"]

_INK, _GREY, _BLUE, _PALE = "#1f2328", "#59636e", "#1f5fa8", "#b9c3cd"
_COLORS = (_BLUE, "#b35900", "#0f766e", "#7a3fa0")
_MARKS = ("o", "s", "^", "D")
_SHOWN = 24  # components drawn
_NAMED, _LONGEST = 2, 44  # items that stand for a component, and characters for them


def _new_axes(count: int, given: Any, width: float = 4.2, height: float = 3.4) -> "list[Axes]":
    """The axes given, or those of a new figure."""
    if given is not None:
        axes = list(np.atleast_1d(np.asarray(given, dtype=object)).ravel())
        if len(axes) != count:
            raise InputError(f"axes: {count} are needed, got {len(axes)}.")
        return axes
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "hcpf.plots needs matplotlib: pip install 'hcpf[plots]'."
        ) from error
    figure = Figure(figsize=(width * count, height), layout="constrained")
    return list(figure.subplots(1, count, squeeze=False).ravel())


def _finish(ax: "Axes", title: str, x: str, y: str) -> None:
    ax.set_title(title, loc="left", fontsize=10, fontweight="bold", color=_INK)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=8)


def _diagonal(ax: "Axes", *values: FloatArray) -> None:
    every = np.concatenate([v.ravel() for v in values])
    ends = [every.min(), every.max()]
    ax.plot(ends, ends, linestyle="--", linewidth=1, color=_GREY, label="exactly right")


def calibration(found: Calibration | Mapping[str, Calibration], ax: "Axes | None" = None) -> "Axes":
    """Draw the share of pairs observed against the probability predicted.

    Parameters
    ----------
    found
        What ``hcpf.evaluate.calibration`` returned, or several by the names of their models.
    ax
        Where to draw; by default a new figure.

    Examples
    --------
    >>> from hcpf import HCPF, evaluate, plots, simulate
    >>> data = simulate(60, 40, density=0.1, random_state=0).interactions
    >>> parts = evaluate.split(data, random_state=0)
    >>> model = HCPF(2, max_iter=5, random_state=0).fit(parts.train, exclude=parts.exclude)
    >>> plots.calibration(evaluate.calibration(model, parts)).get_xlabel()
    'predicted probability'
    """
    several = {"model": found} if isinstance(found, Calibration) else dict(found)
    curves = {k: c.reliability for k, c in several.items() if c.reliability is not None}
    if not curves:
        raise InputError("calibration: a model of observed entries only predicts no probability.")
    (axes,) = _new_axes(1, ax)
    _diagonal(axes, *(c.predicted for c in curves.values()))
    for j, (name, curve) in enumerate(curves.items()):
        axes.errorbar(
            curve.predicted,
            curve.observed,
            yerr=2.0 * curve.error,
            marker=_MARKS[j % len(_MARKS)],
            markersize=4,
            color=_COLORS[j % len(_COLORS)],
            label=name,
        )
    axes.set(xscale="log", yscale="log")
    _finish(axes, "Do probabilities mean what they say?", "predicted probability", "share observed")
    return axes


def response_fit(
    model: Any, data: Split | None = None, *, random_state: Any = 0, axes: Any = None
) -> "list[Axes]":
    """Draw observed values against the predictive distribution: shares, quantiles, tail.

    Parameters
    ----------
    model
        A fitted model, or the path of a saved one.
    data
        A split to whose training part the model was fitted: its held-out values are shown.
        By default those that the model was fitted to.
    random_state
        Seed or generator of the replicates.
    axes
        Three axes to draw into; by default a new figure.

    Examples
    --------
    >>> from hcpf import HCPF, plots, simulate
    >>> data = simulate(60, 40, density=0.1, random_state=0).interactions
    >>> model = HCPF(2, max_iter=5, random_state=0).fit(data)
    >>> [ax.get_ylabel() for ax in plots.response_fit(model)]
    ['share of values', 'quantile of the data', 'share of values above']
    """
    check = check_values(fitted_model(model), data, random_state)
    if check is None:
        raise InputError("response_fit: all values are the same, so there is nothing to compare.")
    first, second, third = _new_axes(3, axes)
    _draw_histogram(first, check)
    _diagonal(second, check.quantiles, check.model_quantiles)
    second.plot(check.model_quantiles, check.quantiles, "o", markersize=3.5, color=_BLUE)
    tail = check.tail
    third.fill_between(tail.at, tail.low, tail.high, color=_BLUE, alpha=0.2)
    third.plot(tail.at, tail.mean, color=_BLUE, label="model")
    third.plot(tail.at, tail.observed, ".", color=_INK, label="observed")
    third.set(yscale="log", ylim=(0.5 / check.n_values, 1.1))
    if check.log_scale:
        second.set(xscale="log", yscale="log")
        third.set(xscale="log")
    _finish(second, "Quantiles", "quantile of the model", "quantile of the data")
    _finish(third, "The largest values", "value", "share of values above")
    return [first, second, third]


def _draw_histogram(ax: "Axes", check: ValueCheck) -> None:
    edges, shares, centers = check.histogram.at, check.histogram, check.bin_centers
    ax.bar(edges[:-1], shares.observed, np.diff(edges), align="edge", color=_PALE, label="observed")
    ax.fill_between(centers, shares.low, shares.high, color=_BLUE, alpha=0.2)
    ax.plot(centers, shares.mean, color=_BLUE, label="model")
    if check.log_scale:
        ax.set_xscale("log")
    _finish(ax, "Values", "value", "share of values")


def convergence(model: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the ELBO against the passes over the data.

    Parameters
    ----------
    model
        A fitted model, or the path of a saved one.
    ax
        Where to draw; by default a new figure.

    Examples
    --------
    >>> from hcpf import HCPF, plots, simulate
    >>> data = simulate(60, 40, density=0.1, random_state=0).interactions
    >>> ax = plots.convergence(HCPF(2, max_iter=5, random_state=0).fit(data))
    >>> ax.figure.savefig("convergence.png")  # doctest: +SKIP
    """
    history = fitted_model(model).history
    if not history:
        raise InputError("convergence: this model has no history of its fit.")
    (axes,) = _new_axes(1, ax)
    axes.plot([c.iteration for c in history], [c.elbo for c in history], "o-", color=_BLUE)
    _finish(axes, "Has the fit converged?", "passes over the data", "ELBO")
    return axes


def activity(model: Any, *, random_state: Any = 0, axes: Any = None) -> "list[Axes]":
    """Draw how many items users have, and users items, in the data and in draws from the model.

    Parameters
    ----------
    model
        A fitted model, or the path of a saved one; not one of observed entries only.
    random_state
        Seed or generator of the draws.
    axes
        Two axes to draw into; by default a new figure.

    Examples
    --------
    >>> from hcpf import HCPF, plots, simulate
    >>> data = simulate(60, 40, density=0.1, random_state=0).interactions
    >>> users, items = plots.activity(HCPF(2, max_iter=5, random_state=0).fit(data))
    >>> users.get_xlabel()
    'number of items, at least'
    """
    fitted = fitted_model(model)
    if not explains_missing(fitted):
        raise InputError("activity: a model of observed entries only does not say which are.")
    rng = generator(random_state)
    both = _new_axes(2, axes)
    for ax, axis in zip(both, Axis, strict=True):
        rows, columns = axis.value, axis.other.value
        at, observed, drawn = check_activity(fitted, axis, rng).share_with_at_least()
        ax.plot(at, np.where(drawn > 0, drawn, np.nan), color=_BLUE, label="model")
        ax.plot(at, np.where(observed > 0, observed, np.nan), ".", color=_INK, label="observed")
        ax.set(xscale="log", yscale="log")
        title = f"How many {columns} do {rows} have?"
        _finish(ax, title, f"number of {columns}, at least", f"share of {rows}")
    return both


def component_path(path: ComponentPath, ax: "Axes | None" = None) -> "Axes":
    """Draw the held-out log-likelihood against the number of components, and the best of them.

    Parameters
    ----------
    path
        What ``hcpf.evaluate.choose_components`` returned.
    ax
        Where to draw; by default a new figure.
    """
    sizes = [c.n_components for c in path.candidates]
    likelihood = [c.log_likelihood for c in path.candidates]
    (axes,) = _new_axes(1, ax)
    values, errors = zip(*((score.value, score.error) for score in likelihood), strict=True)
    axes.errorbar(sizes, values, yerr=errors, marker="o", capsize=3, color=_BLUE)
    label = f"best by one standard error: {path.best}"
    axes.axvline(path.best, linestyle="--", color=_GREY, label=label)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    _finish(axes, "How many components?", "number of components", "held-out log-likelihood")
    return axes


def factors(model: Any, names: Any = None, axes: Any = None) -> "list[Axes]":
    """Draw what share of the matrix each component explains, and how much components overlap.

    Parameters
    ----------
    model
        A fitted model, or the path of a saved one; of several fits the first is shown.
    names
        Readable names of the items, as ``hcpf.report.write_report`` takes them.
    axes
        Two axes to draw into; by default a new figure.

    Examples
    --------
    >>> from hcpf import HCPF, plots, simulate
    >>> data = simulate(60, 40, density=0.1, random_state=0).interactions
    >>> share, overlap = plots.factors(HCPF(2, max_iter=5, random_state=0).fit(data))
    >>> share.get_xlabel()
    'share of all expected pairs'
    """
    fitted = fitted_model(model)
    known = item_labels(fitted.items, read_names(names, fitted.items))
    found = summarize_components(fitted)
    size = min(len(found), _SHOWN)
    first, second = _new_axes(2, axes, width=6.5, height=2.4 + 0.2 * size)
    place = np.arange(size)
    first.barh(place, found.share[:size], color=_BLUE)
    first.set_yticks(place, _titles(found.distinctive, size, known), fontsize=7)
    first.invert_yaxis()
    image = second.imshow(found.overlap[:size, :size], cmap="Blues", vmin=0.0, vmax=1.0)
    second.figure.colorbar(image, ax=second, shrink=0.7)
    second.set_xticks(place, [str(j + 1) for j in place], fontsize=7)
    second.set_yticks(place, [str(j + 1) for j in place], fontsize=7)
    _finish(first, "What the components are", "share of all expected pairs", "")
    _finish(second, "How much they overlap", "component", "component")
    return [first, second]


def _titles(distinctive: Any, size: int, known: Sequence[str]) -> list[str]:
    names = [", ".join(known[int(i)] for i in distinctive(j, _NAMED)) for j in range(size)]
    cut = [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…" for name in names]
    # A dollar sign would be taken for mathematics.
    return [f"{j + 1}: {name}".replace("$", r"\$") for j, name in enumerate(cut)]
