"""Readers of JSON lines (Yelp, WordPress) and of blocks of lines (Amazon fine foods, Netflix)."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv

from hcpf._checks import one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.columns import TripleBuilder
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Source, Stream, first_line
from hcpf.datasets.tables import TableLayout, add_table, choose_layout, read_triples
from hcpf.errors import InputError

Row = tuple[str, str, float]

_BATCH_ROWS = 1 << 17  # added at once
_CHUNK_BYTES = 1 << 24  # read at once

_YELP = Source(
    "Yelp reviews: one JSON object per line with user_id, business_id and stars",
    ("*review*.json",),
)
_WORDPRESS = Source(
    "WordPress likes: one JSON object per line, with uid and likes (trainUsers.json) or with blog, "
    "post_id and likes (trainPosts.json, trainPostsThin.json)",
    ("trainUsers.json",),
)
_FOODS = Source(
    "Amazon fine foods: finefoods.txt with blocks of lines like 'product/productId: ...', or "
    "Reviews.csv with ProductId, UserId and Score",
    ("finefoods.txt", "Reviews.csv"),
)
_FOODS_CSV = TableLayout(r"Id,ProductId,UserId,", "UserId", "ProductId", ("Score",), multiline=True)
_FOODS_FIELDS = {b"product/productId": "item", b"review/userId": "user", b"review/score": "value"}
_NETFLIX = Source(
    "Netflix prize ratings: mv_*.txt or combined_data_*.txt, with the film's number and a colon in "
    "one line and user,rating,date in those that follow, or a folder or archive that holds them",
    ("mv_*.txt", "combined_data_*.txt"),
    many=True,
)
_NETFLIX_FILM = re.compile(rb"^(\d+):[ \t\r]*$", re.MULTILINE)


def yelp(path: PathLike, *, duplicates: Duplicates = "last") -> Interactions:
    """Read Yelp's reviews: users x businesses, 1 to 5 stars.

    Parameters
    ----------
    path : path
        ``yelp_academic_dataset_review.json`` (or ``review.json``, or the RecSys challenge's
        ``yelp_training_set_review.json``), packed or not, or the folder or archive that holds it.
        Of every line ``user_id``, ``business_id`` and ``stars`` are read.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the last review counts.
    """

    def rows(review: dict[str, Any]) -> Iterator[Row]:
        yield str(review["user_id"]), str(review["business_id"]), float(review["stars"])

    return _read_json_lines(path, _YELP, duplicates, rows)


def wordpress_likes(
    path: PathLike, *, item: Literal["blog", "post"] = "blog", duplicates: Duplicates = "sum"
) -> Interactions:
    """Read the likes of the GigaOM WordPress challenge: users x blogs, the number of likes.

    Parameters
    ----------
    path : path
        ``trainUsers.json``, of whose lines ``uid`` and, in each of ``likes``, ``blog`` and
        ``post_id`` are read; or ``trainPosts.json`` or ``trainPostsThin.json``, of whose lines
        ``blog``, ``post_id`` and, in each of ``likes``, ``uid`` are read. From a folder or an
        archive ``trainUsers.json`` is taken.
    item : {"blog", "post"}
        What the columns are.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the number of likes.
    """
    field = "blog" if one_of("item", item, ("blog", "post")) == "blog" else "post_id"

    def rows(record: dict[str, Any]) -> Iterator[Row]:
        by_user = "uid" in record
        owner = str(record["uid" if by_user else field])
        for like in record["likes"]:
            yield (owner, str(like[field]), 1.0) if by_user else (str(like["uid"]), owner, 1.0)

    return _read_json_lines(path, _WORDPRESS, duplicates, rows)


def amazon_fine_foods(path: PathLike, *, duplicates: Duplicates = "last") -> Interactions:
    """Read Amazon's fine food reviews: users x products, 1 to 5 stars.

    Parameters
    ----------
    path : path
        ``finefoods.txt`` as on SNAP, packed or not, or ``Reviews.csv`` as on Kaggle, also in its
        zip.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the last review counts.
    """

    def add(builder: TripleBuilder, stream: Stream) -> None:
        line = first_line(stream)
        if line.startswith("product/productId:"):
            _add_rows(builder, _foods_rows(stream))
        else:
            add_table(builder, stream, choose_layout(line, [_FOODS_CSV]))

    return read_triples(path, _FOODS, duplicates, add)


def netflix(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    """Read the Netflix prize: users x films, 1 to 5 stars.

    Parameters
    ----------
    path : path
        One ``mv_*.txt`` or ``combined_data_*.txt`` (as on Kaggle), or the folder or archive with
        all of them: ``training_set``, ``training_set.tar``, ``nf_prize_dataset.tar.gz``.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair. The published data have none.
    """

    def add(builder: TripleBuilder, stream: Stream) -> None:
        film: int | None = None
        for lines in _chunks_of_lines(stream):
            film = _add_netflix(builder, lines, film)

    return read_triples(path, _NETFLIX, duplicates, add)


def _read_json_lines(
    path: PathLike,
    source: Source,
    duplicates: Duplicates,
    rows_of: Callable[[dict[str, Any]], Iterator[Row]],
) -> Interactions:
    def rows(lines: Iterable[bytes]) -> Iterator[Row]:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise InputError(f"line {number} is not JSON ({error})") from None
            if not isinstance(record, dict):
                raise InputError(f"line {number} is not a JSON object")
            try:
                yield from rows_of(record)
            except (KeyError, TypeError, ValueError) as error:
                raise _wrong_record(number, error) from None

    return read_triples(
        path, source, duplicates, lambda builder, stream: _add_rows(builder, rows(stream))
    )


def _add_rows(builder: TripleBuilder, rows: Iterator[Row]) -> None:
    while batch := list(islice(rows, _BATCH_ROWS)):
        users, items, values = zip(*batch, strict=True)
        builder.add(pa.array(users, pa.string()), pa.array(items, pa.string()), pa.array(values))


def _foods_rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """Yield a row per block, which begins with the product; other lines are ignored."""
    block: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, colon, content = line.partition(b":")
        role = _FOODS_FIELDS.get(name) if colon else None
        if role is None:
            continue
        if role in block or (role != "item" and "item" not in block):
            raise InputError(f"line {number}: {name.decode()} is not where a block has it")
        block[role] = content.decode("latin-1").strip()
        if len(block) == len(_FOODS_FIELDS):
            try:
                yield block["user"], block["item"], float(block["value"])
            except ValueError as error:
                raise _wrong_record(number, error) from None
            block = {}
    if block:
        absent = [role for role in ("user", "item", "value") if role not in block]
        raise InputError(f"the last block has no {' and no '.join(absent)}")


def _wrong_record(number: int, error: Exception) -> InputError:
    what = f"has no {error}" if isinstance(error, KeyError) else f"is not as expected ({error})"
    return InputError(f"line {number} {what}")


def _chunks_of_lines(stream: Stream) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(_CHUNK_BYTES):
        lines, newline, rest = (rest + chunk).rpartition(b"\n")
        yield lines + newline
    yield rest


def _add_netflix(builder: TripleBuilder, lines: bytes, film: int | None) -> int | None:
    """Add lines that begin with ratings of ``film``; return the film of the last ones."""
    before, *after = _NETFLIX_FILM.split(lines)
    films = [film, *(int(number) for number in after[::2])]
    blocks = [block.strip() for block in (before, *after[1::2])]
    if films[0] is None and blocks[0]:
        start = blocks[0][:40].decode("latin-1").splitlines()[0]
        raise InputError(f"there is {start!r} before the first film")
    counts = [block.count(b"\n") + 1 if block else 0 for block in blocks]
    if sum(counts) == 0:
        return films[-1]
    table = csv.read_csv(
        pa.BufferReader(b"\n".join(block for block in blocks if block)),
        read_options=csv.ReadOptions(column_names=["user", "rating", "date"]),
        parse_options=csv.ParseOptions(ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types={"user": pa.int64(), "rating": pa.float64()},
            include_columns=["user", "rating"],
        ),
    )
    film_of_row = np.repeat(np.array([number or 0 for number in films], np.int64), counts)
    users, stars = (table[name].combine_chunks() for name in ("user", "rating"))
    builder.add(users, pa.array(film_of_row), stars)
    return films[-1]
