"""FittedModel: what training gives, and everything that can be asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._checks import flag, generator, whole
from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis
from hcpf.core.fold_in import FoldInModel
from hcpf.core.posterior import Posterior
from hcpf.core.priors import Priors
from hcpf.core.table_cache import TableCache
from hcpf.core.value_model import ValueModel
from hcpf.data.canonical import IdArray
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.distributions.pair import PairDistribution
from hcpf.distributions.posterior_predictive import PosteriorPredictive
from hcpf.elements.base import Element
from hcpf.errors import InputError
from hcpf.io import as_path
from hcpf.model import explain, fold_in, predict, recommend
from hcpf.model.combine import Combined, Positions
from hcpf.model.history import Check
from hcpf.model.tables import Explanation, Neighbors, Recommendations, write_tables


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """A trained model; only ``recommend`` and ``explain`` use the training data, if present.

    ``HCPF.fit`` makes one (``HCPF.model_``), and ``FittedModel.load`` reads a saved one.

    Attributes
    ----------
    value_model : ValueModel
        The element with its fitted parameters, its pooling, and which pairs were trained on.
    priors : Priors
    posteriors : tuple of Posterior
        The fits whose rates are averaged.
    users, items : ndarray
        The ids of the rows and of the columns.
    history : tuple of Check
        ELBO and validation likelihood during the first (or best) fit.
    tempering : float
        The power of the likelihood.
    excluded : csr_array, optional
        Users x items; the stored entries mark the pairs passed as ``exclude`` or ``validation``.
        What ``fit(validation=0.1)`` holds out by itself is not recorded.
    data : Interactions, optional
        The training data; without them ``recommend`` and ``explain`` take ``seen=``.
    interrupted : bool
        Whether Ctrl-C ended training early.
    max_count : int, optional
        The largest number of elements summed over; None sums all that count.
    settings : mapping
        The parameters of the estimator that trained the model.
    """

    value_model: ValueModel
    priors: Priors
    posteriors: tuple[Posterior, ...]
    users: IdArray
    items: IdArray
    history: tuple[Check, ...] = ()
    tempering: float = 1.0
    excluded: Csr | None = None
    data: Interactions | None = None
    interrupted: bool = False
    max_count: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __repr__(self) -> str:
        fits = f"{len(self.posteriors)} fits" if len(self.posteriors) > 1 else "1 fit"
        return (
            f"FittedModel({self.value_model.description}, {len(self.users):,} users x "
            f"{len(self.items):,} items, {self.n_components} components, {fits})"
        )

    @property
    def element(self) -> Element:
        """The element with its fitted parameters."""
        return self.value_model.element

    @property
    def n_components(self) -> int:
        """The number of components of each fit."""
        return self.posteriors[0].n_components

    @property
    def n_iter(self) -> int:
        """The number of passes of the first (or best) fit."""
        return self.history[-1].iteration if self.history else 0

    @cached_property
    def user_index(self) -> IdIndex:
        """The positions of the users."""
        return IdIndex("users", self.users)

    @cached_property
    def item_index(self) -> IdIndex:
        """The positions of the items."""
        return IdIndex("items", self.items)

    @property
    def combined(self) -> Combined:
        """The ensemble of the fits, by position."""
        return Combined(self.posteriors)

    @cached_property
    def fold_in_model(self) -> FoldInModel:
        """What fold-in needs of the model, with the tables that it keeps between calls."""
        tables = TableCache(self.value_model, self.max_count)
        return FoldInModel(self.value_model, self.priors, self.tempering, self.max_count, tables)

    # -- pairs --------------------------------------------------------------------------------

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Return the Poisson rates of pairs, averaged over the fits.

        Parameters
        ----------
        users, items : ids
            The pairs; users and items broadcast.
        """
        u, i = predict.pair_positions(self, users, items)
        return self.combined.rates(u.ravel(), i.ravel()).reshape(u.shape)

    def predict_distribution(
        self, users: Any, items: Any, *, n_samples: int = 0, random_state: Any = None
    ) -> PairDistribution | PosteriorPredictive:
        """Return the predictive distribution of pairs.

        Parameters
        ----------
        users, items : ids
            The pairs; users and items broadcast.
        n_samples : int, default 0
            0 uses the posterior mean of the rates. A positive number draws that many factors from
            the posterior and averages over them, so intervals include the uncertainty of the rates.
        random_state : int or Generator, optional
            Seed of the draws.
        """
        size, rng = whole("n_samples", n_samples, least=0), generator(random_state)
        u, i = predict.pair_positions(self, users, items)
        if size == 0:
            return predict.distribution(self, u, i)
        return predict.sampled_distribution(self, u, i, size, rng)

    def predict_proba(self, users: Any, items: Any) -> FloatArray:
        """Return the probability that pairs are observed."""
        return -np.expm1(-self.rate(users, items))

    def predict(self, users: Any, items: Any) -> FloatArray:
        """Return the expected value of pairs if they are observed."""
        return predict.distribution(self, *predict.pair_positions(self, users, items)).mean_observed

    def predict_expected_value(self, users: Any, items: Any) -> FloatArray:
        """Return the expected value of pairs, 0 where they are missing included."""
        return predict.distribution(self, *predict.pair_positions(self, users, items)).mean

    def element_at(self, users: Any, items: Any) -> Element:
        """Return the element of pairs; under partial pooling its parameters are arrays.

        Its ``mean`` is the expected value of one element.
        """
        return predict.distribution(self, *predict.pair_positions(self, users, items)).element

    def write_predictions(
        self,
        path: str | Path,
        *,
        users: Any = None,
        items: Any = None,
        overwrite: bool = False,
        progress: bool | None = None,
    ) -> int:
        """Write the predictions of all users for all items to a file, and return its rows.

        Only a few users are held in memory at a time. Columns: user, item, probability, value
        (if observed) and expected_value (their product). For the best items per user, see
        ``write_recommendations``.

        Parameters
        ----------
        path : path
            A .parquet, .csv or .tsv file, which appears when it is complete.
        users, items : ids, optional
            Some of the users, some of the items; by default all.
        overwrite : bool, default False
            Whether a file of that name may be replaced.
        progress : bool, optional
            Whether to show a progress bar; by default only in a terminal.
        """
        u = self._users_to_write(users)
        i = np.arange(len(self.items)) if items is None else predict.listed(self.item_index, items)
        parts, total = predict.describe_all(self, u, i), len(u) * len(i)
        return write_tables(path, parts, overwrite=overwrite, total=total, progress=progress)

    # -- ranking ------------------------------------------------------------------------------

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        by: str = "consensus",
        exclude_seen: bool = True,
        seen: Any = None,
        among: Any = None,
        deny: Any = None,
        details: bool = False,
    ) -> Recommendations:
        """Return the best items for users, best first.

        Parameters
        ----------
        users : an id, several, or "all"
            Ids of fitted users, or the word "all"; for new users see ``fold_in``. May be omitted
            if the model has only one user, and a user with the id "all" is given as ["all"].
        n : int, default 10
            The number of items per user; fewer where there are fewer candidates.
        by : {"consensus", "probability", "value", "expected_value"}
            What to rank by: the geometric mean of the rates of the fits, which prefers items that
            all fits agree on; the probability that the pair is observed, from the average of the
            rates; the expected value if it is; or the expected value. With a single fit the first
            two are the same.
        exclude_seen : bool, default True
            Whether to skip the items that the user has an entry for.
        seen : Interactions or matrix, optional
            The entries to skip; by default the training data.
        among, deny : ids, optional
            The only items to consider; items to skip.
        details : bool, default False
            Whether to add a 90% interval of the value, the reason (the user's own item that
            contributes most to the rate, see ``explain``), and the numbers of entries that the
            user and the item have: what rests on one or two entries is uncertain.
        """
        rows = self._users_to_rank(users)
        parts = recommend.best(
            self, rows, n, by=by, seen=self._seen(exclude_seen, seen), among=among, deny=deny,
            own=self._own(details, seen),
        )  # fmt: skip
        return Recommendations.concatenate(parts)

    def write_recommendations(
        self,
        path: str | Path,
        n: int = 10,
        *,
        users: Any = None,
        by: str = "consensus",
        exclude_seen: bool = True,
        seen: Any = None,
        among: Any = None,
        deny: Any = None,
        details: bool = False,
        overwrite: bool = False,
        progress: bool | None = None,
    ) -> int:
        """Write the best items of all users (or of some) to a file, and return its rows.

        Parameters are those of ``recommend`` and ``write_predictions``.
        """
        rows = self._users_to_write(users)
        parts = recommend.best(
            self, rows, n, by=by, seen=self._seen(exclude_seen, seen), among=among, deny=deny,
            own=self._own(details, seen),
        )  # fmt: skip
        total = len(rows) * whole("n", n)
        return write_tables(path, parts, overwrite=overwrite, total=total, progress=progress)

    def similar_items(self, items: Any, n: int = 10) -> Neighbors:
        """Return the items that the same users have: cosine of the rates over all users."""
        return recommend.similar(self, Axis.ITEMS, items, n)

    def similar_users(self, users: Any, n: int = 10) -> Neighbors:
        """Return the users who have the same items: cosine of the rates over all items."""
        return recommend.similar(self, Axis.USERS, users, n)

    # -- explanations -------------------------------------------------------------------------

    def explain(self, user: Any, item: Any, *, seen: Any = None) -> Explanation:
        """Return the contributions of the user's own items to the rate of a pair.

        The contributions add up to the rate: one per item, largest first, and last what the prior
        gives (or, before convergence, what is not accounted for).

        Parameters
        ----------
        user, item : id
            The pair.
        seen : Interactions or matrix, optional
            The entries of the user; by default the training data.
        """
        u, i = self._one_pair(user, item)
        return explain.explain(self, u, i, recommend.seen_matrix(self, seen, "explain"))

    def explain_components(self, user: Any, item: Any) -> FloatArray:
        """Return the contribution of each component to the rate of a pair, fits x components."""
        u, i = self._one_pair(user, item)
        parts = [fit.users.mean_[u] * fit.items.mean_[i] for fit in self.posteriors]
        return np.asarray(parts, dtype=np.float64) / len(parts)

    # -- new users and items ------------------------------------------------------------------

    def fold_in(
        self,
        X: Any,
        *,
        exclude: Any = None,
        measured_items: str = "all",
        unknown: str = "error",
    ) -> "FittedModel":
        """Return a model for new users, estimated with the item factors held fixed.

        Each user's posterior is a local maximum of the ELBO, the best of several starts, among them
        the fitted posterior of a user whose id the model has. For such a user, with the entries of
        the training data, the ELBO is at least what training reached. The new model has these users
        only, and they are its data.

        Parameters
        ----------
        X : Interactions, AnnData, data frame, matrix, mapping or list
            The new users. Items are matched by their ids: those of Interactions, the names of the
            variables of an AnnData, or the columns of a data frame with one row per user (0 is
            missing). A matrix must have the fitted items as its columns, in their order. A mapping
            from items to values, or a list of items with value 1, is a single user with the id
            "new".
        exclude : Interactions, AnnData or matrix, optional
            Pairs, observed or missing, that take no part: its stored entries mark them. A matrix
            has the fitted items as its columns. Pairs that were excluded in training stay excluded
            where ``X`` has their ids.
        measured_items : {"all", "listed"}
            Whether all fitted items were measured, so that those without an entry are missing, or
            only those that ``X`` lists: its columns, or the items of Interactions or of a mapping.
            The other items then take no part.
        unknown : {"error", "drop"}
            What to do with entries of items that the model does not have.

        Notes
        -----
        A warning of the logger "hcpf" tells how many items match where an AnnData or a data frame
        lacks fitted items that count as missing, or has unknown ones.
        """
        return fold_in.fold_in(
            self, Axis.USERS, X, exclude, measured=measured_items, unknown=unknown
        )

    def fold_in_items(self, X: Any, *, exclude: Any = None) -> "FittedModel":
        """Return a model for new items, estimated with the user factors held fixed.

        Parameters
        ----------
        X : Interactions or matrix
            The new items as columns. Interactions are matched by the ids of their users; a matrix
            must have the fitted users as its rows.
        exclude : Interactions or matrix, optional
            As in ``fold_in``.
        """
        return fold_in.fold_in(self, Axis.ITEMS, X, exclude)

    def transform(
        self, X: Any, *, measured_items: str = "all", unknown: str = "error"
    ) -> FloatArray:
        """Return the factors of new users (rows of ``X``), those of several fits side by side.

        Parameters are those of ``fold_in``.
        """
        found = self.fold_in(X, measured_items=measured_items, unknown=unknown)
        return found.combined.factors(Axis.USERS).astype(np.float64)

    def transform_items(self, X: Any) -> FloatArray:
        """Return the factors of new items (columns of ``X``), several fits side by side."""
        return self.fold_in_items(X).combined.factors(Axis.ITEMS).astype(np.float64)

    def score(self, X: Any) -> float:
        """Return the mean log-likelihood of held-out entries of new users, in nats.

        The rows of ``X`` are folded in on four fifths of their entries. The rest is scored, each
        observed entry with its share of the missing pairs (or alone with train_on="observed").
        """
        return fold_in.score(self, X)

    # -- files --------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False, include_data: bool = True) -> None:
        """Save the model to a folder: tensors, ids and a manifest, all with checksums.

        A crash at any moment leaves the old model or the new one. The folder contains no pickle.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default False
            Whether a model in that folder may be replaced.
        include_data : bool, default True
            Whether to save the training data, too. They are needed by ``HCPF.partial_fit``, and
            by ``recommend`` and ``explain`` unless ``seen=`` is given.
        """
        from hcpf.model.persist.model import save

        keeps = flag("include_data", include_data)
        save(self, as_path("path", path), overwrite=overwrite, include_data=keeps)

    @classmethod
    def load(cls, path: str | Path, *, check: bool = True) -> "FittedModel":
        """Load a saved model; the factors are read when they are first used.

        Parameters
        ----------
        path : path
            A folder written by ``save`` or ``hcpf fit``.
        check : bool, default True
            Whether to verify the checksums of large files, and that their numbers are finite,
            positive and in the element's support; sizes and types are always verified.
        """
        from hcpf.model.persist.model import load

        return load(as_path("path", path), check=check)

    def write_anndata(self, adata: Any, key: str = "hcpf") -> None:
        """Write the factors to ``adata.obsm["X_" + key]`` and ``adata.varm[key]``.

        The names of its observations and variables must be fitted users and items.
        """
        users = self.user_index.positions(np.asarray(adata.obs_names, dtype=object))
        items = self.item_index.positions(np.asarray(adata.var_names, dtype=object))
        adata.obsm[f"X_{key}"] = self.combined.factors(Axis.USERS)[users]
        adata.varm[key] = self.combined.factors(Axis.ITEMS)[items]

    def _seen(self, exclude_seen: bool, seen: Any) -> Csr | None:
        if not flag("exclude_seen", exclude_seen):
            return None
        return recommend.seen_matrix(self, seen, "exclude_seen=True")

    def _own(self, details: bool, seen: Any) -> Csr | None:
        """Return the entries that details are taken from, if these are wanted."""
        if not flag("details", details):
            return None
        return recommend.seen_matrix(self, seen, "details=True")

    def _users_to_rank(self, users: Any) -> Positions:
        if isinstance(users, str) and users == "all":
            return np.arange(len(self.users))
        if users is None and len(self.users) != 1:
            raise InputError(
                f"recommend requires users: this model has {len(self.users):,}. Pass ids, or "
                '"all" for every user.'
            )
        return np.zeros(1, np.int64) if users is None else predict.listed(self.user_index, users)

    def _users_to_write(self, users: Any) -> Positions:
        if users is None:
            return np.arange(len(self.users))
        rows = predict.listed(self.user_index, users)
        if not len(rows):
            raise InputError("There is nothing to write: users is empty.")
        return rows

    def _one_pair(self, user: Any, item: Any) -> tuple[int, int]:
        u, i = predict.pair_positions(self, user, item)
        if u.ndim:
            raise InputError("explain takes one user and one item, not lists of them.")
        return int(u), int(i)
