"""Elements as text: gamma, GA, gamma:2,0.05 or gamma:shape=2."""

from hcpf.elements.base import Element
from hcpf.elements.registry import get
from hcpf.errors import ParameterError


def parse_element(text: str) -> str | Element:
    """Return the name of an element, or an element with the parameters given.

    Parameters
    ----------
    text : str
        "auto", a name or acronym, or a name and parameters by position or by name. Parameters that
        are not given are left to be estimated.

    Examples
    --------
    >>> parse_element("GA"), parse_element("gamma:2,0.05"), parse_element("gamma:shape=2")
    ('gamma', Gamma(shape=2, rate=0.05), Gamma(shape=2, rate=?))
    """
    name, colon, rest = text.partition(":")
    if text == "auto":
        return text
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
        given[parameter] = _number(text, value)
    return kind(**given)


def _listed(names: list[str]) -> str:
    if not names:
        return "no parameters"
    return f"{len(names)} parameter{'s' * (len(names) > 1)} ({', '.join(names)})"


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ParameterError(
            f"element={text!r}: {value!r} is not a number. Write, for example, gamma:2,0.05."
        ) from None
