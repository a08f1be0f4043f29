"""HCPF, the estimator: parameters, training and scikit-learn's contract around a FittedModel."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from hcpf._checks import flag
from hcpf._types import Csr
from hcpf.core.posterior import Posterior
from hcpf.core.priors import Priors
from hcpf.core.value_model import ValueModel
from hcpf.data.canonical import Duplicates, IdArray, name_pair
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.elements import Element, get
from hcpf.errors import ModelError, NotFittedError, SupportError
from hcpf.io import as_path
from hcpf.model.alignment import as_interactions, over_both
from hcpf.model.fitted import FittedModel
from hcpf.model.fold_in import extend
from hcpf.model.history import Check
from hcpf.training.fit import fit_model
from hcpf.training.options import FitOptions
from hcpf.training.plan import FitPlan
from hcpf.training.solvers.algorithm1 import EntryOptions
from hcpf.training.solvers.svi import SviOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class _NotFittedError(NotFittedError, SklearnNotFittedError):
    """The NotFittedError of hcpf and of scikit-learn, whichever a caller looks for."""


P = ParamSpec("P")
R = TypeVar("R")


def _model_of(estimator: "HCPF") -> FittedModel:
    if "model_" not in vars(estimator):
        name = type(estimator).__name__
        raise _NotFittedError(f"This {name} is not fitted yet: call fit first.")
    return estimator.model_


def _delegated(
    method: Callable[Concatenate[FittedModel, P], R],
) -> Callable[Concatenate["HCPF", P], R]:
    """Return a method of the estimator that calls the same method of its fitted model."""

    @wraps(method)
    def call(self: "HCPF", *args: P.args, **kwargs: P.kwargs) -> R:
        return method(_model_of(self), *args, **kwargs)

    return call


class HCPF(TransformerMixin, BaseEstimator):
    """Hierarchical compound Poisson factorization.

    Parameters
    ----------
    n_components
        The number of components, K.
    element
        The distribution of one element: an Element (parameters left out are estimated), a name,
        the paper's acronym, or "auto", which compares elements, ``vary_by`` and ``hurdle`` on
        held-out pairs. "presence" uses only which pairs are observed, not their values.
    vary_by
        Estimate a mean per "user", per "item" or "both" (partial pooling); None is a shared mean.
        Requires ``element``.
    hurdle
        Whether a value is a single element instead of a sum of elements. Requires ``element``.
    train_on
        "full" (missing pairs are information) or "observed" (they are not).
    n_fits, combine
        The number of fits from different seeds, and whether their rates are averaged ("average")
        or the one with the highest ELBO is kept ("best").
    solver
        "auto" (minibatches, then coordinate ascent), "cavi", "svi", or "entry" (the paper's
        Algorithm 1).
    priors
        "auto", "paper" or Priors.
    learn_element
        Whether training re-estimates the element's parameters; False keeps the first estimates, or
        the parameters given.
    max_iter
        The maximum number of passes over the data per fit.
    tol
        Stop when the ELBO, or the validation likelihood, changes by less than this share per pass;
        0 disables early stopping.
    validation_fraction
        The share of entries held out (with as many missing pairs) to decide when to stop.
    check_every
        The number of passes between two evaluations of the ELBO.
    svi_passes, batches, local_sweeps, tau, xi
        Constants of the stochastic solvers: minibatch passes of "auto", minibatches per pass,
        updates of a batch's users before the items move, and the step (t + tau) ** -xi. None
        is the solver's default (1 and 0.6 for "svi", 10,000 and 0.7 for "entry").
    stratified
        "entry" only: draw observed and missing pairs half and half (weighted), instead of
        uniformly as the paper does.
    n_truncation
        The paper's N_tr, the largest n summed over; None sums all that count.
    tempering
        Power of the likelihood; 1 is the ordinary posterior, larger values give a cold posterior.
        "auto" is entries / max(users, items) / 8, between 1 and 4 (8 for several fits), or more
        where the held-out likelihood of short fits is higher; 1 for "observed", for "entry", for
        the paper's priors and where most pairs are observed.
    init
        The start of the fits: "noise", "clusters" of items that the same users have, or "auto":
        clusters for every second fit, and noise for the others, for all fits where the tempering is
        above 8 or most pairs are observed, and for "svi", "entry" and "observed".
    warm_start
        Whether a new fit begins from the current posterior, if the shapes agree.
    n_threads
        The number of threads; the result does not depend on it.
    random_state
        Seed; the same seed gives the same bits.
    progress
        Whether to show a progress bar; None shows it in a terminal.
    checkpoint, checkpoint_every, checkpoint_seconds
        A folder to resume from, and how often it is written, in passes and in seconds.

    Attributes
    ----------
    model_ : FittedModel
        The result of training, which answers everything else and needs no trainer.
    """

    model_: FittedModel

    def __init__(
        self,
        n_components: int = 50,
        *,
        element: str | Element = "auto",
        vary_by: Literal["user", "item", "both"] | None = None,
        hurdle: bool = False,
        train_on: Literal["full", "observed"] = "full",
        n_fits: int = 4,
        combine: Literal["average", "best"] = "average",
        solver: Literal["auto", "cavi", "svi", "entry"] = "auto",
        priors: Literal["auto", "paper"] | Priors = "auto",
        learn_element: bool = True,
        max_iter: int = 300,
        tol: float = 1e-4,
        validation_fraction: float = 0.0,
        check_every: int = 5,
        svi_passes: int = 2,
        batches: int = 40,
        local_sweeps: int = 4,
        tau: float | None = None,
        xi: float | None = None,
        stratified: bool = True,
        n_truncation: int | None = None,
        tempering: float | Literal["auto"] = "auto",
        init: Literal["auto", "noise", "clusters"] = "auto",
        warm_start: bool = False,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        checkpoint_seconds: float = 300.0,
    ) -> None:
        self.n_components = n_components
        self.element = element
        self.vary_by = vary_by
        self.hurdle = hurdle
        self.train_on = train_on
        self.n_fits = n_fits
        self.combine = combine
        self.solver = solver
        self.priors = priors
        self.learn_element = learn_element
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.check_every = check_every
        self.svi_passes = svi_passes
        self.batches = batches
        self.local_sweeps = local_sweeps
        self.tau = tau
        self.xi = xi
        self.stratified = stratified
        self.n_truncation = n_truncation
        self.tempering = tempering
        self.init = init
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.checkpoint_seconds = checkpoint_seconds

    def fit(self, X: Any, y: None = None, *, validation: Any = None, exclude: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Interactions, AnnData or matrix
            In a sparse users x items matrix the stored entries are observed (explicit zeros too),
            in a dense one the entries other than 0 are.
        y
            Ignored.
        validation : Interactions or matrix, optional
            Entries held out to decide when to stop; as many missing pairs are drawn with them.
        exclude : Interactions or matrix, optional
            Pairs, observed or missing, that take no part: its stored entries mark them. They stay
            excluded in ``partial_fit``.
        """
        start = (
            self.model_
            if flag("warm_start", self.warm_start) and self.__sklearn_is_fitted__()
            else None
        )
        data = as_interactions(X)
        users, items = IdIndex("users", data.users), IdIndex("items", data.items)
        if validation is not None:
            validation = over_both("validation", validation, users, items)
        if exclude is not None:
            exclude = over_both("exclude", exclude, users, items)
        return self._train(data, validation, exclude, start)

    def partial_fit(self, X: Any, y: None = None, *, duplicates: Duplicates = "error") -> Self:
        """Continue training with more data, new users and items included.

        The entries are added to those fitted before and training continues from the current
        posterior. The result is near that of a new fit to all entries, often in fewer passes. Pairs
        excluded by ``fit`` stay excluded, even if ``X`` has entries for them.

        Parameters
        ----------
        X : Interactions or matrix
            More entries. Interactions may bring new ids; the rows of a matrix are new users.
        y
            Ignored.
        duplicates : {"error", "sum", "mean", "last"}
            How to combine the values of a pair that was observed before.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        start = extend(self.model_, X, duplicates)
        assert start.data is not None
        return self._train(start.data, None, start.excluded, start)

    def _train(
        self, data: Interactions, validation: Csr | None, exclude: Csr | None,
        start: FittedModel | None,
    ) -> Self:  # fmt: skip
        self._check_support(data)
        model = fit_model(data, self._plan(), validation=validation, exclude=exclude, start=start)
        self.model_ = replace(model, settings=self.get_params(deep=False))
        return self

    def _check_support(self, data: Interactions) -> None:
        """Raise an error that names the first pair whose value the given element cannot have."""
        element = self.element
        if not isinstance(element, str | Element) or element == "auto":
            return
        kind = get(element) if isinstance(element, str) else type(element)
        inside = kind.support.contains(data.values.astype(np.float64, copy=False))
        if not inside.all():
            position = int(np.argmin(inside))
            pair = name_pair(data.matrix, position, data.users, data.items)
            raise SupportError(
                f"{pair} does not fit: {kind.__name__} takes {kind.support.description}, and it "
                f"has the value {data.values[position]:g}. Choose an element whose support fits, "
                "or remove or transform such values."
            )

    @classmethod
    def from_model(cls, model: FittedModel) -> Self:
        """Return an estimator that holds a fitted model, to continue its training."""
        try:
            estimator = cls(**model.settings)
        except TypeError as error:
            raise ModelError(f"The settings of the model are not those of HCPF: {error}.") from None
        estimator.model_ = model
        return estimator

    @classmethod
    def load(cls, path: str | Path, *, check: bool = True) -> Self:
        """Load a saved model as an estimator; see ``FittedModel.load``."""
        return cls.from_model(FittedModel.load(path, check=check))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    # -- what training found ------------------------------------------------------------------

    @property
    def value_model_(self) -> ValueModel:
        """The value model with its fitted element."""
        return _model_of(self).value_model

    @property
    def element_(self) -> Element:
        """The element with its fitted parameters."""
        return _model_of(self).element

    @property
    def priors_(self) -> Priors:
        """The priors of the factors."""
        return _model_of(self).priors

    @property
    def posterior_(self) -> Posterior:
        """The posterior of the first (or best) fit."""
        return _model_of(self).posteriors[0]

    @property
    def posteriors_(self) -> list[Posterior]:
        """The posteriors of all fits whose rates are averaged."""
        return list(_model_of(self).posteriors)

    @property
    def history_(self) -> list[Check]:
        """Pass, seconds, ELBO and validation likelihood at every check of ``posterior_``."""
        return list(_model_of(self).history)

    @property
    def n_iter_(self) -> int:
        """The number of passes."""
        return _model_of(self).n_iter

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended training early."""
        return _model_of(self).interrupted

    @property
    def tempering_(self) -> float:
        """The power of the likelihood."""
        return _model_of(self).tempering

    @property
    def interactions_(self) -> Interactions | None:
        """The training data; None for a model saved without them."""
        return _model_of(self).data

    @property
    def users_(self) -> IdArray:
        """The ids of the users."""
        return _model_of(self).users

    @property
    def items_(self) -> IdArray:
        """The ids of the items."""
        return _model_of(self).items

    @property
    def n_features_in_(self) -> int:
        """The number of items."""
        return len(_model_of(self).items)

    # -- what the fitted model answers --------------------------------------------------------

    rate = _delegated(FittedModel.rate)
    predict_distribution = _delegated(FittedModel.predict_distribution)
    predict_proba = _delegated(FittedModel.predict_proba)
    predict = _delegated(FittedModel.predict)
    predict_expected_value = _delegated(FittedModel.predict_expected_value)
    element_at = _delegated(FittedModel.element_at)
    write_predictions = _delegated(FittedModel.write_predictions)
    recommend = _delegated(FittedModel.recommend)
    write_recommendations = _delegated(FittedModel.write_recommendations)
    similar_items = _delegated(FittedModel.similar_items)
    similar_users = _delegated(FittedModel.similar_users)
    explain = _delegated(FittedModel.explain)
    explain_components = _delegated(FittedModel.explain_components)
    fold_in = _delegated(FittedModel.fold_in)
    fold_in_items = _delegated(FittedModel.fold_in_items)
    transform = _delegated(FittedModel.transform)
    transform_items = _delegated(FittedModel.transform_items)
    write_anndata = _delegated(FittedModel.write_anndata)

    def save(self, path: str | Path, *, overwrite: bool = False, include_data: bool = True) -> None:
        """Save the fitted model and the estimator's parameters; see ``FittedModel.save``."""
        model = replace(_model_of(self), settings=self.get_params(deep=False))
        model.save(path, overwrite=overwrite, include_data=include_data)

    def score(self, X: Any, y: None = None) -> float:
        """Return the mean log-likelihood of held-out entries of new users; see FittedModel."""
        return _model_of(self).score(X)

    def _plan(self) -> FitPlan:
        values = self.get_params(deep=False)
        step = {name: values[name] for name in ("tau", "xi") if values[name] is not None}
        options = FitOptions(
            **_fields_of(FitOptions, values),
            svi=SviOptions(**_fields_of(SviOptions, values) | step),
            entry=EntryOptions(**_fields_of(EntryOptions, values) | step),
        )
        if self.checkpoint is not None:
            values["checkpoint"] = as_path("checkpoint", self.checkpoint)
        return FitPlan(**_fields_of(FitPlan, values), options=options)


def _fields_of(kind: type["DataclassInstance"], values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that are fields of a dataclass, without the step, which may be None."""
    names = (field.name for field in fields(kind))
    return {name: values[name] for name in names if name in values and name not in ("tau", "xi")}
