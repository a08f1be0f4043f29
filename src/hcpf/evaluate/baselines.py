"""Baselines: popularity, Poisson factorization, and values alone."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from hcpf._checks import number, one_of, whole
from hcpf._types import Csr, FloatArray
from hcpf.core.priors import expected_count
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import as_marks, sample_values, without
from hcpf.distributions import CompoundPoisson, Hurdle
from hcpf.elements import Degenerate, Element
from hcpf.errors import NotFittedError
from hcpf.estimator import HCPF
from hcpf.model.alignment import as_interactions, over_both
from hcpf.model.predict import listed
from hcpf.model.ranking import Rates, best_items
from hcpf.model.tables import Recommendations
from hcpf.training.held_out import split_validation
from hcpf.training.resolve import choose_value_model

_MAX_PASSES = 200
_CERTAIN_RATE = 1_000.0  # a pair is then observed with probability 1, to the last bit
_MAX_NODES = 1_000  # means that are solved for; more are interpolated between them
_DISPERSION_ENTRIES = 20_000  # entries that the dispersion within items is estimated from
_MAX_LOG_RATIO = 8.0  # of that dispersion to the dispersion of all values


class _Baseline:
    """Ids, the element, and the entries trained on."""

    train_on = "full"
    element_: Element
    interactions_: Interactions

    def __init__(self, element: str | Element = "auto") -> None:
        self.element = element

    def _prepare(self, X: Any, exclude: Any) -> tuple[Csr, Csr]:
        """Return the entries trained on, and a matrix with a 1 for each excluded pair."""
        data = as_interactions(X)
        self.interactions_ = data
        self._user_index = IdIndex("users", data.users)
        self._item_index = IdIndex("items", data.items)
        marks = None
        if exclude is not None:
            marks = over_both("exclude", exclude, self._user_index, self._item_index)
        parts = split_validation(data.matrix, None, marks, 0.0, "full", np.random.default_rng(0))
        self.element_ = choose_value_model(self.element, parts.values).element
        if marks is None:
            return parts.training, sparse.csr_array(data.shape)
        return parts.training, as_marks(marks)

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Return the Poisson rates of the pairs."""
        raise NotImplementedError

    def predict_distribution(self, users: Any, items: Any) -> CompoundPoisson | Hurdle:
        """Return the predictive distributions of the pairs."""
        return Hurdle(self.rate(users, items), self.element_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "element_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")

    def _pairs(self, users: Any, items: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self._check_fitted()
        u, i = np.broadcast_arrays(
            self._user_index.positions(users), self._item_index.positions(items)
        )
        return u, i

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'element_', self.element)!r})"


