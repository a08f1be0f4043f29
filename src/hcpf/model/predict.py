"""Predictions for pairs: rates, probabilities, responses and whole distributions."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import whole
from hcpf._progress import progress_bar
from hcpf._types import FloatArray
from hcpf.core.posterior import Posterior
from hcpf.core.priors import Priors
from hcpf.core.theta import draw_means
from hcpf.core.value_model import ValueModel
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.distributions.pair import PairDistribution
from hcpf.distributions.posterior_predictive import PosteriorPredictive
from hcpf.elements import Element
from hcpf.errors import InputError, ParameterError
from hcpf.model.combine import Combined
from hcpf.model.history import Check
from hcpf.model.tables import Recommendations

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 22  # pairs written at once


class Predicting:
    """What a fitted model knows, and its predictions for pairs."""

    posteriors_: list[Posterior]
    posterior_: Posterior
    value_model_: ValueModel
    element_: Element
    priors_: Priors
    history_: list[Check]
    n_iter_: int
    interrupted_: bool
    tempering_: float
    n_features_in_: int
    interactions_: Interactions
    users_: NDArray[Any]
    items_: NDArray[Any]
    _user_index: IdIndex
    _item_index: IdIndex

    def _set_fitted(
        self,
        data: Interactions,
        posteriors: list[Posterior],
        value_model: ValueModel,
        priors: Priors,
        history: list[Check],
        interrupted: bool,
        tempering: float = 1.0,
    ) -> None:
        self.posteriors_, self.posterior_ = posteriors, posteriors[0]
        self.value_model_, self.priors_ = value_model, priors
        self.element_ = value_model.element
        self.history_, self.interrupted_ = history, interrupted
        self.tempering_ = tempering
        self.n_iter_ = history[-1].iteration if history else 0
        self.interactions_, self.n_features_in_ = data, data.n_items
        self.users_, self.items_ = data.users, data.items
        self._user_index = IdIndex("users", data.users)
        self._item_index = IdIndex("items", data.items)

    def _check_fitted(self) -> None:
        """Raise a NotFittedError before ``fit``; the estimator knows scikit-learn's."""
        raise NotImplementedError

    def _pairs(self, users: Any, items: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of pairs, users and items broadcast."""
        self._check_fitted()
        u, i = self._user_index.positions(users), self._item_index.positions(items)
        try:
            u, i = np.broadcast_arrays(u, i)
        except ValueError:
            raise InputError(
                f"users of shape {u.shape} and items of shape {i.shape} do not make pairs: give "
                "as many of each, or one of either."
            ) from None
        return u, i

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Poisson rates of the pairs (users and items broadcast), averaged over the fits."""
        u, i = self._pairs(users, items)
        return Combined(self.posteriors_).rates(u.ravel(), i.ravel()).reshape(u.shape)

    def predictive(
        self, users: Any, items: Any, *, n_samples: int = 0, random_state: Any = None
    ) -> PairDistribution | PosteriorPredictive:
        """The whole predictive distribution of the pairs.

        Parameters
        ----------
        users, items : ids
            The pairs; users and items broadcast.
        n_samples : int
            0 takes the posterior mean of the rates. More draws that many factors from the
            posterior and averages over them, so that intervals know how sure the model is.
        random_state : int or Generator, optional
            Seed of the draws.
        """
        size, rng = whole("n_samples", n_samples, least=0), _generator(random_state)
        if size == 0:
            return self._compound(users, items)
        u, i = self._pairs(users, items)
        rates = self._draw_rates(u.ravel(), i.ravel(), size, rng)
        element = self._draw_elements(u.ravel(), i.ravel(), size, rng)
        draws = self.value_model_.distribution(
            rates.reshape(size, *u.shape), element.reshape((size, *u.shape))
        )
        return PosteriorPredictive(draws)

    def _compound(self, users: Any, items: Any) -> PairDistribution:
        """The distribution at the posterior mean of the rates, and of theta."""
        u, i = self._pairs(users, items)
        combined, flat = Combined(self.posteriors_), (u.ravel(), i.ravel())
        element = combined.element_at(self.element_, *flat).reshape(u.shape)
        return self.value_model_.distribution(combined.rates(*flat).reshape(u.shape), element)

    def element_at(self, users: Any, items: Any) -> Element:
        """The element of the pairs: with a parameter for each of them where theta varies.

        Its ``mean`` is what one element of the pair is expected to be worth.
        """
        return self._compound(users, items).element

    def _draw_rates(
        self, u: NDArray[np.int64], i: NDArray[np.int64], size: int, rng: np.random.Generator
    ) -> FloatArray:
        some_users, u = np.unique(u, return_inverse=True)
        some_items, i = np.unique(i, return_inverse=True)
        rates = np.zeros((size, len(u)))
        # Draws are shared out among the fits: each is one view of the factors.
        for fit, posterior in enumerate(self.posteriors_):
            chosen = range(fit, size, len(self.posteriors_))
            for draw in chosen:
                s = posterior.users.at(some_users).sample(1, rng)[0]
                v = posterior.items.at(some_items).sample(1, rng)[0]
                rates[draw] = np.einsum("jk,jk->j", s[u], v[i], dtype=np.float64)
        return rates

    def _draw_elements(
        self, u: NDArray[np.int64], i: NDArray[np.int64], size: int, rng: np.random.Generator
    ) -> Element:
        """The element of each draw and pair: theta is drawn too, where it varies."""
        element = self.element_
        if self.value_model_.vary_by is None:
            return element
        means = np.empty((size, len(u)))
        for draw in range(size):
            posterior = self.posteriors_[draw % len(self.posteriors_)]
            thetas = posterior.users.theta, posterior.items.theta
            means[draw] = draw_means(element, *thetas, u, i, rng)
        return element.with_mean(means)

    def predict_proba(self, users: Any, items: Any) -> FloatArray:
        """Probability that the pairs are observed."""
        return -np.expm1(-self.rate(users, items))

    def predict(self, users: Any, items: Any) -> FloatArray:
        """Expected response of the pairs if they are observed."""
        return self._compound(users, items).mean_observed

    def predict_expected(self, users: Any, items: Any) -> FloatArray:
        """Expected total of the pairs, 0 for those that are not observed included."""
        return self._compound(users, items).mean

    def write_predictions(
        self,
        path: str | Path,
        *,
        users: Any = None,
        items: Any = None,
        overwrite: bool = False,
        progress: bool | None = None,
    ) -> int:
        """Write the predictions of all users for all items to a Parquet file.

        Users are taken a few at a time, so users x items is never held. Columns: user, item,
        probability, response (if observed) and expected (total). For the best few of each user
        only, see ``write_recommendations``.

        Parameters
        ----------
        path
            The file; it appears when it is complete.
        users, items : ids, optional
            Some of the users, some of the items; by default all.
        overwrite : bool
            Whether a file of that name may be replaced.
        progress : bool, optional
            Whether to show a progress bar; by default only in a terminal.

        Returns
        -------
        int
            The number of rows written.
        """
        self._check_fitted()
        u = np.arange(len(self.users_)) if users is None else listed(self._user_index, users)
        i = np.arange(len(self.items_)) if items is None else listed(self._item_index, items)
        parts = self._all_pairs(u, i)
        return write_parquet(path, parts, len(u), overwrite, progress, leave_out="rank")

    def _all_pairs(
        self, u: NDArray[np.int64], i: NDArray[np.int64]
    ) -> Iterator[tuple[Recommendations, int]]:
        step = max(1, _BLOCK // max(len(i), 1))
        for first in range(0, len(u), step):
            some = u[first : first + step]
            rate = Combined(self.posteriors_).rates(np.repeat(some, len(i)), np.tile(i, len(some)))
            rank = np.zeros(len(rate), np.int64)
            yield (
                self._described(np.repeat(some, len(i)), np.tile(i, len(some)), rank, rate),
                len(some),
            )

    def _described(
        self,
        u: NDArray[np.int64],
        i: NDArray[np.int64],
        rank: NDArray[np.int64],
        rate: FloatArray,
    ) -> Recommendations:
        """Pairs by position with everything that follows from their rates."""
        element = Combined(self.posteriors_).element_at(self.element_, u, i)
        predictive = self.value_model_.distribution(rate, element)
        return Recommendations(
            user=self.users_[u],
            item=self.items_[i],
            rank=rank,
            probability=predictive.prob_observed,
            response=predictive.mean_observed,
            expected=predictive.mean,
        )


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"random_state must be an int, a Generator or None; got {random_state!r} ({error})."
        ) from None


def as_path(name: str, value: Any) -> Path:
    """Return ``value`` as a path, or raise a ParameterError."""
    try:
        path = Path(value)
    except TypeError:
        path = None
    if path is None or "\0" in str(path):
        raise ParameterError(f"{name} must be a path; got {value!r}.")
    return path


def listed(index: IdIndex, ids: Any) -> NDArray[np.int64]:
    """Positions of one id, or of a list of them."""
    found = np.atleast_1d(index.positions(ids))
    if found.ndim > 1:
        raise InputError(
            f"{index.name} must be an id or a list of ids, but their shape is {found.shape}."
        )
    return found


def write_parquet(
    path: str | Path,
    parts: Iterator[tuple[Recommendations, int]],
    total: int,
    overwrite: bool,
    progress: bool | None,
    leave_out: str | None = None,
) -> int:
    """Write parts to a Parquet file that appears when it is complete; returns its rows."""
    from pyarrow import parquet

    target = as_path("path", path)
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{target} exists already: pass overwrite=True to replace it.")
    temporary = target.with_name(f".{target.name}.part")
    rows, writer = 0, None
    try:
        with progress_bar(progress, "Writing", total) as advance:
            for part, users in parts:
                table: pa.Table = part.to_arrow()
                if leave_out is not None:
                    table = table.drop_columns([leave_out])
                writer = writer or parquet.ParquetWriter(temporary, table.schema)
                writer.write_table(table)
                rows += len(part)
                advance(users, f"{rows:,} rows")
        if writer is None:
            raise InputError("There is nothing to write: no user was given.")
        writer.close()
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from None
    finally:
        if writer is not None:
            with suppress(OSError):  # a second time does no harm
                writer.close()
        with suppress(OSError):
            temporary.unlink()
    return rows
