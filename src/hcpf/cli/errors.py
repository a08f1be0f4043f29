"""Exit codes, and errors in one line that speaks of options rather than of arguments."""

from typing import Any

import typer
from typer.core import TyperGroup

from hcpf.errors import HcpfError

FAILED = 1
INCOMPLETE = 2
INTERRUPTED = 130

_AS_OPTIONS = {
    'pass duplicates="sum", "mean" or "last"': "pass --duplicates sum, mean or last",
    "pass overwrite=True": "pass --overwrite",
    "leave per out": "leave --per out",
    "train_on='binary'": "--train-on binary",
}


class OneLineErrors(TyperGroup):
    """A command group whose expected errors end in one line, no traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see ``docs/cli.md`` for the exit codes."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of our output has gone: typer ends quietly
        except KeyboardInterrupt:
            typer.echo("hcpf: interrupted; no file was left half written.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (HcpfError, OSError) as error:
            typer.echo(f"hcpf: {one_line(error)}", err=True)
            raise typer.Exit(FAILED) from None


def one_line(error: HcpfError | OSError) -> str:
    """Return the message without line breaks; an OSError by its file and reason."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    text = " ".join(str(error).split()) or type(error).__name__
    for python, shell in _AS_OPTIONS.items():
        text = text.replace(python, shell)
    return text
