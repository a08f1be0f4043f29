"""Help that does not show the Python types of flags and arguments."""

from typing import Any

from typer.core import TyperCommand


def without_types(params: list[Any]) -> list[Any]:
    """Return parameters of a command; flags and arguments lose the type that typer would show.

    Options show theirs, such as <int>, because something follows them.
    """
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument":
            param.display_type_rich = _no_type
    return params


def _no_type(**_: Any) -> None:
    return None


class PlainCommand(TyperCommand):
    """A command with such help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, --help included."""
        return without_types(super().get_params(ctx))
