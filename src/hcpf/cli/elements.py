"""Elements as they are written on the command line: gamma, GA, gamma:2,0.05, gamma:shape=2."""

from typing import TYPE_CHECKING, Any

from hcpf.cli.screen import number
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.elements import Element


def parse_element(text: str, per: str | None = None, once: bool = False) -> "str | Element":
    """A name as it is, or the element with what was given: parameters, and how theta varies.

    ``once``: a value is one element, not a sum of them.
    """
    from hcpf.elements import get

    name, colon, rest = text.partition(":")
    if text == "auto":
        if per is not None:
            raise InputError(
                f"--per {per} needs an --element, as --element gamma --per {per}: auto itself "
                "tries whether theta should vary, and by what."
            )
        if once:
            raise InputError(
                "--once needs an --element, as --element binomial --once: auto itself tries it."
            )
        return text
    kind = get(name)
    if not colon:
        return kind(per=per, once=once) if per or once else kind.name
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
    return kind(per=per, once=once, **given)


def _listed(names: list[str]) -> str:
    return " and ".join(names) or "no parameters"


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(
            f"--element {text}: {value!r} is not a number; write gamma:2,0.05."
        ) from None


def describe_element(element: "Element") -> dict[str, Any]:
    """The element as JSON."""
    return {
        "name": element.name,
        "parameters": dict(element.parameters),
        "per": element.per,
        "once": element.once,
    }


def element_text(about: dict[str, Any]) -> str:
    """The same for people."""
    given = about["parameters"].items()
    parameters = ", ".join(f"{name} {number(float(value))}" for name, value in given)
    text = f"{about['name']} ({parameters or 'no parameters'})"
    text += ", once for each observed pair" if about["once"] else ""
    if about["per"] is None:
        return text
    each = {"user": "user", "item": "item", "both": "user and item"}[about["per"]]
    return f"{text}; its mean varies by {each}"
