"""Element distributions: what the value of an observed entry is made of."""

from hcpf.elements.base import Element, Separable, Tabulated, parameter
from hcpf.elements.binomial import Binomial
from hcpf.elements.degenerate import Degenerate, Presence
from hcpf.elements.domains import (
    COUNTS,
    POSITIVE,
    POSITIVE_COUNTS,
    POSITIVE_INTEGER,
    POSITIVE_REALS,
    REAL,
    REALS,
    UNIT_INTERVAL,
    Domain,
    Support,
)
from hcpf.elements.gamma import Gamma
from hcpf.elements.geometric import Geometric
from hcpf.elements.inverse_gaussian import InverseGaussian
from hcpf.elements.logarithmic import Logarithmic
from hcpf.elements.negative_binomial import NegativeBinomial
from hcpf.elements.normal import Normal
from hcpf.elements.poisson import Poisson
from hcpf.elements.registry import ALL, get
from hcpf.elements.zero_truncated_poisson import ZeroTruncatedPoisson

__all__ = [
    "ALL",
    "COUNTS",
    "POSITIVE",
    "POSITIVE_COUNTS",
    "POSITIVE_INTEGER",
    "POSITIVE_REALS",
    "REAL",
    "REALS",
    "UNIT_INTERVAL",
    "Binomial",
    "Degenerate",
    "Domain",
    "Element",
    "Gamma",
    "Geometric",
    "InverseGaussian",
    "Logarithmic",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Presence",
    "Separable",
    "Support",
    "Tabulated",
    "ZeroTruncatedPoisson",
    "get",
    "parameter",
]
