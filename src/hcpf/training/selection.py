"""The rule by which one of several value models is chosen.

``HCPF(element="auto")`` applies it to short fits, ``hcpf compare`` to complete ones. Partial
pooling and the hurdle are slower and harder to interpret, so they have to gain a minimum in
held-out log-likelihood over the simpler model.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

MIN_POOLING_GAIN = 0.005
"""Nats per held-out entry that partial pooling must gain over shared means."""

MIN_HURDLE_GAIN = 0.005
"""Nats per held-out entry that the hurdle must gain over the compound model."""

MAX_SHARED_DEFICIT = 0.5
"""Nats per held-out entry behind the best shared mean, beyond which pooling is not tried."""

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Candidate(Generic[Name]):
    """A value model with its held-out score.

    Attributes
    ----------
    name : hashable
        What identifies the model; returned by ``select``.
    log_likelihood : float
        Nats per held-out entry, each with its share of the missing pairs.
    pooled, hurdle : bool
        Whether the model has means per user or item, and whether a value is a single element.
    """

    name: Name
    log_likelihood: float
    pooled: bool = False
    hurdle: bool = False


def select(candidates: Sequence[Candidate[Name]]) -> Name:
    """Return the name of the best candidate, the simpler one where the gain is too small.

    Examples
    --------
    >>> gamma = Candidate("gamma", -3.000)
    >>> select([gamma, Candidate("gamma per item", -2.999, pooled=True)])
    'gamma'
    >>> select([gamma, Candidate("gamma per item", -2.9, pooled=True)])
    'gamma per item'
    """
    compound = [one for one in candidates if not one.hurdle]
    hurdle = [one for one in candidates if one.hurdle]
    if not (compound and hurdle):
        return _best_pooling(compound or hurdle).name
    return _prefer(_best_pooling(hurdle), _best_pooling(compound), MIN_HURDLE_GAIN).name


def worth_pooling(candidates: Sequence[Candidate[Name]]) -> list[Name]:
    """Return the shared-mean candidates that are worth trying with partial pooling, best first.

    Examples
    --------
    >>> worth_pooling([Candidate("gamma", -3.0), Candidate("normal", -4.0)])
    ['gamma']
    """
    shared = sorted(
        (one for one in candidates if not one.pooled), key=lambda one: -one.log_likelihood
    )
    close = [
        one for one in shared if shared[0].log_likelihood - one.log_likelihood < MAX_SHARED_DEFICIT
    ]
    return [one.name for one in close]


def _best_pooling(candidates: Sequence[Candidate[Name]]) -> Candidate[Name]:
    shared = [one for one in candidates if not one.pooled]
    pooled = [one for one in candidates if one.pooled]
    if not (shared and pooled):
        return _most_likely(shared or pooled)
    return _prefer(_most_likely(pooled), _most_likely(shared), MIN_POOLING_GAIN)


def _most_likely(candidates: Sequence[Candidate[Name]]) -> Candidate[Name]:
    return max(candidates, key=lambda one: one.log_likelihood)


def _prefer(
    elaborate: Candidate[Name], simple: Candidate[Name], min_gain: float
) -> Candidate[Name]:
    gain = elaborate.log_likelihood - simple.log_likelihood
    return elaborate if gain > min_gain else simple
