"""From interactions and a plan to a fitted model."""

from hcpf._types import Csr
from hcpf.data.interactions import Interactions
from hcpf.model.alignment import union
from hcpf.model.fitted import FittedModel
from hcpf.training.ensemble import Start, fit_all
from hcpf.training.plan import FitPlan


def fit_model(
    data: Interactions,
    plan: FitPlan,
    *,
    validation: Csr | None = None,
    exclude: Csr | None = None,
    start: FittedModel | None = None,
) -> FittedModel:
    """Fit a model to interactions; ``start`` is one to continue from."""
    before = None
    if start is not None:
        before = Start(start.posteriors, start.value_model, start.tempering)
    fitted = fit_all(data.matrix, plan, validation=validation, exclude=exclude, start=before)
    return FittedModel(
        value_model=fitted.value_model,
        priors=fitted.priors,
        posteriors=tuple(fitted.posteriors),
        users=data.users,
        items=data.items,
        history=tuple(fitted.history),
        tempering=fitted.tempering,
        excluded=union(exclude, validation),
        data=data,
        interrupted=fitted.interrupted,
        n_truncation=plan.n_truncation,
    )
