"""Elements by name, by the acronym of the paper's tables, or by text with parameters."""

from hcpf.elements.base import Element
from hcpf.elements.binomial import Binomial
from hcpf.elements.degenerate import Degenerate, Presence
from hcpf.elements.gamma import Gamma
from hcpf.elements.geometric import Geometric
from hcpf.elements.inverse_gaussian import InverseGaussian
from hcpf.elements.logarithmic import Logarithmic
from hcpf.elements.negative_binomial import NegativeBinomial
from hcpf.elements.normal import Normal
from hcpf.elements.poisson import Poisson
from hcpf.elements.zero_truncated_poisson import ZeroTruncatedPoisson
from hcpf.errors import InputError, ParameterError

ALL: tuple[type[Element], ...] = (
    Normal, Gamma, InverseGaussian, Poisson, Binomial, NegativeBinomial, ZeroTruncatedPoisson,
    Logarithmic, Geometric, Degenerate,
)  # fmt: skip
"""The elements that model values; ``Presence`` ignores them and is known to ``get`` only."""


def get(name: str) -> type[Element]:
    """Return the element class of a name or of an acronym of the paper, in any case.

    >>> get("inverse_gaussian") is get("IG") is InverseGaussian
    True
    """
    key = str(name).strip().lower().replace("-", "_").replace(" ", "_")
    for element in (*ALL, Presence):
        if key in (element.name, element.acronym.lower(), element.__name__.lower()):
            return element
    known = ", ".join(f"{element.name} ({element.acronym})" for element in (*ALL, Presence))
    raise InputError(f"Unknown element {name!r}. Known elements: {known}.")


CHOSEN_BY_DATA = ("auto", "quick")
"""What ``element`` may be instead of an element: by short fits, or by the values alone."""


def parse_element(text: str) -> str | Element:
    """Return the name of an element, or an element if ``text`` has parameters.

    Parameters
    ----------
    text : str
        "auto", "quick", a name or acronym, or a name and parameters by position or by name.
        Parameters that are not given are estimated from the data.

    Examples
    --------
    >>> parse_element("GA"), parse_element("gamma:2,0.05"), parse_element("gamma:shape=2")
    ('gamma', Gamma(shape=2, rate=0.05), Gamma(shape=2, rate=?))
    """
    if text in CHOSEN_BY_DATA:
        return text
    name, colon, rest = text.partition(":")
    kind = get(name)
    if not colon:
        return kind.name
    known, parts = list(kind.domains()), rest.split(",")
    if len(parts) > len(known):
        raise ParameterError(
            f"element={text!r}: {kind.name} takes {_listed(known)}, got {len(parts)}."
        )
    given: dict[str, float] = {}
    for position, part in enumerate(parts):
        key, equals, value = part.rpartition("=")
        parameter = key.strip() if equals else known[position]
        if parameter not in known:
            raise ParameterError(
                f"element={text!r}: {kind.name} has no parameter {parameter}; it takes "
                f"{_listed(known)}."
            )
        try:
            given[parameter] = float(value)
        except ValueError:
            raise ParameterError(
                f"element={text!r}: {value!r} is not a number. Write, for example, gamma:2,0.05."
            ) from None
    return kind(**given)


def _listed(names: list[str]) -> str:
    if not names:
        return "no parameters"
    return f"{len(names)} parameter{'s' * (len(names) > 1)} ({', '.join(names)})"
