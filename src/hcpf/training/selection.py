"""The rule by which one of several value models is chosen.

``HCPF(element="auto")`` applies it to short fits, ``hcpf compare`` to complete ones. Candidates are
compared pair by pair on the same held-out pairs, which makes the standard error of a gain much
smaller than that of either likelihood. Partial pooling and the hurdle are slower and harder to
interpret, so they have to gain a minimum, and more than one standard error.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from hcpf._types import FloatArray

MIN_POOLING_GAIN = 0.005
"""Nats per held-out entry that partial pooling must gain over shared means."""

MIN_HURDLE_GAIN = 0.005
"""Nats per held-out entry that the hurdle must gain over the compound model."""

MAX_SHARED_DEFICIT = 0.5
"""Nats per held-out entry behind the best shared mean, beyond which pooling is not tried."""

Name = TypeVar("Name", bound=Hashable)


class Gain(NamedTuple):
    """A difference of log-likelihoods in nats per held-out entry, and its standard error."""

    value: float
    error: float

    def exceeds(self, min_gain: float, n_errors: float = 1.0) -> bool:
        """Return whether the gain is above a minimum, and above some standard errors."""
        return self.value > max(min_gain, n_errors * self.error)


@dataclass(frozen=True, eq=False)
class PairLikelihoods:
    """Log-likelihoods of single held-out pairs under one model.

    Attributes
    ----------
    observed : ndarray
        Log density of observing each observed pair with its value.
    missing : ndarray
        Log probability of each missing pair; empty where missing pairs are not data.
    missing_per_entry : float
        Missing pairs of the data per observed one.
    """

    observed: FloatArray
    missing: FloatArray
    missing_per_entry: float

    @classmethod
    def average(cls, fits: Sequence["PairLikelihoods"]) -> "PairLikelihoods":
        """Return the likelihoods of the average of several fits: of their densities and rates."""
        observed = np.logaddexp.reduce([fit.observed for fit in fits]) - np.log(len(fits))
        missing = np.mean([fit.missing for fit in fits], axis=0)
        return cls(observed, missing, fits[0].missing_per_entry)

    @property
    def per_entry(self) -> float:
        """Nats per observed pair, each with its share of the missing ones."""
        return float(np.mean(self.observed)) + self.missing_per_entry * _mean(self.missing)

    def gain_over(self, other: "PairLikelihoods") -> Gain:
        """Return by how much these are higher than another model's of the same pairs."""
        value = self.per_entry - other.per_entry
        if not np.isfinite(value):
            return Gain(np.nan_to_num(value, nan=0.0, posinf=np.inf, neginf=-np.inf), 0.0)
        observed = _standard_error(self.observed - other.observed)
        missing = self.missing_per_entry * _standard_error(self.missing - other.missing)
        return Gain(value, float(np.hypot(observed, missing)))


@dataclass(frozen=True, eq=False)
class Candidate(Generic[Name]):
    """A value model with its held-out likelihoods.

    Attributes
    ----------
    name : hashable
        What identifies the model; returned by ``select``.
    likelihoods : PairLikelihoods
        Of the held-out pairs, the same for all candidates.
    pooled, hurdle : bool
        Whether the model has means per user or item, and whether a value is a single element.
    """

    name: Name
    likelihoods: PairLikelihoods
    pooled: bool = False
    hurdle: bool = False


def select(candidates: Sequence[Candidate[Name]]) -> Name:
    """Return the name of the best candidate, the simpler one where the gain is too small.

    Examples
    --------
    >>> def likelihoods(log_likelihood):
    ...     return PairLikelihoods(np.full(9, log_likelihood), np.zeros(9), 10.0)
    >>> gamma = Candidate("gamma", likelihoods(-3.000))
    >>> select([gamma, Candidate("gamma per item", likelihoods(-2.999), pooled=True)])
    'gamma'
    >>> select([gamma, Candidate("gamma per item", likelihoods(-2.9), pooled=True)])
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
    >>> def likelihoods(log_likelihood):
    ...     return PairLikelihoods(np.full(9, log_likelihood), np.zeros(9), 10.0)
    >>> worth_pooling([Candidate("normal", likelihoods(-4)), Candidate("gamma", likelihoods(-3))])
    ['gamma']
    """
    shared = sorted(
        (one for one in candidates if not one.pooled), key=lambda one: -one.likelihoods.per_entry
    )
    best = shared[0].likelihoods.per_entry if shared else 0.0
    return [one.name for one in shared if best - one.likelihoods.per_entry < MAX_SHARED_DEFICIT]


def _best_pooling(candidates: Sequence[Candidate[Name]]) -> Candidate[Name]:
    shared = [one for one in candidates if not one.pooled]
    pooled = [one for one in candidates if one.pooled]
    if not (shared and pooled):
        return _most_likely(shared or pooled)
    return _prefer(_most_likely(pooled), _most_likely(shared), MIN_POOLING_GAIN)


def _most_likely(candidates: Sequence[Candidate[Name]]) -> Candidate[Name]:
    return max(candidates, key=lambda one: one.likelihoods.per_entry)


def _prefer(
    elaborate: Candidate[Name], simple: Candidate[Name], min_gain: float
) -> Candidate[Name]:
    gain = elaborate.likelihoods.gain_over(simple.likelihoods)
    return elaborate if gain.exceeds(min_gain) else simple


def _mean(x: FloatArray) -> float:
    return float(np.mean(x)) if x.size else 0.0


def _standard_error(x: FloatArray) -> float:
    return float(np.std(x, ddof=1) / np.sqrt(x.size)) if x.size > 1 else 0.0
