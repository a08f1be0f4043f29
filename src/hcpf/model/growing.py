"""New users, new items and more data for a fitted model."""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.fold_in import fold_in_rows
from hcpf.core.posterior import Posterior
from hcpf.data.align import align_items, align_users, joined
from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import row_of_entries, select
from hcpf.errors import InputError
from hcpf.model.combine import Combined
from hcpf.model.recommend import Recommending

_SCORED = 0.2  # of each row's entries


def as_interactions(X: Any) -> Interactions:
    """Take Interactions as they are, AnnData by its names, and anything else as a matrix."""
    if isinstance(X, Interactions):
        return X
    if hasattr(X, "obs_names") and hasattr(X, "var_names"):
        return Interactions.from_anndata(X)
    return Interactions.from_matrix(X)


class Growing(Recommending):
    """Rows and columns that were not there when the model was fitted."""

    train_on: str
    n_truncation: int | None
    random_state: Any

    def fold_in(self, X: Any) -> Self:
        """The same model for other users: the rows of ``X``, the items held fixed.

        Each row gets the posterior that training would give it. The model returned knows these
        users only; the one it came from is left as it is.

        Parameters
        ----------
        X : Interactions or matrix
            New users. Interactions are matched by the ids of their items; a matrix must have the
            fitted items as its columns.
        """
        self._check_fitted()
        data = self._over_items(X)
        return self._with_rows(data, users=True)

    def fold_in_items(self, X: Any) -> Self:
        """The same model for other items: the columns of ``X``, the users held fixed.

        Interactions are matched by the ids of their users; a matrix must have the fitted users as
        its rows.
        """
        self._check_fitted()
        data = as_interactions(X)
        if X is data:
            data = align_users(data, self._user_index)
        elif data.n_users != len(self.users_):
            raise InputError(f"X has {data.n_users} rows, but {len(self.users_)} users are fitted.")
        else:
            data = Interactions(data.matrix, self.users_, data.items)
        return self._with_rows(data, users=False)

    def transform(self, X: Any) -> FloatArray:
        """Factors of new users (rows of ``X``), those of several fits side by side."""
        return self.fold_in(X)._factors(users=True).astype(np.float64)

    def transform_items(self, X: Any) -> FloatArray:
        """Factors of new items (columns of ``X``), those of several fits side by side."""
        return self.fold_in_items(X)._factors(users=False).astype(np.float64)

    def _over_items(self, X: Any) -> Interactions:
        data = as_interactions(X)
        if X is data:
            return align_items(data, self._item_index)
        if data.n_items != len(self.items_):
            raise InputError(
                f"X has {data.n_items} columns, but {len(self.items_)} items are fitted."
            )
        return Interactions(data.matrix, data.users, self.items_)

    def _with_rows(self, data: Interactions, *, users: bool, exclude: Any = None) -> Self:
        matrix = data.matrix if users else sparse.csr_array(data.matrix.T)
        self.value_model_.require(np.asarray(data.values, dtype=np.float64))
        values = self.element_.seen(matrix.data)
        matrix = sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
        posteriors: list[Posterior] = []
        for posterior in self.posteriors_:
            rows = fold_in_rows(
                matrix,
                posterior.items if users else posterior.users,
                self.value_model_,
                self.priors_,
                axis=Axis.USERS if users else Axis.ITEMS,
                exclude=exclude,
                n_truncation=self.n_truncation,
                tempering=self.tempering_,
                theta=(posterior.users if users else posterior.items).theta,
            )
            sides = (rows, posterior.items) if users else (posterior.users, rows)
            posteriors.append(Posterior(*sides))
        other = copy(self)
        other._set_fitted(
            data,
            posteriors,
            self.value_model_,
            self.priors_,
            self.history_,
            self.interrupted_,
            self.tempering_,
        )
        return other

    def _grown(self, data: Interactions) -> list[Posterior]:
        """Posteriors over all ids of ``data``: those fitted, and first guesses for new ones."""
        n_users, n_items = len(self.users_), len(self.items_)
        matrix = data.matrix
        posteriors = self.posteriors_
        if data.n_users > n_users:
            new = Interactions(
                sparse.csr_array(matrix[n_users:, :n_items]), data.users[n_users:], self.items_
            )
            found = self._with_rows(new, users=True).posteriors_
            posteriors = [
                Posterior(old.users.joined(more.users), old.items)
                for old, more in zip(posteriors, found, strict=True)
            ]
        if data.n_items > n_items:
            wider = copy(self)
            known = Interactions(sparse.csr_array(matrix[:, :n_items]), data.users, self.items_)
            wider._set_fitted(
                known,
                posteriors,
                self.value_model_,
                self.priors_,
                self.history_,
                self.interrupted_,
                self.tempering_,
            )
            new = Interactions(
                sparse.csr_array(matrix[:, n_items:]), data.users, data.items[n_items:]
            )
            found = wider._with_rows(new, users=False).posteriors_
            posteriors = [
                Posterior(old.users, old.items.joined(more.items))
                for old, more in zip(posteriors, found, strict=True)
            ]
        return posteriors

    def _joined(self, X: Any, duplicates: Duplicates) -> Interactions:
        data = as_interactions(X)
        if X is not data:
            if data.shape[1] != len(self.items_):
                raise InputError(
                    f"X has {data.shape[1]} columns, but {len(self.items_)} items are fitted. Give "
                    "Interactions, whose ids tell which are new."
                )
            data = Interactions(data.matrix, self._new_users(data.n_users), self.items_)
        return joined(self.interactions_, data, duplicates)

    def _new_users(self, size: int) -> NDArray[Any]:
        """Ids for the rows of a matrix, which bring none: the whole numbers that come next."""
        users = self.users_
        if users.dtype.kind == "O" or int(users.max()) + size > np.iinfo(users.dtype).max:
            raise InputError(
                "The rows of a matrix are new users, numbered from the largest id on, but the "
                "fitted ids leave no such numbers. Give Interactions, which have ids."
            )
        return np.arange(size, dtype=users.dtype) + users.max() + users.dtype.type(1)

    def score(self, X: Any, y: None = None) -> float:
        """Log likelihood of held-out entries of new users, on average.

        The rows of ``X`` are folded in on four fifths of their entries; the rest is scored, each
        observed entry with its share of the missing ones (of observed entries alone where the
        model was trained on these).
        """
        self._check_fitted()
        data = self._over_items(X)
        matrix = data.matrix
        seed = self.random_state if isinstance(self.random_state, int) else 0
        held = np.random.default_rng(seed).random(matrix.nnz) < _SCORED
        if not held.any() or held.all():
            raise InputError("score: X has too few entries to hold some of them out.")
        rest, scored = select(matrix, ~held), select(matrix, held)
        known = self._with_rows(
            Interactions(rest, data.users, data.items), users=True, exclude=scored
        )
        combined = Combined(known.posteriors_)
        values = self.element_.seen(scored.data.astype(np.float64))
        rate = combined.rates(row_of_entries(scored), scored.indices)
        element = combined.element_at(self.element_, row_of_entries(scored), scored.indices)
        distribution = self.value_model_.distribution(rate, element)
        if self.train_on == "observed":
            return float(np.mean(distribution.log_density_observed(values)))
        everywhere = known._factors(users=True).sum(axis=0, dtype=np.float64) @ known._factors(
            users=False
        ).sum(axis=0, dtype=np.float64)
        observed = float(np.sum(combined.rates(row_of_entries(matrix), matrix.indices)))
        missing = scored.nnz / matrix.nnz * max(float(everywhere) - observed, 0.0)
        return float(np.mean(distribution.log_density(values))) - missing / scored.nnz
