"""The ``hcpf`` command line: thin commands over the library, one function each.

Commands import what they need when they run, so that ``hcpf --help`` stays quick.
"""

import os
import secrets
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hcpf.errors import HcpfError, InputError


class _OneLineErrors(TyperGroup):
    """A command group whose expected errors end in one line and exit code 1, no traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of our output has gone: typer ends quietly
        except (HcpfError, OSError) as error:
            typer.echo(f"hcpf: {_one_line(error)}", err=True)
            raise typer.Exit(1) from None


main = typer.Typer(
    name="hcpf",
    cls=_OneLineErrors,
    help="Hierarchical compound Poisson factorization: will a pair be observed, with what value?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
reproduce = typer.Typer(help="Compute the paper's figure and tables anew.", no_args_is_help=True)
main.add_typer(reproduce, name="reproduce")


def _print_version(wanted: bool) -> None:
    if wanted:
        from hcpf._version import __version__

        typer.echo(f"hcpf {__version__}")
        raise typer.Exit


@main.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


@reproduce.command("figure1")
def reproduce_figure1(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Image to write: .png, .pdf or .svg.")
    ] = Path("figure1.png"),
) -> None:
    """Figure 1: an observed value's distribution as the matrix gets sparser.

    An existing file is overwritten, and the command says so.
    """
    from hcpf.experiments import figure1

    image_format = output.suffix.removeprefix(".").lower()
    if image_format not in figure1.FORMATS:
        endings = ", ".join(f".{known}" for known in figure1.FORMATS)
        raise InputError(f"cannot tell the image format of {output}: end its name in {endings}.")
    _prepare_file(output)
    _write_file(output, figure1.render(figure1.draw(), image_format))


_Data = Annotated[
    Path, typer.Option("--data", "-d", help="Folder of Parquet files of user, item, value.")
]
_Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for results and tables.")]
_Components = Annotated[int, typer.Option("--components", "-K", help="Number of components.")]
_Only = Annotated[list[str] | None, typer.Option("--only", help="A data set; may be repeated.")]
_Seed = Annotated[int, typer.Option("--seed", help="Of the split and of the fits.")]


def _reproduce_tables(
    names: tuple[str, ...], data: Path, output: Path, components: int, only: Any, seed: int
) -> None:
    """Compute what is missing in output/results.csv, then write the tables from all of it."""
    from hcpf.experiments import cells, tables

    sets = cells.find_sets(data)
    unknown = [name for name in only or () if name not in sets]
    if unknown:
        raise InputError(f"{unknown[0]} is not among the data sets found: {', '.join(sets)}.")
    sets = {name: path for name, path in sets.items() if not only or name in only}
    settings = cells.Settings(n_components=components, random_state=seed)
    found = cells.run(sets, output / "results.csv", settings)
    chosen = [cell for cell in found if cell.dataset in sets and cell.n_components == components]
    for name in names:
        target = output / f"{name}-K{components}.md"
        _prepare_file(target)
        text = tables.render(name, chosen)
        typer.echo(text)
        _write_file(target, text.encode())
    failed = [cell for cell in chosen if cell.error]
    for cell in failed:
        where = f"{cell.dataset}, {cell.model} on {cell.trained_on}"
        typer.echo(f"hcpf: failed: {where}: {cell.error}", err=True)
    if failed:
        raise typer.Exit(2)


@reproduce.command("table3")
def reproduce_table3(
    data: _Data,
    output: _Folder = Path("reproduction"),
    components: _Components = 50,
    only: _Only = None,
    seed: _Seed = 0,
) -> None:
    """Table 3: test log likelihood of the full matrix. Stopped runs go on where they were."""
    _reproduce_tables(("table3",), data, output, components, only, seed)


@reproduce.command("table4")
def reproduce_table4(
    data: _Data,
    output: _Folder = Path("reproduction"),
    components: _Components = 50,
    only: _Only = None,
    seed: _Seed = 0,
) -> None:
    """Table 4: test log likelihood of observed entries. Stopped runs go on where they were."""
    _reproduce_tables(("table4",), data, output, components, only, seed)


@reproduce.command("table5")
def reproduce_table5(
    data: _Data,
    output: _Folder = Path("reproduction"),
    components: _Components = 50,
    only: _Only = None,
    seed: _Seed = 0,
) -> None:
    """Table 5: test AUC. Stopped runs go on where they were."""
    _reproduce_tables(("table5",), data, output, components, only, seed)


@reproduce.command("all")
def reproduce_all(
    data: _Data,
    output: _Folder = Path("reproduction"),
    components: _Components = 50,
    only: _Only = None,
    seed: _Seed = 0,
) -> None:
    """Tables 3, 4 and 5, and Figure 1. Stopped runs go on where they were."""
    reproduce_figure1(output / "figure1.png")
    _reproduce_tables(("table3", "table4", "table5"), data, output, components, only, seed)


def _prepare_file(path: Path) -> None:
    """Find out before any work is done whether ``path`` can be written; make its folder."""
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it exists and is not a regular file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"cannot write {path}: its path leads through a file.") from None
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: no permission to create files in {path.parent}.")


def _write_file(path: Path, content: bytes) -> None:
    """Write all of ``content`` or nothing, and say where it went and whether it replaced a file."""
    target = path.resolve()  # a symbolic link stays one: what it points to is replaced
    existed = target.exists()
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # not the partial file
    finally:
        partial.unlink(missing_ok=True)
    verb = "Overwrote" if existed else "Wrote"
    typer.echo(f"{verb} {path} ({_readable_size(len(content))}).")


def _readable_size(n_bytes: int) -> str:
    """Write a number of bytes for people.

    >>> _readable_size(512), _readable_size(81_920), _readable_size(3_400_000)
    ('512 bytes', '82 kB', '3.4 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 999_500 else f"{n_bytes / 1e6:.1f} MB"


def _one_line(error: HcpfError | OSError) -> str:
    """Return the message without line breaks; an OSError by its file and reason."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    main()
