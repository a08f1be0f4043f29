"""Hierarchical Poisson factorization: the special case of the model that others offer."""

from typing import Any, Self

from hcpf._types import FloatArray
from hcpf.distributions.compound import CompoundPoisson
from hcpf.elements import Degenerate, Element
from hcpf.errors import NotFittedError
from hcpf.estimator import HCPF
from hcpf.evaluate.independent import Independent
from hcpf.model.growing import as_interactions
from hcpf.model.tables import Recommendations
from hcpf.training.recipes import choose_element


class HPF:
    r"""Poisson factorization of counts, :math:`y_{ui} \sim \mathrm{Po}(\sum_k s_{uk} v_{ik})`.

    This is ``HCPF`` with the element that is always 1; responses are whole numbers from 1.

    Parameters
    ----------
    n_components
        K, the number of components.
    **settings
        Further parameters of ``HCPF``, other than ``element`` and ``train_on``.
    """

    train_on = "full"
    element_: Element
    model_: HCPF

    def __init__(self, n_components: int = 50, **settings: Any) -> None:
        self.n_components = n_components
        self.settings = settings

    def fit(self, X: Any, y: None = None, *, validation: Any = None, exclude: Any = None) -> Self:
        """Fit to entries, as ``HCPF.fit`` does."""
        model = HCPF(self.n_components, element=Degenerate(), train_on="full", **self.settings)
        self.model_ = model.fit(X, validation=validation, exclude=exclude)
        self.element_ = model.element_
        return self

    @property
    def _fitted(self) -> HCPF:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self.model_

    def rate(self, users: Any, items: Any) -> FloatArray:
        """Poisson rates of the pairs."""
        return self._fitted.rate(users, items)

    def predictive(self, users: Any, items: Any) -> CompoundPoisson | Independent:
        """Predictive distributions of the pairs."""
        return CompoundPoisson(self.rate(users, items), self.element_)

    def recommend(
        self, users: Any, n: int = 10, *, by: str = "consensus", exclude_seen: bool = True
    ) -> Recommendations:
        """The best items for users, as ``HCPF.recommend`` gives them."""
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
        Further parameters of ``HCPF``, other than ``train_on``.
    """

    def __init__(
        self, n_components: int = 50, *, element: str | Element = "auto", **settings: Any
    ) -> None:
        super().__init__(n_components, **settings)
        self.element = element

    def fit(self, X: Any, y: None = None, *, validation: Any = None, exclude: Any = None) -> Self:
        """Fit to entries, as ``HCPF.fit`` does."""
        data = as_interactions(X)
        model = HCPF(self.n_components, train_on="binary", **self.settings)
        self.model_ = model.fit(data, validation=validation, exclude=exclude)
        self.element_ = choose_element(self.element, data.matrix.data, "full")
        return self

    def predictive(self, users: Any, items: Any) -> Independent:
        """Predictive distributions of the pairs."""
        return Independent(self.rate(users, items), self.element_)
