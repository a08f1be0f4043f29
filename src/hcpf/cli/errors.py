"""Exit codes, signals, errors in one line that names options, and help without Python types."""

import os
import re
import shlex
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from hcpf.cli import INTERRUPTED
from hcpf.cli.output import note
from hcpf.errors import HcpfError

_SIGNALS = ("SIGTERM", "SIGHUP")  # Windows has the first only
_RETRY_SECONDS = 0.02


class Terminated(BaseException):
    """The process received a signal to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def raise_on_termination() -> Generator[None]:
    """Raise `Terminated` in the block when the process receives a signal to end.

    A signal that is ignored stays so: ``nohup`` ignores SIGHUP.
    """
    before = {}
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):  # not in the main thread
                before[number] = signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        # Python drops exceptions raised in the callbacks of module locks: ask again a moment later.
        again = threading.Timer(_RETRY_SECONDS, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    signal.signal(number, signal.SIG_IGN)  # once is enough: the cleaning up is not to be disturbed
    raise Terminated(number)


FAILED = 1
INCOMPLETE = 2

_OPTIONS = {
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "address", "append", "checkpoint", "decimal", "delimiter", "density", "drop_blank_ids",
            "drop_blank_values", "duplicates", "element", "encoding", "engine", "exclude_items",
            "header", "hurdle", "item", "item_exposure", "layer", "like", "max_iter", "names",
            "overwrite", "returns", "scale", "sheet", "sql", "test", "time", "tol", "train_on",
            "use_raw", "user", "user_exposure", "value", "vary_by", "workers",
        )
    },
    "n_components": "--components",
    "n_fits": "--fits",
    "n_shards": "--shards",
    "n_threads": "--threads",
    "random_state": "--seed",
}  # fmt: skip
"""Options by the name of the argument they stand for."""

_ARGUMENT = re.compile(
    rf"\b({'|'.join(_OPTIONS)})=(?:'([^']*)'|\"([^\"]*)\"|(True)\b|([\w.]+))"  # vary_by='item'
    rf"|\b({'|'.join(name for name in _OPTIONS if '_' in name)})\b"  # vary_by in a sentence
)


class PlainGroup(TyperGroup):
    """A command group whose help has no Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of all commands."""
        return without_types(super().get_params(ctx))


class OneLineErrors(PlainGroup):
    """A command group whose expected errors end in one line without a traceback."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the options of all commands; typer alone would end silently on Ctrl-C."""
        with _errors_in_one_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see ``docs/cli.md`` for the exit codes."""
        with _errors_in_one_line():
            return super().invoke(ctx)


@contextmanager
def _errors_in_one_line() -> Generator[None]:
    try:
        with _signals_unmasked(), raise_on_termination():
            yield
    except BrokenPipeError:
        raise  # the reader of our output is gone: typer ends quietly
    except KeyboardInterrupt as error:
        note(f"hcpf: {str(error) or 'interrupted; no file was left half written.'}")
        raise typer.Exit(INTERRUPTED) from None
    except Terminated as signal:
        note("hcpf: terminated; no file was left half written.")
        raise typer.Exit(signal.exit_code) from None
    except (HcpfError, OSError) as error:
        note(f"hcpf: {one_line(error)}")
        raise typer.Exit(FAILED) from None
    except MemoryError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        note(
            f"hcpf: not enough memory{reason and f': {reason}'}. Use less data or fewer components."
        )
        raise typer.Exit(FAILED) from None


@contextmanager
def _signals_unmasked() -> Generator[None]:
    """Raise the signal behind an error: a module that it interrupts may fail to load instead."""
    try:
        yield
    except (HcpfError, ImportError, SystemError) as error:
        behind: BaseException | None = error
        while behind is not None and not isinstance(behind, KeyboardInterrupt | Terminated):
            behind = behind.__cause__ or behind.__context__
        if behind is None:
            raise
        raise behind from None


def one_line(error: HcpfError | OSError) -> str:
    """Return the message without line breaks; an OSError by its file and reason."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return name_options(" ".join(str(error).split()) or type(error).__name__)


def name_options(text: str) -> str:
    """Return a message of the library with options in place of arguments.

    >>> name_options("vary_by='item' does not work with Degenerate. Remove vary_by.")
    '--vary-by item does not work with Degenerate. Remove --vary-by.'
    >>> name_options("Pass overwrite=True, or duplicates='sum', 'mean' or 'last'.")
    'Pass --overwrite, or --duplicates sum, mean or last.'
    >>> name_options("Pass decimal='.' or ',', or sql='SELECT 1'.")
    "Pass --decimal . or ,, or --sql 'SELECT 1'."
    >>> name_options("For all of these: drop_blank_ids=True, returns='net'.")
    'For all of these: --drop-blank-ids --returns net.'
    """

    def option(match: re.Match[str]) -> str:
        name, quoted, double_quoted, is_true, plain, bare = match.groups()
        if bare or is_true:
            return _OPTIONS[bare or name]
        value = quoted or double_quoted or plain
        return f"{_OPTIONS[name]} {shlex.quote(value) if ' ' in value else value}"

    # The choices after the first of an argument lose their quotes, too.
    text = re.sub(r"(=(['\"])[\w.,]+\2)((?:,? (?:or )?\2[\w.,]+\2)+)", _unquote_choices, text)
    return re.sub(r"(--[\w-]+(?: \w+)?), (?=--)", r"\1 ", _ARGUMENT.sub(option, text))


def _unquote_choices(match: re.Match[str]) -> str:
    return match[1] + match[3].replace(match[2], "")


# -- help ------------------------------------------------------------------------------------------


_PLACEHOLDERS = {
    "<str>": "TEXT", "<list[str]>": "TEXT", "<path>": "PATH", "<int>": "N", "<int range>": "N",
    "<float>": "X", "<float range>": "X",
}  # fmt: skip
"""What help shows in place of Python types."""


def without_types(params: list[Any]) -> list[Any]:
    """Return parameters of a command whose help has no Python types.

    Flags and arguments show nothing: no value follows a flag, and an argument has its name.
    """
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument":
            param.display_type_rich = _no_type
        elif hasattr(param, "display_type_rich"):  # typer 0.26 sets its placeholders here
            param.display_type_rich = partial(_placeholder, param.display_type_rich)
    return params


def _no_type(**_: Any) -> None:
    return None


def _placeholder(shown: Callable[..., str], **given: Any) -> str:
    text = shown(**given)
    return _PLACEHOLDERS.get(text, text.replace("<list[", "<").replace("]>", ">"))


class PlainCommand(TyperCommand):
    """A command with such help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, --help included."""
        return without_types(super().get_params(ctx))
