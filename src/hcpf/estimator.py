"""HCPF, the estimator: parameters, training and scikit-learn's contract around a FittedModel."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from numbers import Real
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from hcpf._checks import flag
from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis, Exposure
from hcpf.core.posterior import Check, Posterior
from hcpf.core.priors import Priors
from hcpf.core.value_model import ValueModel
from hcpf.data.canonical import Duplicates, IdArray
from hcpf.data.exposure import resolve_exposure
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.distributed import engine_of
from hcpf.distributed.ray import RayEngine
from hcpf.elements import Element
from hcpf.errors import ModelError, NotFittedError
from hcpf.model.alignment import as_interactions, over_both
from hcpf.model.factors import column_names
from hcpf.model.fitted import FittedModel
from hcpf.model.fold_in import extend
from hcpf.training.engine import LOCAL_ENGINE, Engine
from hcpf.training.fit import fit_model
from hcpf.training.settings import (
    PAPER_COMPONENTS,
    Checkpoints,
    FitPlan,
    Settings,
    Solver,
    paper_settings,
    solver_of,
)


class _NotFittedError(NotFittedError, SklearnNotFittedError):
    """The estimator is not fitted; caught as the NotFittedError of hcpf or of scikit-learn."""


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


class HCPF(Settings, TransformerMixin, BaseEstimator):
    """Hierarchical compound Poisson factorization.

    Parameters
    ----------
    n_components : int, default 50
        The number of components, K.
    element : str or Element, default "auto"
        The distribution of one element: an Element (parameters not given are estimated), a name,
        the paper's acronym, or "auto", which compares elements, ``vary_by`` and ``hurdle`` on
        held-out pairs. "quick" takes the most likely element of the values alone, without short
        fits. "presence" uses only which pairs are observed, not their values.
    vary_by : {"user", "item", "both"}, optional
        Estimate a mean per user, per item or both (partial pooling); None is a shared mean.
        Requires ``element``.
    hurdle : bool, default False
        Whether a value is a single element instead of a sum of elements. Requires ``element``.
    learn_element : bool, default True
        Whether training re-estimates the element's parameters; False keeps the first estimates, or
        the parameters given.
    train_on : {"full", "observed"}
        "full" (missing pairs are information) or "observed" (they are not).
    n_fits : int, default 4
        The number of fits from different seeds.
    combine : {"average", "best"}
        Whether the rates of the fits are averaged, or the fit with the highest ELBO is kept.
    priors : "auto", "paper", Priors or dict
        The priors of the factors and activities. A dict such as ``{"item_shape": 1.0}`` has numbers
        that replace those of "auto"; a new shape of factors keeps their scale.
    tempering : float or "auto"
        Power of the likelihood; 1 is the ordinary posterior, larger values give a cold posterior.
        "auto" is 1 unless the held-out likelihood of short fits is clearly higher with a stronger
        one. "formula" makes no short fits: entries / max(users, items) / 8, between 1 and 4 (8 for
        several fits); 1 for "observed", for Algorithm 1, for the paper's priors and where most
        pairs are observed. Intervals with ``n_samples`` do not come from a cold posterior.
    solver : str, Auto, CAVI, SVI or Algorithm1, default "auto"
        "auto" (minibatches, then coordinate ascent with momentum), "cavi", "svi" or "algorithm1",
        or an object with their constants, such as ``SVI(batches=100)``.
    start : {"auto", "noise", "clusters", "symmetric"}
        The start of the fits: "noise", "clusters" of items that the same users have, or "auto":
        clusters for every second fit and noise for the others; noise for all fits where the
        tempering is above 8 or most pairs are observed, and for "svi", "algorithm1" and "observed".
        "symmetric" is the paper's, from which all components stay equal.
    max_iter : int, default 300
        The maximum number of passes over the data per fit.
    tol : float, default 1e-4
        Stop when the relative change per pass of the ELBO, or the rise of the validation
        likelihood, falls below this value; 0 disables early stopping.
    random_state : int or Generator, optional
        Seed; the same seed gives the same bits.

    Attributes
    ----------
    model_ : FittedModel
        The result of training, which makes all predictions.

    Examples
    --------
    >>> from hcpf import HCPF, datasets
    >>> model = HCPF(n_components=10, element="gamma", n_fits=1, max_iter=20, random_state=0)
    >>> for best in model.fit(datasets.retail()).recommend(12347, n=2):
    ...     print(best.user, best.item)
    12347 22720
    12347 22960
    """

    model_: FittedModel

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        layer: str | None = None,
        validation: Any = None,
        exclude: Any = None,
        user_exposure: Any = None,
        item_exposure: Any = None,
        warm_start: bool = False,
        n_threads: int | None = None,
        progress: bool | None = None,
        checkpoint: str | Path | Checkpoints | None = None,
        engine: Literal["local", "ray"] | RayEngine = "local",
        workers: int | None = None,
        address: str | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Interactions, AnnData or matrix
            In a sparse users x items matrix the stored entries are observed (explicit zeros too),
            in a dense one the entries other than 0 are.
        y
            Ignored.
        layer : str, optional
            The layer of an AnnData to read instead of its ``X``.
        validation : Interactions, matrix or float, optional
            Entries held out to decide when to stop, or the share of entries to hold out; as many
            missing pairs are drawn with them.
        exclude : Interactions or matrix, optional
            Pairs, observed or missing, that training ignores: its stored entries mark them. They
            stay excluded in ``partial_fit``.
        user_exposure, item_exposure : number, array, mapping or str, optional
            Known multipliers of the rates of users and items, such as library sizes, observation
            times or days on sale; by default 1. Numbers in the order of the users (items), a
            mapping or pandas Series by id, a column of ``obs`` (``var``) of an AnnData, or
            "FILE:COLUMN". All must be between 1e-9 and 1e9.
        warm_start : bool, default False
            Whether to begin from the current posterior. Users and items must be the same, in the
            same order. What "auto" and "quick" chose for the current model stays chosen, unless
            ``vary_by`` or ``hurdle`` is given.
        n_threads : int, optional
            The number of threads, by default that of ``hcpf.threads`` or all cores; the result does
            not depend on it.
        progress : bool, optional
            Whether to show a progress bar; by default only in a terminal.
        checkpoint : path, URL or Checkpoints, optional
            A folder for checkpoints. The same fit with the same folder resumes where it stopped. A
            URL such as "s3://bucket/folder" is opened by fsspec.
        engine : "local", "ray" or RayEngine
            Where training runs: in this process, or on a Ray cluster.
        workers : int, optional
            The number of workers of a cluster, by default one per node. Each trains on the entries
            of some users. The bits of the result depend on it.
        address : str, optional
            "host:port" of a Ray cluster, or "auto" for the one of this machine; by default a
            cluster on this machine for the time of the fit.
        """
        start = self.model_ if flag("warm_start", warm_start) and self._is_fitted else None
        data = as_interactions(X, layer)
        users, items = IdIndex("users", data.users), IdIndex("items", data.items)
        run: dict[str, Any] = {
            "n_threads": n_threads, "progress": progress, "checkpoint": checkpoint
        }  # fmt: skip
        if isinstance(validation, str | Real):
            run["validation_fraction"], validation = validation, None
        elif validation is not None:
            validation = over_both("validation", validation, users, items)
        if exclude is not None:
            exclude = over_both("exclude", exclude, users, items)
        exposure = Exposure(
            resolve_exposure(user_exposure, users, source=X),
            resolve_exposure(item_exposure, items, source=X),
        )
        chosen = engine_of(engine, workers, address)
        return self._train(data, validation, exclude, exposure, start, run, chosen)

    def fit_transform(self, X: Any, y: None = None, **fit_params: Any) -> Any:
        """Fit the model to ``X`` and return the factors of its users.

        Parameters
        ----------
        X : Interactions, AnnData or matrix
            As in ``fit``.
        y
            Ignored.
        **fit_params
            Parameters of ``fit``; ``exclude``, ``layer`` and ``user_exposure`` go to ``transform``,
            too.
        """
        fitted = self.fit(X, y, **fit_params)
        shared = fit_params.keys() & {"exclude", "layer", "user_exposure"}
        return fitted.transform(X, **{name: fit_params[name] for name in shared})

    def partial_fit(
        self,
        X: Any,
        y: None = None,
        *,
        duplicates: Duplicates = "error",
        user_exposure: Any = None,
        item_exposure: Any = None,
        n_threads: int | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Continue training with more data, new users and items included.

        The entries are added to those fitted before and training continues from the current
        posterior. The result is near that of a new fit to all entries, often in fewer passes. The
        element, its pooling and the tempering that "auto" chose are kept. Pairs excluded by ``fit``
        stay excluded, even if ``X`` has entries for them.

        Parameters
        ----------
        X : Interactions or matrix
            More entries. Interactions may bring new ids; the rows of a matrix are new users.
        y
            Ignored.
        duplicates : {"error", "sum", "mean", "last"}
            How to combine the values of a pair that was observed before.
        user_exposure, item_exposure
            Exposures of the users and items of ``X``, as in ``fit``. Fitted ones keep theirs unless
            they are given; new ones need one if the model was fitted with exposures.
        n_threads, progress
            As in ``fit``.
        """
        if not self._is_fitted:
            return self.fit(
                X, user_exposure=user_exposure, item_exposure=item_exposure,
                n_threads=n_threads, progress=progress,
            )  # fmt: skip
        exposure = {Axis.USERS: user_exposure, Axis.ITEMS: item_exposure}
        start = extend(self.model_, X, duplicates, exposure)
        assert start.data is not None
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        return self._train(start.data, None, start.excluded, start.exposure, start, run)

    def _train(
        self, data: Interactions, validation: Csr | None, exclude: Csr | None,
        exposure: Exposure, start: FittedModel | None, run: dict[str, Any],
        engine: Engine = LOCAL_ENGINE,
    ) -> Self:  # fmt: skip
        plan = FitPlan(**self.get_params(deep=False), **run)
        model = fit_model(
            data,
            plan,
            validation=validation,
            exclude=exclude,
            exposure=exposure,
            start=start,
            engine=engine,
        )
        self.model_ = replace(model, settings=self._settings)
        return self

    @property
    def _settings(self) -> dict[str, Any]:
        """The parameters as a model keeps them, which does not import the solvers."""
        values = self.get_params(deep=False)
        if isinstance(self.solver, Solver):
            values["solver"] = self.solver.as_dict()
        return values

    @classmethod
    def paper(
        cls,
        n_components: int = PAPER_COMPONENTS,
        *,
        element: str | Element = "quick",
        train_on: Literal["full", "observed"] = "full",
        solver: Literal["algorithm1", "cavi"] | Solver = "algorithm1",
        start: Literal["noise", "symmetric"] = "noise",
        max_iter: int | None = None,
        tol: float | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Self:
        """Return an estimator with the settings of the paper's experiments.

        Its priors, the element at maximum likelihood and fixed, the ordinary posterior and one fit.
        The paper's K is 160, and xi = 0.7 and tau = 10,000 are the defaults of ``Algorithm1``.

        Parameters
        ----------
        n_components : int, default 160
            The number of components.
        element : str or Element, default "quick"
            As in ``HCPF``; "quick" takes the most likely element of the values alone.
        train_on : {"full", "observed"}
            With "observed", kappa is divided by E[n] = 6.908 as in the paper where the element
            allows it; a warning says what is done where it does not.
        solver : {"algorithm1", "cavi"} or Solver
            The paper's Algorithm 1, or exact coordinate ascent with the same settings. Pass
            ``Algorithm1(stratified=False)`` to draw pairs uniformly.
        start : {"noise", "symmetric"}
            "symmetric" is the start that the paper prints; its components stay equal.
        max_iter, tol
            By default 100 passes without early stopping for Algorithm 1, and those of ``HCPF`` for
            other solvers.
        random_state : int or Generator, optional
            Seed; the same seed gives the same bits.

        Examples
        --------
        >>> from hcpf import HCPF, datasets
        >>> model = HCPF.paper(10, element="gamma", solver="cavi", max_iter=5, random_state=0)
        >>> model.fit(datasets.retail()).tempering_
        1.0
        """
        settings = paper_settings(solver, start, max_iter=max_iter, tol=tol)
        return cls(
            n_components, element=element, train_on=train_on, random_state=random_state, **settings
        )

    @classmethod
    def from_model(cls, model: FittedModel) -> Self:
        """Return an estimator with a fitted model, to continue its training."""
        try:
            estimator = cls(**model.settings)
            if isinstance(estimator.solver, Mapping):
                estimator.solver = solver_of(estimator.solver)
        except (TypeError, KeyError) as error:
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
        return self._is_fitted

    @property
    def _is_fitted(self) -> bool:
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
    def converged_(self) -> bool:
        """Whether all fits converged."""
        return _model_of(self).converged

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
        """The training data; None for a loaded model that does not have them."""
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
    def components_(self) -> FloatArray:
        """The factors of the items, components x items; those of several fits one below the other.

        ``transform(X) @ components_`` are the rates of the users in X.
        """
        return _model_of(self).factors("items").values.T

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of ``transform``: hcpf0, hcpf1, ...

        Parameters
        ----------
        input_features
            Ignored.
        """
        return np.array(column_names(_model_of(self)), dtype=object)

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
    factors = _delegated(FittedModel.factors)
    top_items = _delegated(FittedModel.top_items)
    explain_components = _delegated(FittedModel.explain_components)
    fold_in = _delegated(FittedModel.fold_in)
    fold_in_items = _delegated(FittedModel.fold_in_items)
    transform = _delegated(FittedModel.transform)
    transform_items = _delegated(FittedModel.transform_items)
    write_anndata = _delegated(FittedModel.write_anndata)

    def save(self, path: str | Path, *, overwrite: bool = False, include_data: bool = True) -> None:
        """Save the fitted model and the estimator's parameters; see ``FittedModel.save``."""
        model = replace(_model_of(self), settings=self._settings)
        model.save(path, overwrite=overwrite, include_data=include_data)

    def score(
        self,
        X: Any,
        y: None = None,
        *,
        unknown: str = "error",
        layer: str | None = None,
        user_exposure: Any = None,
    ) -> float:
        """Return the mean log-likelihood of held-out entries of new users; see FittedModel."""
        return _model_of(self).score(X, unknown=unknown, layer=layer, user_exposure=user_exposure)