class Popularity(_Baseline):
    r"""Rates of rank one, activity times popularity, and a shared element for all values.

    The rate is :math:`\Lambda_{ui} = m\, a_u b_i`, m the density of the training pairs, with

    .. math::
        a_u = \frac{c + d_u}{c + m \sum_{i \notin E_u} b_i}, \qquad
        b_i = \frac{c + d_i}{c + m \sum_{u \notin E_i} a_u}

    where d counts entries, E is the excluded pairs and c is ``smoothing``. Without either,
    :math:`\Lambda_{ui} = d_u d_i / \sum d`, the maximum-likelihood Poisson rates of rank one.

    Parameters
    ----------
    element
        The distribution of an observed value, as ``HCPF`` takes it.
    smoothing
        Entries of an average user (item) that are added to each; above 0, an item without entries
        is not impossible.
    """

    def __init__(self, element: str | Element = "auto", *, smoothing: float = 1.0) -> None:
        super().__init__(element)
        self.smoothing = smoothing

    def fit(self, X: Any, y: None = None, *, exclude: Any = None) -> Self:
        """Fit to entries; pairs that ``exclude`` stores take no part."""
        extra = number("smoothing", self.smoothing, 0.0, np.inf, "0 or more")
        matrix, excluded = self._prepare(X, exclude)
        n_users, n_items = matrix.shape
        of_user = np.diff(matrix.indptr)
        of_item = np.bincount(matrix.indices, minlength=n_items)
        density = matrix.nnz / (float(n_users) * n_items - excluded.nnz)
        a, b = np.ones(n_users), np.ones(n_items)
        for _ in range(_MAX_PASSES):
            before = a
            b = _relative(of_item, density * (a.sum() - a @ excluded), extra)
            a = _relative(of_user, density * (b.sum() - excluded @ b), extra)
            if np.allclose(a, before, rtol=1e-10, atol=0.0):
                break
        self.activity_, self.popularity_ = a, density * b
        return self

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Return the Poisson rates of the pairs."""
        u, i = self._pairs(users, items)
        return self.activity_[u] * self.popularity_[i]

    def recommend(
        self, users: Any, n: int = 10, *, by: str = "consensus", exclude_seen: bool = True
    ) -> Recommendations:
        """Return the most popular items for each user, without those trained on."""
        one_of("by", by, ("consensus", "probability"))  # the same here
        self._check_fitted()
        rows = listed(self._user_index, users)
        seen = self.interactions_.matrix if exclude_seen else None
        # Activity does not change the order, and a user of activity 0 still gets a list.
        ones = np.ones((len(self.activity_), 1), np.float32)
        items = self.popularity_.astype(np.float32)[:, None]
        denied = np.zeros(len(items), np.bool_)
        best = best_items(Rates([(ones, items)]), len(items), seen, rows, whole("n", n), denied)
        return Recommendations.concatenate([self._described(*part[:3]) for part in best])

    def _described(self, rows: Any, columns: Any, rank: Any) -> Recommendations:
        user, item = self._user_index.ids[rows], self._item_index.ids[columns]
        predicted = self.predict_distribution(user, item)
        return Recommendations(
            user=user,
            item=item,
            rank=rank,
            probability=predicted.prob_observed,
            value=predicted.mean_observed,
            expected_value=predicted.mean,
        )


class ConstantRate(_Baseline):
    r"""The same rate for all pairs, :math:`-\log(1 - \text{density})`, and a shared element.

    Parameters
    ----------
    element
        The distribution of an observed value, as ``HCPF`` takes it.
    """

    def fit(self, X: Any, y: None = None, *, exclude: Any = None) -> Self:
        """Fit to entries; pairs that ``exclude`` stores take no part."""
        matrix, excluded = self._prepare(X, exclude)
        n_pairs = float(matrix.shape[0]) * matrix.shape[1] - excluded.nnz
        self.rate_ = expected_count(matrix.nnz / n_pairs)
        return self

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Return the Poisson rates of the pairs."""
        return np.full(self._pairs(users, items)[0].shape, self.rate_)


class BinaryHPF(_Baseline):
    r"""Poisson factorization of which pairs are observed, and one element for all values.

    A pair is observed with probability :math:`1 - e^{-\Lambda_{ui}}`, :math:`\Lambda` fitted to the
    data with every value set to 1; the value itself does not depend on the pair.

    Parameters
    ----------
    n_components
        K, the number of components.
    element
        The distribution of an observed value, as ``HCPF`` takes it.
    **settings
        Further parameters of ``HCPF``, other than those of the value model.
    """

    _factored: str | Element = "presence"

    def __init__(
        self, n_components: int = 50, *, element: str | Element = "auto", **settings: Any
    ) -> None:
        super().__init__(element)
        self.n_components = n_components
        self.settings = settings

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        validation: Any = None,
        exclude: Any = None,
        user_exposure: Any = None,
        item_exposure: Any = None,
    ) -> Self:
        """Fit to entries, as ``HCPF.fit`` does."""
        data = as_interactions(X)
        model = HCPF(self.n_components, element=self._factored, **self.settings)
        self._model = model.fit(
            data, validation=validation, exclude=exclude,
            user_exposure=user_exposure, item_exposure=item_exposure,
        )  # fmt: skip
        training = without(data.matrix, self._model.model_.excluded)
        self.element_ = choose_value_model(self.element, sample_values(training)).element
        return self

    @property
    def _fitted(self) -> HCPF:
        self._check_fitted()
        return self._model

    @property
    def n_iter_(self) -> int:
        """Number of passes."""
        return self._fitted.n_iter_

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the fit early."""
        return self._fitted.interrupted_

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Return the Poisson rates of the pairs."""
        return self._fitted.rate(users, items)

    def recommend(
        self, users: Any, n: int = 10, *, by: str = "consensus", exclude_seen: bool = True
    ) -> Recommendations:
        """Return the best items for users, as ``HCPF.recommend`` does."""
        return self._fitted.recommend(users, n, by=by, exclude_seen=exclude_seen)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_components})"


