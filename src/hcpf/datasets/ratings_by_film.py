"""The Netflix prize: ratings listed film by film."""

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import csv

from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Stream, Wanted
from hcpf.datasets.tables import Gathering, gather
from hcpf.errors import InputError

_NETFLIX = Wanted(
    "Netflix prize ratings: mv_*.txt or combined_data_*.txt, with the film's number and a colon in "
    "one line and user,rating,date in those that follow, or a folder or archive that holds them",
    ("mv_*.txt", "combined_data_*.txt"),
    many=True,
)
_CHUNK = 1 << 24  # bytes read at once
_FILM = re.compile(rb"^(\d+):[ \t\r]*$", re.MULTILINE)


def netflix(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    """Read the Netflix prize: users x films, 1 to 5 stars.

    Parameters
    ----------
    path : path
        One ``mv_*.txt`` or ``combined_data_*.txt`` (as on Kaggle), or the folder or archive with
        all of them: ``training_set``, ``training_set.tar``, ``nf_prize_dataset.tar.gz``.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is rated more than once. The published data have none.
    """
    return gather(path, _NETFLIX, duplicates, _add_file)


def _add_file(gathering: Gathering, stream: Stream) -> None:
    film: int | None = None
    for lines in _chunks(stream):
        film = _add_lines(gathering, lines, film)


def _chunks(stream: Stream) -> Iterator[bytes]:
    """The content in pieces of whole lines."""
    rest = b""
    while piece := stream.read(_CHUNK):
        lines, newline, rest = (rest + piece).rpartition(b"\n")
        yield lines + newline
    yield rest


def _add_lines(gathering: Gathering, lines: bytes, film: int | None) -> int | None:
    """Read lines that begin with ratings of ``film``; return the film of the last ones."""
    before, *parts = _FILM.split(lines)
    films = [film, *(int(number) for number in parts[::2])]
    bodies = [body.strip() for body in (before, *parts[1::2])]
    if films[0] is None and bodies[0]:
        start = bodies[0][:40].decode("latin-1").splitlines()[0]
        raise InputError(f"there is {start!r} before the first film")
    counts = [body.count(b"\n") + 1 if body else 0 for body in bodies]
    if sum(counts) == 0:
        return films[-1]
    text = b"\n".join(body for body in bodies if body)
    table = csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(column_names=["user", "rating", "date"]),
        parse_options=csv.ParseOptions(ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types={"user": pa.int64(), "rating": pa.float64()},
            include_columns=["user", "rating"],
        ),
    )
    of_row = np.repeat(np.array([number or 0 for number in films], np.int64), counts)
    users, stars = (table[name].combine_chunks() for name in ("user", "rating"))
    gathering.add(users, pa.array(of_row), stars)
    return films[-1]
