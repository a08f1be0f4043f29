"""Ratings in delimited text: MovieLens and Book-Crossing."""

from dataclasses import replace
from typing import Literal

from hcpf._checks import one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Wanted
from hcpf.datasets.tables import Layout, read_table

_MOVIELENS = Wanted(
    "MovieLens ratings: u.data (100K), ratings.dat (1M, 10M) or ratings.csv (20M and later), or "
    "the folder or zip that holds one of them",
    ("u.data", "ratings.dat", "ratings.csv"),
)
_MOVIELENS_LAYOUTS = (
    Layout(r"\d+\t\d+\t[\d.]+\t\d+$", "f0", "f1", ("f2",), header=False, delimiter="\t"),
    # Fields are parted by two colons: read with one, every second column is empty.
    Layout(r"\d+::\d+::[\d.]+::\d+$", "f0", "f2", ("f4",), header=False, delimiter=":"),
    Layout(r"userId,movieId,rating\b", "userId", "movieId", ("rating",)),
)

_BOOKS = Wanted(
    "Book-Crossing ratings: BX-Book-Ratings.csv with User-ID, ISBN and Book-Rating, or the folder "
    "or zip that holds it",
    ("BX-Book-Ratings.csv", "Ratings.csv"),
)
_BOOKS_LAYOUT = Layout(
    r'"?User-ID"?;"?ISBN"?;"?Book-Rating"?', "User-ID", "ISBN", ("Book-Rating",),
    delimiter=";", encoding="latin1", escape="\\",
)  # fmt: skip
_BOOKS_LAYOUTS = (
    _BOOKS_LAYOUT,
    # As the same ratings are published on Kaggle.
    replace(
        _BOOKS_LAYOUT,
        first_line=r'"?User-ID"?,"?ISBN"?,"?Book-Rating"?',
        delimiter=",",
        encoding="utf8",
    ),
)


def movielens(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    r"""Read MovieLens: users x films, the stars.

    Parameters
    ----------
    path : path
        ``u.data`` of 100K, ``ratings.dat`` of 1M and 10M, ``ratings.csv`` of 20M, 25M, 32M and
        latest, or the folder or zip in which they come.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is rated more than once. MovieLens has none.

    Returns
    -------
    Interactions
        Stars from 1 to 5, in 10M and later also half stars. Twice the stars, from 1 to 10, suit a
        binomial element.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "ratings.csv"
    ...     _ = path.write_text("userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n")
    ...     movielens(path).values.tolist()
    [2.5]
    """
    return read_table(path, _MOVIELENS, _MOVIELENS_LAYOUTS, duplicates)


def bookcrossing(
    path: PathLike,
    *,
    kind: Literal["explicit", "implicit", "all"] = "explicit",
    duplicates: Duplicates = "last",
) -> Interactions:
    """Read Book-Crossing: readers x books (by ISBN), the rating.

    Parameters
    ----------
    path : path
        ``BX-Book-Ratings.csv``, or the folder or zip (``BX-CSV-Dump.zip``) in which it comes.
    kind : {"explicit", "implicit", "all"}
        Ratings from 1 to 10; or the records with the rating 0, which say only that a reader came
        across a book, each as 1; or all records, each as 1.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the last record counts.
    """
    kind = one_of("kind", kind, ("explicit", "implicit", "all"))  # pyright: ignore[reportAssignmentType]
    layouts = _BOOKS_LAYOUTS
    if kind != "explicit":
        keep = ("Book-Rating", "^0$" if kind == "implicit" else "^[0-9]+$")
        layouts = tuple(replace(layout, value=(), keep=keep) for layout in layouts)
    return read_table(path, _BOOKS, layouts, duplicates)