class HPF(BinaryHPF):
    r"""Poisson factorization of counts, :math:`y_{ui} \sim \mathrm{Po}(\sum_k s_{uk} v_{ik})`.

    This is ``HCPF`` with the element that is always 1; values are integers from 1.

    Parameters
    ----------
    n_components
        K, the number of components.
    **settings
        Further parameters of ``HCPF``, other than those of the value model.
    """

    _factored = Degenerate()

    def __init__(self, n_components: int = 50, **settings: Any) -> None:
        super().__init__(n_components, element=self._factored, **settings)

    def predict_distribution(self, users: Any, items: Any) -> CompoundPoisson:
        """Return the predictive distributions of the pairs."""
        return CompoundPoisson(self.rate(users, items), self.element_)


class GlobalElement(_Baseline):
    """A shared element for all observed values, without a model of missing pairs."""

    train_on = "observed"

    def fit(self, X: Any, y: None = None, *, exclude: Any = None) -> Self:
        """Fit to entries; pairs that ``exclude`` stores take no part."""
        self._prepare(X, exclude)
        return self

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Return rates so high that every pair is observed."""
        return np.full(self._pairs(users, items)[0].shape, _CERTAIN_RATE)


class PerItemElement(GlobalElement):
    r"""An element per item, with its own mean and a shared dispersion.

    The mean of item i is :math:`(c \bar y + \sum_u y_{ui}) / (c + d_i)`, over its :math:`d_i`
    entries, with c the ``smoothing``; the dispersion, where the element has one, maximizes the
    likelihood.

    Parameters
    ----------
    element
        The distribution of an observed value, as ``HCPF`` takes it.
    smoothing
        Entries of the overall mean that are added to each item.
    """

    def __init__(self, element: str | Element = "auto", *, smoothing: float = 1.0) -> None:
        super().__init__(element)
        self.smoothing = smoothing

    def fit(self, X: Any, y: None = None, *, exclude: Any = None) -> Self:
        """Fit to entries; pairs that ``exclude`` stores take no part."""
        extra = number("smoothing", self.smoothing, 1e-9, np.inf, "above 0")
        matrix, _ = self._prepare(X, exclude)
        values = matrix.data.astype(np.float64)
        total = np.bincount(matrix.indices, weights=values, minlength=matrix.shape[1])
        count = np.bincount(matrix.indices, minlength=matrix.shape[1])
        means = (extra * values.mean() + total) / (extra + count)
        step = max(1, len(values) // _DISPERSION_ENTRIES)
        element = _fit_dispersion(self.element_, means, matrix.indices[::step], values[::step])
        self.item_elements_ = _with_means(element, means)
        return self

    def predict_distribution(self, users: Any, items: Any) -> Hurdle:
        """Return the predictive distributions of the pairs."""
        _, i = self._pairs(users, items)
        return Hurdle(self.rate(users, items), self.item_elements_.at(i))


def _relative(count: NDArray[np.integer], expected: FloatArray, extra: float) -> FloatArray:
    """Return the ratio of entries to those expected; 0 where none could be."""
    return (count + extra) / np.maximum(expected + extra, 1e-300)


def _with_means(element: Element, means: FloatArray) -> Element:
    """Return the element with an array of means and its own dispersion."""
    name = element.mean_parameter
    if name is None:
        return element
    nodes, place = np.unique(means, return_inverse=True)
    if len(nodes) > _MAX_NODES:
        nodes = np.unique(np.quantile(nodes, np.linspace(0.0, 1.0, _MAX_NODES)))
        solved = [element.with_mean(float(mean)).parameters[name] for mean in nodes]
        return element.replace(**{name: np.interp(means, nodes, np.asarray(solved))})
    solved = [element.with_mean(float(mean)).parameters[name] for mean in nodes]
    return element.replace(**{name: np.asarray(solved)[place]})


def _fit_dispersion(
    element: Element, means: FloatArray, items: NDArray[np.integer], values: FloatArray
) -> Element:
    """Return the element with the dispersion of highest likelihood, given the item means."""
    name = element.dispersion_parameter
    if name is None:
        return element
    some, place = np.unique(items, return_inverse=True)
    center = np.log(float(np.asarray(element.parameters[name])))

    def with_dispersion(log: float) -> Element:
        return element.replace(**{name: float(np.exp(log))})

    def loss(log: float) -> float:
        varied = _with_means(with_dispersion(log), means[some]).at(place)
        return -float(np.mean(varied.log_density(values)))

    found: Any = optimize.minimize_scalar(
        loss,
        bounds=(center - _MAX_LOG_RATIO, center + _MAX_LOG_RATIO),
        method="bounded",
        options={"xatol": 0.02},
    )
    return with_dispersion(float(found.x))
