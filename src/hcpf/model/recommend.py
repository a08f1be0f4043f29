"""Recommendations, neighbours and explanations of a fitted model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import flag, one_of, whole
from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.theta import pair_shift
from hcpf.data.ids import IdIndex
from hcpf.errors import InputError
from hcpf.model.combine import Combined
from hcpf.model.explain import contributions
from hcpf.model.predict import Predicting, listed, write_parquet
from hcpf.model.ranking import (
    Factors,
    Score,
    best_items,
    consensus,
    nearest,
    profiles,
    rates,
    side_by_side,
)
from hcpf.model.tables import Explanation, Neighbours, Recommendations

BY = ("consensus", "probability", "response", "expected")


class Recommending(Predicting):
    """Ranking with a fitted model."""

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        by: str = "consensus",
        exclude_seen: bool = True,
        among: Any = None,
        deny: Any = None,
    ) -> Recommendations:
        """The best items for users, best first.

        Parameters
        ----------
        users : an id or several
            Ids of fitted users; for new ones see ``fold_in``.
        n : int
            How many items for each user; fewer where there are fewer candidates.
        by : {"consensus", "probability", "response", "expected"}
            What to rank by: the geometric mean of the rates of the fits, so that what they agree on
            comes before what one of them is sure of; the probability that the pair is observed,
            from the average of those rates; the expected response if it is; or the expected total.
            With a single fit the first two are the same.
        exclude_seen : bool
            Whether to leave out the items the user was fitted with.
        among, deny : ids, optional
            Only these items; none of these.

        Returns
        -------
        Recommendations
            One row for each, with probability, response and expected total.
        """
        self._check_fitted()
        rows = listed(self._user_index, users)
        parts = [part for part, _ in self._best(rows, n, by, exclude_seen, among, deny)]
        if not parts:
            empty = np.zeros(0, np.int64)
            return self._described(empty, empty, empty, np.zeros(0))
        columns = [part.columns() for part in parts]
        joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
        return Recommendations(**joined)

    def write_recommendations(
        self,
        path: str | Path,
        n: int = 10,
        *,
        users: Any = None,
        by: str = "consensus",
        exclude_seen: bool = True,
        among: Any = None,
        deny: Any = None,
        overwrite: bool = False,
        progress: bool | None = None,
    ) -> int:
        """Write the best items of all users (or of some) to a Parquet file; see ``recommend``."""
        self._check_fitted()
        rows = np.arange(len(self.users_))
        if users is not None:
            rows = listed(self._user_index, users)
        parts = self._best(rows, n, by, exclude_seen, among, deny)
        return write_parquet(path, parts, len(rows), overwrite, progress)

    def _best(
        self, rows: NDArray[np.int64], n: int, by: str, exclude_seen: bool, among: Any, deny: Any
    ) -> Iterator[tuple[Recommendations, int]]:
        n = whole("n", n)
        denied = self._denied(among, deny)
        seen = self.interactions_.matrix if flag("exclude_seen", exclude_seen) else None
        blocks = best_items(self._score(by), len(self.items_), seen, rows, n, denied)
        for part, places, _, found in blocks:
            rank = np.arange(places.shape[1])
            valid = rank < found[:, None]
            user = np.broadcast_to(rows[part][:, None], valid.shape)[valid]
            order = np.broadcast_to(rank + 1, valid.shape)[valid]
            item = places[valid].astype(np.int64)
            rate = Combined(self.posteriors_).rates(user, item)
            yield self._described(user, item, order, rate), len(found)

    def _score(self, by: str) -> Score:
        """What to rank by."""
        if one_of("by", by, BY) == "consensus":
            return consensus([(fit.users.mean_, fit.items.mean_) for fit in self.posteriors_])
        rate_of = rates(self._factors(users=True), self._factors(users=False))
        if by == "probability":
            return rate_of
        element, value_model = self.element_, self.value_model_
        n_items = len(self.items_)
        combined, everything = Combined(self.posteriors_), np.arange(n_items)
        if value_model.hurdle and by == "response" and not value_model.varies(Axis.ITEMS):
            return rate_of  # the same response for all items of a user: those that are likely
        if value_model.vary_by is None:
            # With one element for all pairs every criterion grows with the rate, or falls with it.
            sign = np.float32(np.sign(float(np.asarray(element.mean))))
            return lambda users: sign * rate_of(users)

        def score(users: NDArray[np.int64]) -> Factors:
            rate = rate_of(users)
            pairs = np.repeat(users, n_items), np.tile(everything, len(users))
            mean = combined.means(element, *pairs).reshape(rate.shape).astype(np.float32)
            counts = np.maximum(rate, np.float32(1e-30))
            observed = -np.expm1(-counts)
            if by == "expected":
                return observed * mean if value_model.hurdle else rate * mean
            seen = (
                1.0 if value_model.hurdle else counts / observed
            )  # summed where a pair is observed
            return np.asarray(mean * seen, dtype=np.float32)

        return score

    def _factors(self, *, users: bool) -> Factors:
        """Factors of all fits side by side, the items' scaled so that products are rates."""
        sides = [fit.users if users else fit.items for fit in self.posteriors_]
        factors = side_by_side([side.mean_ for side in sides])
        return factors if users else factors / np.float32(len(sides))

    def _denied(self, among: Any, deny: Any) -> NDArray[np.bool_]:
        denied = np.zeros(len(self.items_), np.bool_)
        if among is not None:
            denied[:] = True
            denied[self._item_index.positions(among)] = False
        if deny is not None:
            denied[self._item_index.positions(deny)] = True
        return denied

    def similar_items(self, items: Any, n: int = 10) -> Neighbours:
        """Items that the same users take: cosine of the items' rates over all users."""
        self._check_fitted()
        vectors = profiles(self._factors(users=False), self._factors(users=True))
        return _neighbours(self._item_index, vectors, items, n)

    def similar_users(self, users: Any, n: int = 10) -> Neighbours:
        """Users who take the same items: cosine of the users' rates over all items."""
        self._check_fitted()
        vectors = profiles(self._factors(users=True), self._factors(users=False))
        return _neighbours(self._user_index, vectors, users, n)

    def explain(self, user: Any, item: Any) -> Explanation:
        """Which of the user's own items made the rate of a pair what it is.

        The parts add up to the rate: one for each of the user's items, largest first, and what
        the prior gives (or, before convergence, what is not accounted for) at the end.
        """
        u, i = self._one_pair(user, item)
        own, values = self._own_entries(u)
        entries, prior = np.zeros(len(own)), 0.0
        for posterior in self.posteriors_:
            shift = pair_shift(
                self.value_model_, posterior.users.theta, posterior.items.theta, u, own
            )
            _, by_entry, rest = contributions(
                posterior, self.value_model_, u, i, own, values, self.tempering_, shift
            )
            entries += by_entry / len(self.posteriors_)
            prior += float(rest[0]) / len(self.posteriors_)
        order = np.argsort(-entries, kind="stable")
        source = np.empty(len(own) + 1, dtype=object)
        source[:-1], source[-1] = self.items_[own[order]], "(prior)"
        rate = np.append(entries[order], prior)
        return Explanation(source, rate, rate / max(float(rate.sum()), 1e-300))

    def explain_components(self, user: Any, item: Any) -> FloatArray:
        """The part of the rate of a pair that each component accounts for, fits x K."""
        u, i = self._one_pair(user, item)
        parts = [fit.users.mean_[u] * fit.items.mean_[i] for fit in self.posteriors_]
        return np.asarray(parts, dtype=np.float64) / len(parts)

    def _one_pair(self, user: Any, item: Any) -> tuple[int, int]:
        u, i = self._pairs(user, item)
        if u.ndim:
            raise InputError("explain takes one user and one item, not lists of them.")
        return int(u), int(i)

    def _own_entries(self, u: int) -> tuple[NDArray[np.int64], FloatArray]:
        matrix = self.interactions_.matrix
        entries = slice(matrix.indptr[u], matrix.indptr[u + 1])
        values = matrix.data[entries].astype(np.float64)
        return matrix.indices[entries].astype(np.int64), self.element_.seen(values)


def _neighbours(index: IdIndex, vectors: Factors, ids: Any, n: int) -> Neighbours:
    rows = listed(index, ids)
    of, near, cosine = [index.ids[:0]], [index.ids[:0]], [np.zeros(0)]
    for part, places, scores, found in nearest(vectors, rows, whole("n", n)):
        valid = np.arange(places.shape[1]) < found[:, None]
        of.append(index.ids[np.broadcast_to(rows[part][:, None], valid.shape)[valid]])
        near.append(index.ids[places[valid]])
        cosine.append(np.clip(scores[valid].astype(np.float64), -1.0, 1.0))
    return Neighbours(np.concatenate(of), np.concatenate(near), np.concatenate(cosine))
