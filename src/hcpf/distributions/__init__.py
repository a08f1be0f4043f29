"""The distribution of a pair's value: compound Poisson, hurdle, and averages over draws."""

from hcpf.distributions.compound import (
    CompoundPoisson,
    Hurdle,
    ObservedCompoundPoisson,
    ObservedHurdle,
)
from hcpf.distributions.pair import Distribution, ObservedDistribution, PairDistribution
from hcpf.distributions.posterior_predictive import PosteriorPredictive

__all__ = [
    "CompoundPoisson",
    "Distribution",
    "Hurdle",
    "ObservedCompoundPoisson",
    "ObservedDistribution",
    "ObservedHurdle",
    "PairDistribution",
    "PosteriorPredictive",
]
