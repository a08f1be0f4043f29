"""FittedModel: the result of training, which predicts, ranks, explains, folds in and is saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf._checks import flag, generator, whole
from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis, Exposure
from hcpf.core.fold_in import FoldInModel
from hcpf.core.posterior import Check, Posterior
from hcpf.core.priors import Priors
from hcpf.core.table_cache import TableCache
from hcpf.core.value_model import ValueModel
from hcpf.data.canonical import IdArray
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.data.words import Words
from hcpf.distributions.pair import PairDistribution
from hcpf.distributions.posterior_predictive import PosteriorPredictive
from hcpf.elements.base import Element
from hcpf.io import as_path
from hcpf.model import explain, fold_in, predict, recommend
from hcpf.model.alignment import at_exposure
from hcpf.model.combine import Combined
from hcpf.model.entry_counts import EntryCounts, entry_counts
from hcpf.model.factors import RELEVANCE_WEIGHT, FactorTable, factor_table
from hcpf.model.posterior import Folded, PosteriorDraws, draw_posterior
from hcpf.model.tables import Explanation, Neighbors, Recommendations, write_tables

if TYPE_CHECKING:
    from hcpf.model.components import TopItems


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """A trained model, which predicts with or without its training data.

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
        The training data; without them ``recommend`` and ``explain`` take ``seen=``, and draws of
        ``posterior`` are too narrow.
    converged : bool
        Whether all fits converged.
    interrupted : bool
        Whether Ctrl-C ended training early.
    max_count : int, optional
        The largest number of elements summed over; None sums all that count.
    settings : mapping
        The parameters of the estimator that trained the model.
    words : Words
        What the reader calls users, items and values, for the report.
    folded : Folded, optional
        How ``fold_in`` made the model, if it did.
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
    converged: bool = False
    interrupted: bool = False
    max_count: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    words: Words = field(default_factory=Words)
    folded: Folded | None = None

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
    def index(self) -> dict[Axis, IdIndex]:
        """``user_index`` and ``item_index`` by axis."""
        return {Axis.USERS: self.user_index, Axis.ITEMS: self.item_index}

    @property
    def exposure(self) -> Exposure:
        """Exposures of the users and of the items, which multiply the rates; None is 1 for all."""
        fit = self.posteriors[0]
        return Exposure(fit.users.exposure, fit.items.exposure)

    @cached_property
    def entry_counts(self) -> EntryCounts:
        """The numbers of training entries of the users and of the items, as far as known."""
        return entry_counts(self)

    @property
    def combined(self) -> Combined:
        """The ensemble of the fits, by position."""
        return Combined(self.posteriors)

    @cached_property
    def fold_in_model(self) -> FoldInModel:
        """What fold-in needs of the model, with the tables that it keeps between calls."""
        tables = TableCache(self.value_model, self.max_count)
        return FoldInModel(self.value_model, self.priors, self.tempering, self.max_count, tables)

    @cached_property
    def posterior(self) -> PosteriorDraws:
        """Draws of the factors from their posterior, made at the first use and kept.

        Gibbs sampling takes at most 200 passes over all entries per chain. A model without training
        data draws from the variational posterior instead, without its tempering, whose intervals
        are too narrow.
        """
        return draw_posterior(self)

    # -- pairs --------------------------------------------------------------------------------

    def rate(self, users: Any, items: Any, *, exposure: Any = None) -> FloatArray:
        """Return the Poisson rates of pairs, averaged over the fits.

        Parameters
        ----------
        users, items : ids
            The pairs; users and items broadcast.
        exposure : number or array, optional
            Exposures of the pairs, in place of those of their users and items; 1 gives predictions
            per unit of exposure.
        """
        return predict.rates(self, *predict.pair_positions(self, users, items), exposure)

    def predict_distribution(
        self,
        users: Any,
        items: Any,
        *,
        n_samples: int = 0,
        random_state: Any = None,
        exposure: Any = None,
    ) -> PairDistribution | PosteriorPredictive:
        """Return the predictive distribution of pairs.

        Parameters
        ----------
        users, items : ids
            The pairs; users and items broadcast.
        n_samples : int, default 0
            0 uses the posterior mean of the rates. A positive number takes that many draws of the
            factors from ``posterior`` and averages over them, so intervals include the uncertainty
            of the rates. The first call samples the posterior, which can take minutes.
        random_state : int or Generator, optional
            Seed of the choice of draws, and of those of pooled means.
        exposure : number or array, optional
            Exposures of the pairs, in place of those of their users and items; 1 gives predictions
            per unit of exposure.
        """
        size, rng = whole("n_samples", n_samples, least=0), generator(random_state)
        u, i = predict.pair_positions(self, users, items)
        if size == 0:
            return predict.distribution(self, u, i, exposure)
        return predict.sampled_distribution(self, u, i, size, rng, exposure)

    def predict_proba(self, users: Any, items: Any, *, exposure: Any = None) -> FloatArray:
        """Return the probability that pairs are observed; ``exposure`` is as in ``rate``.

        It is 1 - exp(-rate) at the mean rate over the posterior and the fits, a fast approximation
        of its mean, which is a little lower.
        """
        return -np.expm1(-self.rate(users, items, exposure=exposure))

    def predict(self, users: Any, items: Any, *, exposure: Any = None) -> FloatArray:
        """Return the expected value of pairs if they are observed."""
        pairs = predict.pair_positions(self, users, items)
        return predict.distribution(self, *pairs, exposure).mean_observed

    def predict_expected_value(self, users: Any, items: Any, *, exposure: Any = None) -> FloatArray:
        """Return the expected value of pairs, 0 where they are missing included.

        It is the product of ``predict_proba`` and ``predict``.
        """
        pairs = predict.pair_positions(self, users, items)
        return predict.distribution(self, *pairs, exposure).mean

    def element_at(self, users: Any, items: Any) -> Element:
        """Return the element of pairs; under partial pooling its parameters are arrays.

        Its ``mean`` is the expected value of one element.
        """
        return predict.distribution(self, *predict.pair_positions(self, users, items)).element

    def write_predictions(
        self,
        path: str | Path,
        *,
        users: Any = "all",
        items: Any = "all",
        exposure: Any = None,
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
        users, items : an id, several, or "all"
            The users and the items; by default all.
        exposure : number, optional
            The exposure of all pairs, in place of those of their users and items.
        overwrite : bool, default False
            Whether a file of that name may be replaced.
        progress : bool, optional
            Whether to show a progress bar; by default only in a terminal.
        """
        u, i = predict.listed_users(self, users), predict.listed(self.item_index, items)
        shown, total = at_exposure(self, exposure), len(u) * len(i)
        parts = predict.describe_all(shown, u, i)
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
        exposure: Any = None,
    ) -> Recommendations:
        """Return the best items for users, best first.

        Parameters
        ----------
        users : an id, several, or "all"
            Ids of fitted users, or the word "all"; for new users see ``fold_in``. May be omitted
            (None) if the model has only one user; a user with the id "all" is given as ["all"].
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
        exposure : number, optional
            The exposure of all pairs, in place of those of their users and items: 1 ranks items
            that were on sale for a week equally with those that were on sale for a year.
        """
        rows = predict.listed_users(self, users)
        parts = recommend.best(
            self, rows, n, by=by, exclude_seen=exclude_seen, seen=seen, among=among, deny=deny,
            details=details, exposure=exposure,
        )  # fmt: skip
        return Recommendations.concatenate(parts)

    def write_recommendations(
        self,
        path: str | Path,
        n: int = 10,
        *,
        users: Any = "all",
        by: str = "consensus",
        exclude_seen: bool = True,
        seen: Any = None,
        among: Any = None,
        deny: Any = None,
        details: bool = False,
        exposure: Any = None,
        overwrite: bool = False,
        progress: bool | None = None,
    ) -> int:
        """Write the best items of all users (or of some) to a file, and return its rows.

        Parameters are those of ``recommend`` and ``write_predictions``.
        """
        rows = predict.listed_users(self, users)
        parts = recommend.best(
            self, rows, n, by=by, exclude_seen=exclude_seen, seen=seen, among=among, deny=deny,
            details=details, exposure=exposure,
        )  # fmt: skip
        total = len(rows) * whole("n", n)
        return write_tables(path, parts, overwrite=overwrite, total=total, progress=progress)

    def similar_items(self, items: Any, n: int = 10) -> Neighbors:
        """Return the items that the same users have: cosine of the rates over all users.

        ``items`` is an id, several, or "all".
        """
        return recommend.similar(self, Axis.ITEMS, items, n)

    def similar_users(self, users: Any, n: int = 10) -> Neighbors:
        """Return the users who have the same items: cosine of the rates over all items.

        ``users`` is an id, several, or "all".
        """
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
        u, i = predict.one_pair(self, user, item)
        return explain.explain(self, u, i, recommend.seen_matrix(self, seen, "explain"))

    def explain_components(self, user: Any, item: Any) -> FloatArray:
        """Return the contribution of each component to the rate of a pair, fits x components."""
        u, i = predict.one_pair(self, user, item)
        parts = [fit.users.mean_[u] * fit.items.mean_[i] for fit in self.posteriors]
        exposure = self.combined.exposure(np.array([u]), np.array([i]))
        return np.asarray(parts, dtype=np.float64) / len(parts) * exposure

    # -- components ---------------------------------------------------------------------------

    def factors(self, axis: str, kind: str = "mean", *, fit: int | None = None) -> FactorTable:
        """Return the factors of all users or items, with their ids.

        The factors of a model are those of its fits side by side, as ``transform`` returns them: K
        columns per fit, in the order of the fits. Their products, summed over all columns, are the
        rates. The first K columns belong to the first (or best) fit, which ``top_items``,
        ``hcpf components`` and reports describe.

        Parameters
        ----------
        axis : {"items", "users"}
            Which factors; "item" and "user" mean the same.
        kind : {"mean", "scaled", "share"}
            "mean" is the posterior mean; that of items is divided by the number of fits. "scaled"
            is the mean times the activity parameter of the row, so that popular and rare rows
            compare: the gene score and the cell score of scHPF. "share" of items is the share of
            a component's expected entries, per column (the words of a topic); "share" of users is
            the share of the user's expected entries, per row (the topics of a document). Expected
            entries are those at the exposures of the fit; the other kinds are at exposure 1.
        fit : int, optional
            The columns of one fit only, counted from 0; its means are not divided.

        Returns
        -------
        FactorTable
            Its ``to_pandas()`` is a data frame with the ids as its index, and ``values`` an array.
        """
        return factor_table(self, axis, kind, fit)

    def top_items(
        self,
        n: int = 10,
        *,
        kind: str = "relevance",
        weight: float = RELEVANCE_WEIGHT,
        fit: int = 0,
        names: Any = None,
    ) -> "TopItems":
        """Return the items that stand for each component of one fit, best first.

        Parameters
        ----------
        n : int, default 10
            The number of items per component.
        kind : {"relevance", "scaled", "share", "mean"}
            What to rank by. "relevance" suits words and products: ``weight`` times the logarithm of
            the item's share of the component, plus ``1 - weight`` times that of its lift. "scaled"
            suits genes: the factor times the activity parameter, which is large for rare genes.
            "share" and "mean" rank the most frequent items first, whatever they are elsewhere.
        weight : float, default 0.4
            Only for "relevance": 1 ranks by the share, 0 by the lift.
        fit : int, default 0
            Which fit, counted from 0; the first is the best with ``combine="best"``.
        names : mapping, path or sequence, optional
            Names of items by id, or in the order of the items, for a column ``name``.
        """
        from hcpf.model.components import top_items

        return top_items(self, n, kind=kind, weight=weight, fit=fit, names=names)

    # -- new users and items ------------------------------------------------------------------

    def fold_in(
        self,
        X: Any,
        *,
        exclude: Any = None,
        measured_items: str = "all",
        unknown: str = "error",
        layer: str | None = None,
        user_exposure: Any = None,
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
            Pairs, observed or missing, that are ignored: its stored entries mark them. A matrix
            has the fitted items as its columns. Pairs that were excluded in training stay excluded
            where ``X`` has their ids.
        measured_items : {"all", "listed"}
            Whether all fitted items were measured, so that those without an entry are missing, or
            only those that ``X`` lists: its columns, or the items of Interactions or of a mapping.
            The other items are then ignored.
        unknown : {"error", "drop"}
            What to do with entries of items that the model does not have.
        layer : str, optional
            The layer of an AnnData to read instead of its ``X``.
        user_exposure : number, array, mapping or str, optional
            Exposures of the new users, as in ``HCPF.fit``; fitted users keep theirs by default.

        Notes
        -----
        A warning of the logger "hcpf" tells how many items match where an AnnData or a data frame
        lacks fitted items that count as missing, or has unknown ones.
        """
        return fold_in.fold_in(
            self, Axis.USERS, X, exclude, measured=measured_items, unknown=unknown, layer=layer,
            exposure=user_exposure,
        )  # fmt: skip

    def fold_in_items(
        self,
        X: Any,
        *,
        exclude: Any = None,
        unknown: str = "error",
        layer: str | None = None,
        item_exposure: Any = None,
    ) -> "FittedModel":
        """Return a model for new items, estimated with the user factors held fixed.

        Parameters
        ----------
        X : Interactions, AnnData, matrix, mapping or list
            The new items as columns. Users are matched by the ids of Interactions or the names of
            the observations of an AnnData; a matrix must have the fitted users as its rows. A
            mapping from users to values, or a list of users with value 1, is a single item with
            the id "new".
        exclude : Interactions, AnnData or matrix, optional
            As in ``fold_in``.
        unknown : {"error", "drop"}
            What to do with entries of users that the model does not have.
        layer : str, optional
            The layer of an AnnData to read instead of its ``X``.
        item_exposure : number, array, mapping or str, optional
            Exposures of the new items, as in ``HCPF.fit``; fitted items keep theirs by default.
        """
        return fold_in.fold_in(
            self, Axis.ITEMS, X, exclude, unknown=unknown, layer=layer, exposure=item_exposure
        )

    def transform(
        self,
        X: Any,
        *,
        exclude: Any = None,
        measured_items: str = "all",
        unknown: str = "error",
        layer: str | None = None,
        user_exposure: Any = None,
    ) -> FloatArray:
        """Return the factors of new users (rows of ``X``), those of several fits side by side.

        Parameters are those of ``fold_in``.
        """
        found = self.fold_in(
            X, exclude=exclude, measured_items=measured_items, unknown=unknown, layer=layer,
            user_exposure=user_exposure,
        )  # fmt: skip
        return found.combined.factors(Axis.USERS).astype(np.float64)

    def transform_items(
        self,
        X: Any,
        *,
        exclude: Any = None,
        unknown: str = "error",
        layer: str | None = None,
        item_exposure: Any = None,
    ) -> FloatArray:
        """Return the factors of new items (columns of ``X``), several fits side by side.

        Parameters are those of ``fold_in_items``.
        """
        found = self.fold_in_items(
            X, exclude=exclude, unknown=unknown, layer=layer, item_exposure=item_exposure
        )
        return found.combined.factors(Axis.ITEMS).astype(np.float64)

    def score(
        self,
        X: Any,
        *,
        unknown: str = "error",
        layer: str | None = None,
        user_exposure: Any = None,
    ) -> float:
        """Return the mean log-likelihood of held-out entries of new users, in nats.

        The rows of ``X`` are folded in on four fifths of their entries. The rest is scored, each
        observed entry with its share of the missing pairs (or alone with train_on="observed").
        ``X``, ``unknown``, ``layer`` and ``user_exposure`` are as in ``fold_in``; fitted items that
        ``X`` lacks count as missing.
        """
        return fold_in.score(self, X, unknown=unknown, layer=layer, exposure=user_exposure)

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
            by ``recommend`` and ``explain`` unless ``seen=`` is given. Of shards only the path of
            their folder is saved; if they are moved or changed, a warning says so on loading.
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

    def write_anndata(
        self,
        adata: Any,
        key: str = "hcpf",
        *,
        kind: str = "mean",
        obs_columns: bool = False,
        strict: bool = True,
    ) -> None:
        """Write the factors to ``adata.obsm["X_" + key]`` and ``adata.varm[key]``.

        Columns are those of ``factors``. How the model was fitted goes to ``adata.uns[key]``: the
        element with its parameters, K, the number of fits, the seed and the version of hcpf.

        Parameters
        ----------
        adata : anndata.AnnData
            Its observations and variables may be any of the fitted users and items.
        key : str, default "hcpf"
            The name to write to.
        kind : {"mean", "scaled", "share"}
            As in ``factors``.
        obs_columns : bool, default False
            Whether to write each column to ``adata.obs`` as well, named hcpf_0, hcpf_1, ..., for
            ``scanpy.pl.umap(adata, color="hcpf_0")``.
        strict : bool, default True
            Whether an observation or variable that was not fitted is an error; otherwise its
            factors are NaN.
        """
        from hcpf.model.annotated import write_anndata

        write_anndata(self, adata, key, kind=kind, obs_columns=obs_columns, strict=strict)
