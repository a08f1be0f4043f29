"""Elements as they are written on the command line: gamma, GA, gamma:2,0.05, gamma:shape=2."""

from typing import TYPE_CHECKING, Any

from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.elements import Element


def parse_element(text: str) -> "str | Element":
    """A name as it is, or the element with the parameters that were given."""
    from hcpf.elements import get

    name, colon, rest = text.partition(":")
    if not colon:
        return text if text == "auto" else get(text).name
    kind = get(name)
    known = list(kind.domains())
    given: dict[str, Any] = {}
    for place, part in enumerate(rest.split(",")):
        key, equals, value = part.rpartition("=")
        if not equals and place >= len(known):
            raise InputError(f"--element {text}: {kind.name} takes {_listed(known)}, no more.")
        parameter = key.strip() if equals else known[place]
        if parameter not in known:
            raise InputError(f"--element {text}: {kind.name} has {_listed(known)}, no {parameter}.")
        given[parameter] = _number(text, value)
    return kind(**given)


def _listed(names: list[str]) -> str:
    return " and ".join(names) or "no parameters"


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"--element {text}: {value!r} is no number; write gamma:2,0.05.") from None


def describe_element(element: "Element") -> dict[str, Any]:
    """The element as JSON."""
    return {"name": element.name, "parameters": dict(element.parameters)}
