"""Parameters of the reference with the defaults and types that Python has.

The parser of docstrings takes the first of several choices for the default, and the default and the
type of the first name of a line for those of the others.
"""

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

_HEADER = re.compile(r"^([\w*]+(?:, [\w*]+)*)(?: : (.+))?$", re.M)
_TRIMMED = re.compile(r"[{}]|, optional$|, default .*$")


class Parameters(griffe.Extension):
    """Correct the documented parameters of a package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Visit all functions and classes of the package."""
        _visit(pkg)


def _visit(parent: griffe.Module | griffe.Class) -> None:
    for one in list(parent.members.values()):
        if isinstance(one, griffe.Module | griffe.Class):
            _visit(one)
        if isinstance(one, griffe.Function | griffe.Class) and one.docstring is not None:
            _correct(one, one.docstring)


def _correct(one: griffe.Function | griffe.Class, docstring: griffe.Docstring) -> None:
    """Set the defaults of a function, in its signature and in the list, and types in the list."""
    if "Parameters\n---" not in docstring.value:
        return
    kind = griffe.DocstringSectionKind.parameters
    documented = next(section.value for section in docstring.parsed if section.kind is kind)
    known, annotated = inspect.signature(_python_object(one)).parameters, {}
    for parameter in one.parameters:
        annotated[parameter.name] = parameter.annotation
        if parameter.name in known:
            parameter.default = _shown(known[parameter.name].default)
    types = {
        name: text for names, text in _HEADER.findall(docstring.value) for name in names.split(", ")
    }
    for entry in documented:
        entry.value = _shown(known[entry.name].default) if entry.name in known else None
        given = types.get(entry.name, "")
        if not given:
            entry.annotation = annotated.get(entry.name)
        elif '"' in given or "," in given:  # which the parser reads as a tuple of names
            entry.annotation = _TRIMMED.sub("", given)


def _python_object(one: griffe.Function | griffe.Class) -> Any:
    found: Any = import_module(one.module.path)
    for name in one.path.removeprefix(f"{one.module.path}.").split("."):
        found = getattr(found, name)
    return found


def _shown(default: Any) -> str | None:
    if default is inspect.Parameter.empty:
        return None
    return f'"{default}"' if isinstance(default, str) else repr(default)
