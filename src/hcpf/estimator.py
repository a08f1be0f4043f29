"""HCPF: the estimator. It wires data, solvers and posteriors together and does no mathematics."""

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from hcpf._checks import flag
from hcpf._types import ArrayLike, FloatArray
from hcpf.compound import CompoundPoisson
from hcpf.data.canonical import plain
from hcpf.data.interactions import Interactions
from hcpf.elements.base import Element
from hcpf.errors import InputError, NotFittedError, ParameterError
from hcpf.inference.combine import Combined
from hcpf.inference.entry import EntryOptions
from hcpf.inference.options import FitOptions
from hcpf.inference.session import FitPlan, Start, fit_all
from hcpf.inference.svi import SviOptions
from hcpf.posterior import Posterior
from hcpf.priors import Priors


class HCPF(BaseEstimator):
    """Hierarchical compound Poisson factorization.

    Parameters
    ----------
    n_components
        K, the number of components.
    element
        The distribution of a response: an Element (parameters left out are estimated), a name or
        the paper's acronym, or "auto".
    train_on
        "full" (absent pairs are missing, which is information), "observed" (stored entries only)
        or "binary" (full, every stored value 1).
    n_fits, combine
        Fits from different seeds, and whether their rates are averaged or the best one is kept.
    solver
        "auto" (minibatches, then coordinate ascent), "cavi", "svi", or "entry" (the paper's
        Algorithm 1).
    priors
        "auto", "paper" or Priors.
    learn_element
        Whether the element's parameters follow the bound; False keeps the estimates (or the
        parameters given).
    max_iter
        The most passes over the data in one fit.
    tol
        Stop when the bound, or the validation likelihood, changes by less than this share in a
        pass; 0 makes exactly ``max_iter`` passes.
    validation_fraction
        Share of the entries held out (with as many missing pairs) to decide when to stop.
    check_every
        Passes between two evaluations of the bound.
    svi_passes, batches, local_sweeps, tau, xi
        Constants of the stochastic solvers: minibatch passes of "auto", minibatches per pass,
        updates of a batch's users before the items move, and the step (t + tau) ** -xi. None
        takes the solver's own default (1 and 0.6 for "svi", 10,000 and 0.7 for "entry").
    stratified
        "entry" only: draw observed and missing entries half and half (weighted), instead of
        uniformly from the grid as the paper does.
    n_truncation
        The paper's N_tr, the largest n summed; None sums every n that counts.
    warm_start
        Begin a new fit from the current posterior where the shapes agree.
    n_threads
        Threads of the kernels; the result does not depend on it.
    random_state
        Seed; the same seed gives the same bits.
    progress
        Show a bar; None does on a terminal.
    checkpoint, checkpoint_every, checkpoint_seconds
        A folder to resume from, and how often it is written, in passes and in seconds.

    Attributes
    ----------
    element_ : Element
        The element with the parameters it was fitted with.
    priors_ : Priors
    posterior_ : Posterior
        The first (or best) fit.
    posteriors_ : list of Posterior
        All fits that predictions average.
    history_ : list of Check
        Iteration, seconds, bound and validation likelihood at every check of ``posterior_``.
    n_iter_ : int
    interrupted_ : bool
        Whether Ctrl-C ended the fit early.
    """

    def __init__(
        self,
        n_components: int = 50,
        *,
        element: str | Element = "auto",
        train_on: Literal["full", "observed", "binary"] = "full",
        n_fits: int = 1,
        combine: Literal["average", "best"] = "average",
        solver: Literal["auto", "cavi", "svi", "entry"] = "auto",
        priors: Literal["auto", "paper"] | Priors = "auto",
        learn_element: bool = True,
        max_iter: int = 100,
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
        X
            Interactions, or a users x items matrix: in a sparse one the stored entries are
            observed (explicit zeros too), in a dense one the entries other than 0 are.
        y
            Ignored.
        validation
            Observed entries held out to decide when to stop, in the same form as ``X``; as many
            missing pairs are drawn beside them.
        exclude
            Pairs, observed or missing, that take no part: a matrix whose stored entries mark them.
        """
        flag("warm_start", self.warm_start)
        data = as_interactions(X)
        plan = FitPlan(
            n_components=self.n_components,
            element=self.element,
            train_on=self.train_on,
            n_fits=self.n_fits,
            combine=self.combine,
            priors=self.priors,
            options=self._options(),
            validation_fraction=self.validation_fraction,
            n_truncation=self.n_truncation,
            n_threads=self.n_threads,
            random_state=self.random_state,
            progress=self.progress,
            checkpoint=_as_path(self.checkpoint),
            checkpoint_every=self.checkpoint_every,
            checkpoint_seconds=self.checkpoint_seconds,
        )
        start = None
        if self.warm_start and hasattr(self, "posteriors_"):
            start = Start(self.posteriors_, self.element_)
        fitted = fit_all(
            data.matrix,
            plan,
            validation=None if validation is None else as_interactions(validation).matrix,
            exclude=None if exclude is None else as_interactions(exclude).matrix,
            start=start,
        )
        self.posteriors_: list[Posterior] = fitted.posteriors
        self.posterior_ = fitted.posteriors[0]
        self.element_, self.priors_ = fitted.element, fitted.priors
        self.history_, self.n_iter_ = fitted.history, fitted.history[-1].iteration
        self.interrupted_, self.n_features_in_ = fitted.interrupted, data.shape[1]
        self.users_, self.items_ = data.users, data.items
        return self

    def _options(self) -> FitOptions:
        def given(**values: Any) -> dict[str, Any]:
            return {name: value for name, value in values.items() if value is not None}

        return FitOptions(
            solver=self.solver,
            max_iter=self.max_iter,
            tol=self.tol,
            check_every=self.check_every,
            svi_passes=self.svi_passes,
            learn_element=self.learn_element,
            svi=SviOptions(
                batches=self.batches,
                local_sweeps=self.local_sweeps,
                **given(tau=self.tau, xi=self.xi),
            ),
            entry=EntryOptions(stratified=self.stratified, **given(tau=self.tau, xi=self.xi)),
        )

    # -- rates and what follows from them -------------------------------------------------------

    def rate(self, users: ArrayLike, items: ArrayLike) -> FloatArray:
        """Poisson rates of the pairs (users and items broadcast), averaged over the fits."""
        if not hasattr(self, "posteriors_"):
            raise NotFittedError("This HCPF is not fitted yet: call fit first.")
        u = _positions("users", users, self.users_)
        i = _positions("items", items, self.items_)
        try:
            u, i = np.broadcast_arrays(u, i)
        except ValueError:
            raise InputError(
                f"users of shape {u.shape} and items of shape {i.shape} do not make pairs: give "
                "as many of each, or one of either."
            ) from None
        return Combined(self.posteriors_).rates(u.ravel(), i.ravel()).reshape(u.shape)

    def predictive(self, users: ArrayLike, items: ArrayLike) -> CompoundPoisson:
        """The whole predictive distribution of the pairs."""
        return CompoundPoisson(self.rate(users, items), self.element_)

    def predict_proba(self, users: ArrayLike, items: ArrayLike) -> FloatArray:
        """Probability that the pairs are observed."""
        return self.predictive(users, items).prob_observed

    def predict(self, users: ArrayLike, items: ArrayLike) -> FloatArray:
        """Expected response of the pairs if they are observed."""
        return self.predictive(users, items).mean_observed

    def predict_expected(self, users: ArrayLike, items: ArrayLike) -> FloatArray:
        """Expected total of the pairs, 0 for those that are not observed included."""
        return self.predictive(users, items).mean


def as_interactions(X: Any) -> Interactions:
    """Take Interactions as they are, and read anything else as a matrix."""
    return X if isinstance(X, Interactions) else Interactions.from_matrix(X)


def _as_path(checkpoint: str | Path | None) -> Path | None:
    try:
        return None if checkpoint is None else Path(checkpoint)
    except TypeError:
        raise ParameterError(f"checkpoint must be a path or None; got {checkpoint!r}.") from None


def _positions(name: str, ids: ArrayLike, known: NDArray[Any]) -> NDArray[np.int64]:
    """Find ids among those fitted, or raise an InputError that names one that is not."""
    wanted = np.asarray(ids)
    order = np.argsort(known)
    try:
        place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
        found = order[place]
        strange = known[found] != wanted
    except TypeError:
        raise InputError(f"{name}: the fitted ids are {known.dtype}; got {wanted.dtype}.") from None
    if np.any(strange):
        raise InputError(f"{name}: {plain(wanted[strange].flat[0])!r} was not among those fitted.")
    return found
