"""Hierarchical Poisson factorization: the special case of the model that others offer."""

from typing import Any, Self

from hcpf._types import FloatArray
from hcpf.distributions import CompoundPoisson, Hurdle
from hcpf.elements import Degenerate, Element
from hcpf.errors import NotFittedError
from hcpf.estimator import HCPF
from hcpf.model.alignment import as_interactions
from hcpf.model.tables import Recommendations
from hcpf.training.resolve import choose_value_model


class HPF:
    r"""Poisson factorization of counts, :math:`y_{ui} \sim \mathrm{Po}(\sum_k s_{uk} v_{ik})`.

    This is ``HCPF`` with the element that is always 1; values are integers from 1.

    Parameters
    ----------
    n_components
        K, the number of components.
    **settings
        Further parameters of ``HCPF``, other than those of the value model.
    """

    element_: Element

    def __init__(self, n_components: int = 50, **settings: Any) -> None:
        self.n_components = n_components
        self.settings = settings

    def fit(
        self, X: Any, y: None = None, *, validation: Any = None, exclude: Any = None,
        n_threads: int | None = None, progress: bool | None = None,
    ) -> Self:  # fmt: skip
        """Fit to entries, as ``HCPF.fit`` does."""
        return self._fit(Degenerate(), X, validation, exclude, n_threads, progress)

    def _fit(
        self, element: str | Element, X: Any, validation: Any, exclude: Any,
        n_threads: int | None, progress: bool | None,
    ) -> Self:  # fmt: skip
        model = HCPF(self.n_components, element=element, **self.settings)
        self._model = model.fit(
            X, validation=validation, exclude=exclude, n_threads=n_threads, progress=progress
        )
        self.element_ = model.element_
        return self

    @property
    def _fitted(self) -> HCPF:
        if not hasattr(self, "_model"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")
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

    def predict_distribution(self, users: Any, items: Any) -> CompoundPoisson | Hurdle:
        """Return the predictive distributions of the pairs."""
        return CompoundPoisson(self.rate(users, items), self.element_)

    def recommend(
        self, users: Any, n: int = 10, *, by: str = "consensus", exclude_seen: bool = True
    ) -> Recommendations:
        """Return the best items for users, as ``HCPF.recommend`` does."""
        return self._fitted.recommend(users, n, by=by, exclude_seen=exclude_seen)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_components})"


class BinaryHPF(HPF):
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

    def __init__(
        self, n_components: int = 50, *, element: str | Element = "auto", **settings: Any
    ) -> None:
        super().__init__(n_components, **settings)
        self.element = element

    def fit(
        self, X: Any, y: None = None, *, validation: Any = None, exclude: Any = None,
        n_threads: int | None = None, progress: bool | None = None,
    ) -> Self:  # fmt: skip
        """Fit to entries, as ``HCPF.fit`` does."""
        data = as_interactions(X)
        self._fit("presence", data, validation, exclude, n_threads, progress)
        self.element_ = choose_value_model(self.element, data.matrix.data).element
        return self

    def predict_distribution(self, users: Any, items: Any) -> Hurdle:
        """Return the predictive distributions of the pairs."""
        return Hurdle(self.rate(users, items), self.element_)
