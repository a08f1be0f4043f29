"""HCPF: the estimator. It wires data, solvers and posteriors together and does no mathematics."""

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from hcpf._checks import flag
from hcpf.core.priors import Priors
from hcpf.data.canonical import Duplicates, name_pair
from hcpf.data.interactions import Interactions
from hcpf.elements import Element, get
from hcpf.errors import NotFittedError, SupportError
from hcpf.model.growing import Growing, as_interactions
from hcpf.model.persist import model as persist
from hcpf.model.predict import as_path
from hcpf.training.ensemble import Start, fit_all
from hcpf.training.options import FitOptions
from hcpf.training.plan import FitPlan
from hcpf.training.solvers.algorithm1 import EntryOptions
from hcpf.training.solvers.svi import SviOptions


class _NotFittedError(NotFittedError, SklearnNotFittedError):
    """The NotFittedError of hcpf and of scikit-learn, whichever a caller looks for."""


class HCPF(Growing, TransformerMixin, BaseEstimator):
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
    tempering
        How often the data count against the priors: 1 is the posterior itself. "auto" is
        entries / max(users, items) / 8, between 1 and 4 (8 for several fits), because independent
        factors overstate their uncertainty where each has many entries, and more where short fits
        find that held-out pairs are likelier then; 1 for "observed", for "entry", for the paper's
        priors and where most pairs are observed.
    init
        What fits begin from: "noise", "clusters" of items that the same users have, or "auto",
        which takes clusters for every second fit (the first one begins from noise; all do where
        the tempering is above 8, most pairs are observed, the solver is "svi" or "entry", or on
        observed entries only).
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
        plan = self._plan()
        start = None
        if self.warm_start and hasattr(self, "posteriors_"):
            start = Start(self.posteriors_, self.value_model_, self.tempering_)
        return self._train(data, plan, start, validation, exclude)

    def partial_fit(self, X: Any, y: None = None, *, duplicates: Duplicates = "error") -> Self:
        """Go on with more data, new users and items included.

        The entries are added to those fitted before and training goes on from where it stood, so
        the result is near that of a new fit to all of them, often in fewer passes.

        Parameters
        ----------
        X : Interactions or matrix
            More entries. Interactions may bring new ids; a matrix has new users as its rows.
        y
            Ignored.
        duplicates : {"error", "sum", "mean", "last"}
            What to do with a pair that was observed before.
        """
        if not hasattr(self, "posteriors_"):
            return self.fit(X)
        data = self._joined(X, duplicates)
        return self._train(
            data, self._plan(), Start(self._grown(data), self.value_model_, self.tempering_)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_fitted(self) -> None:
        if not hasattr(self, "posteriors_"):
            raise _NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")

    def _train(
        self,
        data: Interactions,
        plan: FitPlan,
        start: Start | None,
        validation: Any = None,
        exclude: Any = None,
    ) -> Self:
        self._check_support(data)
        fitted = fit_all(
            data.matrix,
            plan,
            validation=None if validation is None else as_interactions(validation).matrix,
            exclude=None if exclude is None else as_interactions(exclude).matrix,
            start=start,
        )
        self._set_fitted(
            data, fitted.posteriors, fitted.value_model, fitted.priors, fitted.history,
            fitted.interrupted, fitted.tempering,
        )  # fmt: skip
        return self

    def _check_support(self, data: Interactions) -> None:
        """Name the first pair whose value the chosen element cannot give."""
        element = self.element
        if not isinstance(element, str | Element) or element == "auto":
            return
        kind = get(element) if isinstance(element, str) else type(element)
        inside = kind.support.contains(data.values.astype(np.float64, copy=False))
        if not inside.all():
            place = int(np.argmin(inside))
            pair = name_pair(data.matrix, place, data.users, data.items)
            raise SupportError(
                f"{pair} does not fit: {kind.__name__} takes {kind.support.description}, and it "
                f"has the value {data.values[place]:g}. Choose an element whose support fits, or "
                "remove or transform such values."
            )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the fitted model to a folder: factors, ids, data, element and history.

        The folder holds tensors (safetensors), ids (Parquet) and a manifest (JSON), all with
        checksums. It is written so that a crash leaves the old model or the new one, whole.
        """
        self._check_fitted()
        persist.save(self, as_path("path", path), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path, *, check: bool = True) -> Self:
        """Load a saved model; the factors are mapped, not read, until they are used.

        ``check=False`` skips the checksums (not the sizes) of large files.
        """
        return persist.load(cls, as_path("path", path), check=check)

    def write_anndata(self, adata: Any, key: str = "hcpf") -> None:
        """Put the factors into ``adata.obsm["X_" + key]`` and ``adata.varm[key]``.

        The names of its observations and variables must be among those fitted.
        """
        self._check_fitted()
        users = self._user_index.positions(np.asarray(adata.obs_names, dtype=object))
        items = self._item_index.positions(np.asarray(adata.var_names, dtype=object))
        adata.obsm[f"X_{key}"] = self._factors(users=True)[users]
        adata.varm[key] = self._factors(users=False)[items]

    def _plan(self) -> FitPlan:
        return FitPlan(
            n_components=self.n_components,
            element=self.element,
            vary_by=self.vary_by,
            hurdle=self.hurdle,
            train_on=self.train_on,
            n_fits=self.n_fits,
            combine=self.combine,
            priors=self.priors,
            options=self._options(),
            validation_fraction=self.validation_fraction,
            n_truncation=self.n_truncation,
            tempering=self.tempering,
            init=self.init,
            n_threads=self.n_threads,
            random_state=self.random_state,
            progress=self.progress,
            checkpoint=(
                None if self.checkpoint is None else as_path("checkpoint", self.checkpoint)
            ),
            checkpoint_every=self.checkpoint_every,
            checkpoint_seconds=self.checkpoint_seconds,
        )

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
