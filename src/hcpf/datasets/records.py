"""Files of records: JSON lines (Yelp, WordPress) and blocks of fields (Amazon fine foods)."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Literal

import pyarrow as pa

from hcpf._checks import one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Stream, Wanted, first_line
from hcpf.datasets.tables import Gathering, Layout, add_table, choose_layout, gather
from hcpf.errors import InputError

Row = tuple[str, str, float]

_ROWS = 1 << 17  # gathered at once

_YELP = Wanted(
    "Yelp reviews: one JSON object per line with user_id, business_id and stars",
    ("*review*.json",),
)
_WORDPRESS = Wanted(
    "WordPress likes: one JSON object per line, with uid and likes (trainUsers.json) or with blog, "
    "post_id and likes (trainPosts.json, trainPostsThin.json)",
    ("trainUsers.json",),
)
_FOODS = Wanted(
    "Amazon fine foods: finefoods.txt with blocks of lines like 'product/productId: ...', or "
    "Reviews.csv with ProductId, UserId and Score",
    ("finefoods.txt", "Reviews.csv"),
)
_FOODS_CSV = Layout(r"Id,ProductId,UserId,", "UserId", "ProductId", ("Score",), multiline=True)


def yelp(path: PathLike, *, duplicates: Duplicates = "last") -> Interactions:
    """Read Yelp's reviews: users x businesses, 1 to 5 stars.

    Parameters
    ----------
    path : path
        ``yelp_academic_dataset_review.json`` (or ``review.json``, or the RecSys challenge's
        ``yelp_training_set_review.json``), packed or not, or the folder or archive that holds it.
        Of every line ``user_id``, ``business_id`` and ``stars`` are read.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the last review counts.
    """

    def add(gathering: Gathering, stream: Stream) -> None:
        _add_rows(gathering, _yelp_rows(stream))

    return gather(path, _YELP, duplicates, add)


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
        What to do with a pair that is there more than once; by default the number of likes.
    """
    field = "blog" if one_of("item", item, ("blog", "post")) == "blog" else "post_id"

    def add(gathering: Gathering, stream: Stream) -> None:
        _add_rows(gathering, _wordpress_rows(stream, field))

    return gather(path, _WORDPRESS, duplicates, add)


def amazon_fine_foods(path: PathLike, *, duplicates: Duplicates = "last") -> Interactions:
    """Read Amazon's fine food reviews: users x products, 1 to 5 stars.

    Parameters
    ----------
    path : path
        ``finefoods.txt`` as on SNAP, packed or not, or ``Reviews.csv`` as on Kaggle, also in its
        zip.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the last review counts.
    """

    def add(gathering: Gathering, stream: Stream) -> None:
        line = first_line(stream)
        if line.startswith("product/productId:"):
            _add_rows(gathering, _foods_rows(stream))
        else:
            add_table(gathering, stream, choose_layout(line, [_FOODS_CSV]))

    return gather(path, _FOODS, duplicates, add)


def _add_rows(gathering: Gathering, rows: Iterator[Row]) -> None:
    while some := list(islice(rows, _ROWS)):
        users, items, values = zip(*some, strict=True)
        gathering.add(pa.array(users, pa.string()), pa.array(items, pa.string()), pa.array(values))


def _objects(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of the lines that are not empty, and the numbers of the lines."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise InputError(f"line {number} is not JSON ({error})") from None
        if not isinstance(found, dict):
            raise InputError(f"line {number} is not a JSON object")
        yield number, found


def _yelp_rows(lines: Iterable[bytes]) -> Iterator[Row]:
    for number, review in _objects(lines):
        try:
            yield str(review["user_id"]), str(review["business_id"]), float(review["stars"])
        except (KeyError, TypeError, ValueError) as error:
            raise _wrong_record(number, error) from None


def _wordpress_rows(lines: Iterable[bytes], field: str) -> Iterator[Row]:
    for number, record in _objects(lines):
        try:
            if "uid" in record:
                user = str(record["uid"])
                for like in record["likes"]:
                    yield user, str(like[field]), 1.0
            else:
                item = str(record[field])
                for like in record["likes"]:
                    yield str(like["uid"]), item, 1.0
        except (KeyError, TypeError) as error:
            raise _wrong_record(number, error) from None


def _foods_rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """A block begins with the product; lines of other fields and of long texts are passed over."""
    fields = {b"product/productId": "item", b"review/userId": "user", b"review/score": "value"}
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, colon, content = line.partition(b":")
        role = fields.get(name) if colon else None
        if role is None:
            continue
        if role in found or (role != "item" and "item" not in found):
            raise InputError(f"line {number}: {name.decode()} is not where a block has it")
        found[role] = content.decode("latin-1").strip()
        if len(found) == len(fields):
            try:
                yield found["user"], found["item"], float(found["value"])
            except ValueError as error:
                raise _wrong_record(number, error) from None
            found = {}
    if found:
        raise InputError(f"the last block has no {' and no '.join({*fields.values()} - {*found})}")


def _wrong_record(number: int, error: Exception) -> InputError:
    what = f"has no {error}" if isinstance(error, KeyError) else f"is not as expected ({error})"
    return InputError(f"line {number} {what}")
