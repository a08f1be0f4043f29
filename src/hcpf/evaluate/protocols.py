"""What an evaluation needs of a model; ``HCPF``, its fitted model and the baselines have it."""

from typing import Any, Protocol

from hcpf._types import FloatArray
from hcpf.core.value_model import ValueModel
from hcpf.model.tables import Recommendations


class Model(Protocol):
    """What ``scores`` and ``calibration`` need; users and items are given by id.

    A model that says nothing about missing pairs has a value model whose ``train_on`` is
    "observed", or such an attribute of its own.
    """

    def rate(self, users: Any, items: Any) -> FloatArray:
        r"""Return Poisson rates: a pair is missing with probability :math:`e^{-\Lambda}`."""
        ...

    def predict_distribution(self, users: Any, items: Any) -> Any:
        """Return the predictive distributions of the pairs, such as a ``CompoundPoisson``."""
        ...


class Ranker(Protocol):
    """What ``ranking`` needs: the best items for users, without those trained on."""

    def recommend(self, users: Any, n: int = 10, *, by: str = ...) -> Recommendations:
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
