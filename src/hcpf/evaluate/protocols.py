"""What the evaluation needs of a model; ``HCPF`` and the baselines have all of it."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element


class Response(Protocol):
    """The distribution of the values of pairs, given that they are observed."""

    @property
    def element(self) -> Element:
        """The element; whether values are discrete follows from its support."""
        ...

    @property
    def mean(self) -> FloatArray:
        """The expected value."""
        ...

    def log_density(self, y: ArrayLike) -> FloatArray:
        """Log density (or mass) of the values ``y``."""
        ...

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of a value of at most ``y``."""
        ...


class Predictive(Protocol):
    """The predictive distribution of pairs."""

    @property
    def prob_observed(self) -> FloatArray:
        """Probability that the pairs are observed."""
        ...

    @property
    def observed(self) -> Response:
        """The distribution of their values if they are."""
        ...


class Model(Protocol):
    """What ``scores`` and ``calibration`` need; users and items are given by id.

    A model whose attribute ``train_on`` is "observed" says nothing about missing pairs; one for
    which it is "binary" takes every observed value as 1.
    """

    def rate(self, users: Any, items: Any) -> FloatArray:
        r"""Poisson rates: a pair is missing with probability :math:`e^{-\Lambda}`."""
        ...

    def predictive(self, users: Any, items: Any) -> Predictive:
        """Predictive distributions of the pairs."""
        ...


class Recommended(Protocol):
    """Items for users in columns, one row for each; ranks begin at 1."""

    @property
    def user(self) -> NDArray[Any]:
        """Ids of the users."""
        ...

    @property
    def item(self) -> NDArray[Any]:
        """Ids of the items."""
        ...

    @property
    def rank(self) -> NDArray[np.int64]:
        """1, 2, ... within each user."""
        ...


class Ranker(Protocol):
    """What ``ranking`` needs: the best items for users, those fitted with left out."""

    def recommend(self, users: Any, n: int = 10, *, by: str = ...) -> Recommended:
        """The best ``n`` items for each user, best first."""
        ...


def explains_missing(model: Model) -> bool:
    """Whether the model says anything about missing pairs."""
    return getattr(model, "train_on", "full") != "observed"


def values_for(model: Model, values: FloatArray) -> FloatArray:
    """The values as the model was trained to see them."""
    return np.ones_like(values) if getattr(model, "train_on", "full") == "binary" else values
