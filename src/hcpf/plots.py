"""Charts of a fitted model for notebooks: those of ``hcpf.report``, from the same numbers.

A notebook shows what the functions return. ``chart.save("chart.svg")`` writes a file, and
``chart.to_table()`` returns the numbers, to be drawn with any other library.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hcpf._checks import generator
from hcpf.core.axis import Axis
from hcpf.data.names import item_labels, read_names
from hcpf.errors import InputError
from hcpf.evaluate import Calibration, ComponentPath, Consensus, Split
from hcpf.evaluate.predictive_checks import check_activity, check_values
from hcpf.evaluate.scoring import explains_missing
from hcpf.experiments.cells import Cell
from hcpf.experiments.claims import CLAIMS, Claim, Judgment, compare_recipes, judge, recipes_in
from hcpf.experiments.pages import recipe_pairs
from hcpf.model.components import summarize_components
from hcpf.model.resolve import fitted_model
from hcpf.report import charts
from hcpf.report.drawing import Chart, Charts, Drawing
from hcpf.report.lists import DifferenceList

__all__ = [
    "Chart",
    "Charts",
    "Drawing",
    "activity",
    "calibration",
    "component_path",
    "components",
    "consensus",
    "convergence",
    "paper_claims",
    "value_fit",
]


def calibration(found: Calibration | Mapping[str, Calibration]) -> Charts:
    """Draw the calibration of probabilities and intervals, and where values fall in predictions.

    Parameters
    ----------
    found : Calibration or mapping
        What ``hcpf.evaluate.calibration`` returned, or several by the names of their models.

    Returns
    -------
    Charts
        Three charts; the first is missing where no model predicts probabilities.

    Examples
    --------
    >>> from hcpf import HCPF, evaluate, plots, simulate
    >>> data = simulate(60, 40, density=0.1, random_state=0).interactions
    >>> parts = evaluate.split(data, random_state=0)
    >>> model = HCPF(2, max_iter=5, random_state=0).fit(parts.train, exclude=parts.held_out)
    >>> [chart.title for chart in plots.calibration(evaluate.calibration(model, parts))][0]
    'Are the probabilities right?'
    """
    several = {"model": found} if isinstance(found, Calibration) else dict(found)
    if not several:
        raise InputError("calibration requires at least one Calibration.")
    return charts.calibration(several)


def value_fit(model: Any, data: Split | None = None, *, random_state: Any = 0) -> Charts:
    """Draw observed values against the predictive distribution: histogram, quantiles and tail.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model, or the folder of a saved one.
    data : Split, optional
        A split to whose training data the model was fitted: its held-out values are shown. By
        default those that the model was fitted to.
    random_state : int or Generator
        Seed or generator of the replicates.

    Examples
    --------
    >>> from hcpf import HCPF, plots, simulate
    >>> data = simulate(60, 40, density=0.1, random_state=0).interactions
    >>> model = HCPF(2, max_iter=5, random_state=0).fit(data)
    >>> histogram, quantiles, tail = plots.value_fit(model)
    >>> tail.save("tail.svg")  # doctest: +SKIP
    """
    check = check_values(fitted_model(model), data, random_state)
    if check is None:
        raise InputError("value_fit: all values are the same, so there is nothing to compare.")
    return charts.values(check)


def convergence(model: Any) -> Charts:
    """Draw the ELBO per pass, and its relative change.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model, or the folder of a saved one.
    """
    fitted = fitted_model(model)
    if not fitted.history:
        raise InputError("convergence: this model has no history of its fit.")
    return charts.convergence(fitted)


def activity(model: Any, *, random_state: Any = 0) -> Charts:
    """Draw how many items users have, and users items, in the data and in draws from the model.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model, or the folder of a saved one; not one with ``train_on="observed"``.
    random_state : int or Generator
        Seed or generator of the draws.
    """
    fitted = fitted_model(model)
    if not explains_missing(fitted):
        raise InputError(
            "activity: this model was trained on observed pairs only and does not predict which "
            "pairs are observed. Fit with train_on='full'."
        )
    rng = generator(random_state)
    return Charts(charts.activity(check_activity(fitted, axis, rng), axis) for axis in Axis)


def components(model: Any, names: Any = None) -> Charts:
    """Draw what share of the expected pairs each component explains, and how components overlap.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model, or the folder of a saved one; of several fits the first is shown.
    names : dict or path, optional
        Readable names of the items, as ``hcpf.report.write_report`` takes them.
    """
    fitted = fitted_model(model)
    labels = item_labels(fitted.items, read_names(names, fitted.items))
    found = summarize_components(fitted)
    return Charts([charts.component_shares(found, labels), charts.overlap(found)])


def component_path(path: ComponentPath) -> Chart:
    """Draw the held-out log-likelihood against the number of components, and the best of them.

    Parameters
    ----------
    path : ComponentPath
        What ``hcpf.evaluate.choose_components`` returned.
    """
    return charts.component_path(path)


def consensus(found: Consensus) -> Charts:
    """Draw the stability of the components and the held-out log-likelihood against their number.

    Parameters
    ----------
    found : Consensus
        What ``hcpf.evaluate.consensus`` returned.

    Returns
    -------
    Charts
        Two charts: stability, and log-likelihood.
    """
    return charts.consensus(found)


def paper_claims(cells: Sequence[Cell]) -> dict[str, DifferenceList]:
    """Draw the claims of the paper's section 5: paired differences per data set.

    Parameters
    ----------
    cells : sequence of Cell
        What ``hcpf reproduce`` computed, as ``hcpf.experiments.cells.read_results`` returns it.

    Returns
    -------
    dict of DifferenceList
        The charts by file name.
    """
    found = recipes_in(cells)
    charts: dict[str, DifferenceList] = {}
    for claim in CLAIMS:
        judged = [j for recipe in found[:4] if (j := judge(claim, cells, recipe)) is not None]
        if judged:
            series = {judgment.recipe.label: judgment for judgment in judged}
            charts[f"claim-{claim.name}.svg"] = _differences(claim, series)
    for first, second in recipe_pairs(found):
        judgment = compare_recipes(cells, first, second)
        if judgment is not None:
            series = {first.label: judgment}
            charts[f"{judgment.claim.name}.svg"] = _differences(judgment.claim, series)
    return charts


def _differences(claim: Claim, judged: Mapping[str, Judgment]) -> DifferenceList:
    names = dict.fromkeys(f.dataset for judgment in judged.values() for f in judgment.findings)
    range_ = f" They count as similar within {claim.margin:g} of 0." if claim.margin else ""
    return DifferenceList(
        claim.title,
        f"{claim.text} Right of the dashed line it is so; bars across it are undecided.{range_}",
        list(names),
        {
            name: {f.dataset: (f.gap.value, f.gap.room) for f in judgment.findings}
            for name, judgment in judged.items()
        },
        unit=0.001 if claim.score == "auc" else 0.1,
        labels=("data set", f"difference in {claim.unit}"),
    )
