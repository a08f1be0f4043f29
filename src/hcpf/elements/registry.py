"""Elements by name, or by the acronym the paper's tables use."""

from hcpf.elements.base import Element
from hcpf.elements.binomial import Binomial
from hcpf.elements.degenerate import Degenerate
from hcpf.elements.gamma import Gamma
from hcpf.elements.geometric import Geometric
from hcpf.elements.inverse_gaussian import InverseGaussian
from hcpf.elements.logarithmic import Logarithmic
from hcpf.elements.negative_binomial import NegativeBinomial
from hcpf.elements.normal import Normal
from hcpf.elements.poisson import Poisson
from hcpf.elements.presence import Presence
from hcpf.elements.zero_truncated_poisson import ZeroTruncatedPoisson
from hcpf.errors import InputError

ALL: tuple[type[Element], ...] = (
    Normal,
    Gamma,
    InverseGaussian,
    Poisson,
    Binomial,
    NegativeBinomial,
    ZeroTruncatedPoisson,
    Logarithmic,
    Geometric,
    Degenerate,
)
"""The elements of values; ``Presence``, which ignores them, is known by name only."""


def get(name: str) -> type[Element]:
    """Return the element class called ``name``: a name or the paper's acronym, in any case.

    >>> get("inverse_gaussian") is get("IG") is InverseGaussian
    True
    """
    key = str(name).strip().lower().replace("-", "_").replace(" ", "_")
    for element in (*ALL, Presence):
        if key in (element.name, element.acronym.lower(), element.__name__.lower()):
            return element
    known = ", ".join(f"{element.name} ({element.acronym})" for element in (*ALL, Presence))
    raise InputError(f"There is no element called {name!r}. Known elements: {known}.")
