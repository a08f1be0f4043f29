"""What an evaluation needs of a model; ``HCPF``, its fitted model and the baselines have it."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hcpf._types import ArrayLike, FloatArray
from hcpf.core.value_model import ValueModel
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
        """Return the log density (or mass) of the values ``y``."""
        ...

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Return the probability of a value of at most ``y``."""
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

    A model that says nothing about missing pairs has a value model whose ``train_on`` is
    "observed", or such an attribute of its own.
    """

    def rate(self, users: Any, items: Any) -> FloatArray:
        r"""Return Poisson rates: a pair is missing with probability :math:`e^{-\Lambda}`."""
        ...

    def predict_distribution(self, users: Any, items: Any) -> Predictive:
        """Return the predictive distributions of the pairs."""
        ...


class Recommended(Protocol):
    """Items for users in columns; ranks begin at 1."""

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
    """What ``ranking`` needs: the best items for users, without those trained on."""

    def recommend(self, users: Any, n: int = 10, *, by: str = ...) -> Recommended:
        """Return the best ``n`` items for each user, best first."""
        ...


def explains_missing(model: Any) -> bool:
    """Return whether the model says anything about missing pairs."""
    value_model = value_model_of(model)
    train_on = getattr(model, "train_on", "full") if value_model is None else value_model.train_on
    return train_on != "observed"


def value_model_of(model: Any) -> ValueModel | None:
    """Return the value model of a fitted HCPF or FittedModel; None for other models."""
    return getattr(model, "value_model_", None) or getattr(model, "value_model", None)
