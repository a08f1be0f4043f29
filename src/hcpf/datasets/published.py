"""The published data sets: their files, layouts and defaults.

Every reader takes the path of a file as published, compressed or not, or of the folder or archive
that holds it under its published name, and the argument ``duplicates``.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from hcpf.data.canonical import Duplicates
from hcpf.data.files.text import guess_delimiter
from hcpf.data.interactions import Interactions
from hcpf.datasets.layouts import (
    FoodsLayout,
    JsonLines,
    NetflixLayout,
    Row,
    TableLayout,
    WideLayout,
)
from hcpf.datasets.sources import PathLike, PublishedDataset
from hcpf.errors import InputError

_tabs = partial(TableLayout, header=False, delimiter="\t")

# -- ratings --------------------------------------------------------------------------------------

movielens = PublishedDataset(
    "MovieLens ratings: u.data (100K), ratings.dat (1M, 10M) or ratings.csv (20M and later), "
    "or the folder or zip that holds one of them",
    ("u.data", "ratings.dat", "ratings.csv"),
    (
        _tabs(r"\d+\t\d+\t[\d.]+\t\d+$", "f0", "f1", ("f2",)),
        # The delimiter is two colons: with one of them, every second column is empty.
        TableLayout(r"\d+::\d+::[\d.]+::\d+$", "f0", "f2", ("f4",), header=False, delimiter=":"),
        TableLayout(r"userId,movieId,rating\b", "userId", "movieId", ("rating",)),
    ),
    duplicates="error",
)
"""MovieLens: users x films, the stars.

Files: ``u.data`` of 100K, ``ratings.dat`` of 1M and 10M, ``ratings.csv`` of 20M and later. Stars
are from 1 to 5, in 10M and later also half stars; twice the stars suit a binomial element.
"""

netflix = PublishedDataset(
    "Netflix prize ratings: mv_*.txt or combined_data_*.txt, with the film's number and a "
    "colon in one line and user,rating,date in those that follow, or a folder or archive that "
    "holds them",
    ("mv_*.txt", "combined_data_*.txt"),
    (NetflixLayout(),),
    duplicates="error",
    many=True,
)
"""The Netflix prize: users x films, 1 to 5 stars.

Files: one ``mv_*.txt`` or ``combined_data_*.txt`` (as on Kaggle), or the folder or archive with all
of them, such as ``training_set.tar`` or ``nf_prize_dataset.tar.gz``.
"""

amazon_fine_foods = PublishedDataset(
    "Amazon fine foods: finefoods.txt with blocks of lines like 'product/productId: ...', or "
    "Reviews.csv with ProductId, UserId and Score",
    ("finefoods.txt", "Reviews.csv"),
    (
        FoodsLayout(),
        TableLayout(r"Id,ProductId,UserId,", "UserId", "ProductId", ("Score",), multiline=True),
    ),
    duplicates="last",
)
"""Amazon's fine food reviews: users x products, 1 to 5 stars.

Files: ``finefoods.txt`` as on SNAP, or ``Reviews.csv`` as on Kaggle.
"""


def _yelp_rows(review: dict[str, Any]) -> Iterator[Row]:
    yield str(review["user_id"]), str(review["business_id"]), float(review["stars"])


yelp = PublishedDataset(
    "Yelp reviews: one JSON object per line with user_id, business_id and stars",
    ("*review*.json",),
    (JsonLines(_yelp_rows),),
    duplicates="last",
)
"""Yelp's reviews: users x businesses, 1 to 5 stars.

Files: ``yelp_academic_dataset_review.json``, ``review.json``, or ``yelp_training_set_review.json``
of the RecSys challenge.
"""

_books = TableLayout(
    r'"?User-ID"?;"?ISBN"?;"?Book-Rating"?', "User-ID", "ISBN", ("Book-Rating",),
    delimiter=";", encoding="latin1", escape="\\",
)  # fmt: skip
_books_kaggle = replace(
    _books, first_line=_books.first_line.replace(";", ","), delimiter=",", encoding="utf8"
)
_books_layouts = {
    pattern: [replace(x, value=(), keep=("Book-Rating", pattern)) for x in (_books, _books_kaggle)]
    for pattern in ("^0$", "^[0-9]+$")
}

bookcrossing = PublishedDataset(
    "Book-Crossing ratings: BX-Book-Ratings.csv with User-ID, ISBN and Book-Rating, or the "
    "folder or zip that holds it",
    ("BX-Book-Ratings.csv", "Ratings.csv"),
    {
        "explicit": (_books, _books_kaggle),
        "implicit": _books_layouts["^0$"],
        "all": _books_layouts["^[0-9]+$"],
    },
    duplicates="last",
    option="kind",
)
"""Book-Crossing: readers x books (by ISBN), the rating.

File: ``BX-Book-Ratings.csv``, also in ``BX-CSV-Dump.zip``. ``kind`` is "explicit" (default),
ratings from 1 to 10; "implicit", the records with the rating 0, which mean only that a reader came
across a book, each as 1; or "all", all records, each as 1.
"""

# -- events ---------------------------------------------------------------------------------------


def _likes(field: str, record: dict[str, Any]) -> Iterator[Row]:
    by_user = "uid" in record
    owner = str(record["uid" if by_user else field])
    for like in record["likes"]:
        yield (owner, str(like[field]), 1.0) if by_user else (str(like["uid"]), owner, 1.0)


wordpress_likes = PublishedDataset(
    "WordPress likes: one JSON object per line, with uid and likes (trainUsers.json) or with "
    "blog, post_id and likes (trainPosts.json, trainPostsThin.json)",
    ("trainUsers.json",),
    {
        "blog": (JsonLines(partial(_likes, "blog")),),
        "post": (JsonLines(partial(_likes, "post_id")),),
    },
    duplicates="sum",
    option="item",
)
"""The GigaOM WordPress challenge: users x blogs, the number of likes.

Files: ``trainUsers.json``, or ``trainPosts.json`` or ``trainPostsThin.json`` (by their own path
only). ``item`` is "blog" (default) or "post".
"""

_tencent_log = _tabs(r"\d+\t\d+\t-?1\t\d+$", "f0", "f1")
_tencent_actions = _tabs(r"\d+\t\d+\t\d+\t\d+\t\d+$", "f0", "f1", ("f2", "f3", "f4"))

tencent = PublishedDataset(
    "KDD Cup 2012 track 1: rec_log_train.txt (user, item, result 1 or -1, time) or "
    "user_action.txt (user, other user, mentions, retweets, comments), separated by tabs",
    ("rec_log_train.txt",),
    {
        False: (replace(_tencent_log, keep=("f2", "^1$")), _tencent_actions),
        True: (_tencent_log, _tencent_actions),
    },
    duplicates="sum",
    option="rejected",
)
"""Tencent Weibo (KDD Cup 2012, track 1): users x accounts.

Files: ``rec_log_train.txt``, recommendations that a user accepted, each counting 1; or
``user_action.txt`` (by its own path only), the sum of mentions, retweets and comments. With
``rejected=True`` recommendations that were not accepted count as well. The sizes in the paper are
those of a table of actions: far more accounts than the few thousand of the log.
"""

echonest = PublishedDataset(
    "the Echo Nest taste profile: user, song and play count, separated by tabs",
    ("train_triplets.txt",),
    (_tabs(r"\w+\t\w+\t\d+$", "f0", "f1", ("f2",), quoted=False),),
    duplicates="sum",
)
"""The Echo Nest taste profile: users x songs, the number of plays.

File: ``train_triplets.txt``.
"""

bestbuy = PublishedDataset(
    "Best Buy clicks: train.csv with user, sku, category, query, click_time and query_time",
    ("train.csv",),
    (TableLayout(r'"?user"?,"?sku"?,', "user", "sku", multiline=True),),
    duplicates="sum",
)
"""Best Buy's clicks (ACM SF chapter hackathon): users x products, the number of clicks.

File: ``train.csv``.
"""

_hetrec = TableLayout(
    r"userID\tartistID\tweight", "userID", "artistID", ("weight",), delimiter="\t"
)
_lastfm_360k = _tabs(
    r"[0-9a-f]{40}\t[^\t]*\t[^\t]*\t *\d+$", "f0", "f2", ("f3",), quoted=False,
    keep=("f0", "^[0-9a-f]{40}$"),  # a few rows have a date instead of a user
)  # fmt: skip

lastfm = PublishedDataset(
    "Last.fm plays: user_artists.dat (HetRec 2011) with userID, artistID and weight, or "
    "usersha1-artmbid-artname-plays.tsv (360K)",
    ("user_artists.dat", "usersha1-artmbid-artname-plays.tsv"),
    {"name": (_hetrec, _lastfm_360k), "mbid": (_hetrec, replace(_lastfm_360k, item="f1"))},
    duplicates="sum",
    option="artist",
)
"""Last.fm: listeners x artists, the number of plays.

Files: ``user_artists.dat`` of HetRec 2011, or ``usersha1-artmbid-artname-plays.tsv`` of 360K.
``artist`` is the id of an artist in 360K: "name" (default), or "mbid", the MusicBrainz id; rows
without one are dropped. HetRec has numbers only.
"""

_steam = TableLayout(r"\d+,.+,(play|purchase),[\d.]+,\d+$", "f0", "f1", ("f3",), header=False)

steam = PublishedDataset(
    "Steam: steam-200k.csv with user, game, play or purchase, hours and 0, and no header",
    ("steam-200k.csv",),
    {name: (replace(_steam, keep=("f2", f"^{name}$")),) for name in ("play", "purchase")},
    duplicates="sum",
    option="behavior",
)
"""Steam (Kaggle): players x games, the hours played.

File: ``steam-200k.csv``. ``behavior`` is "play" (default), or "purchase": the games bought, each
counting 1.
"""

# -- gifts ----------------------------------------------------------------------------------------

_kdd_cup = TableLayout(
    r'"?donationid"?,', "donor_acctid", "projectid", ("donation_total",), multiline=True, money=True
)
_opendata = replace(
    _kdd_cup, first_line=r'"?_donationid"?,', user="_donor_acctid", item="_projectid", escape="\\"
)
_opendata_without_header = replace(
    _opendata, first_line=r'"?[0-9a-f]{32}"?,"?[0-9a-f]{32}"?,"?[0-9a-f]{32}"?,', header=False,
    user="f2", item="f1", value=("f11",),
)  # fmt: skip
_donorschoose_kaggle = replace(
    _kdd_cup, first_line=r'"?Project ID"?,', user="Donor ID", item="Project ID",
    value=("Donation Amount",),
)  # fmt: skip

donorschoose = PublishedDataset(
    "DonorsChoose donations: a table with _donor_acctid, _projectid and donation_total "
    "(opendata, with or without a header), donor_acctid, projectid and donation_total (KDD "
    "Cup 2014) or Donor ID, Project ID and Donation Amount (Kaggle)",
    ("*donations*.csv", "opendata_donations*"),
    (_kdd_cup, _opendata, _opendata_without_header, _donorschoose_kaggle),
    duplicates="sum",
)
"""DonorsChoose: donors x projects, the dollars given.

Files: ``opendata_donations.csv``, ``opendata_donations000.gz``, ``donations.csv`` of KDD Cup 2014,
or ``Donations.csv`` of Kaggle.
"""

_donations = PublishedDataset(
    "a table with a donor, a recipient and an amount in each row and the columns' names in the "
    "first line",
    ("*donation*.csv", "*contribution*.csv"),
    (),  # the columns decide, see below
    duplicates="sum",
)
_DONATION_WORDS = {
    "donor": ("donor", "contributor", "giver", "user", "from"),
    "recipient": ("recipient", "candidate", "committee", "receiver", "party", "project", "to"),
    "amount": ("amount", "total", "value", "gift", "sum"),
}


def donations(
    path: PathLike,
    *,
    donor: str | None = None,
    recipient: str | None = None,
    amount: str | None = None,
    duplicates: Duplicates = "sum",
) -> Interactions:
    r"""Read a table of gifts: donors x recipients, the money given.

    Parameters
    ----------
    path : path
        A CSV file with the columns' names in its first line, separated by commas, semicolons, tabs
        or bars, compressed or not. Amounts may be written like $1,234.50. Rows without a donor or
        a recipient, or with an amount of 0 or less, are dropped.
    donor, recipient, amount : str, optional
        Names of the columns; by default those with a word such as "donor", "recipient", "amount".
    duplicates : {"error", "sum", "mean", "last"}, default "sum"
        How to merge several rows of a pair.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "gifts.csv"
    ...     _ = path.write_text('Donor,Recipient,Amount\nAnn,Zoo,"$1,200"\nAnn,Zoo,$50.50\n')
    ...     donations(path).values.tolist()
    [1250.5]
    """
    given = {"donor": donor, "recipient": recipient, "amount": amount}
    return _donations.read(path, duplicates, partial(_donation_layout, given))


def _donation_layout(given: dict[str, str | None], line: str) -> TableLayout:
    delimiter = guess_delimiter(line)
    names = next(csv.reader([line], delimiter=delimiter), [])
    columns = [_donation_column(role, column, names) for role, column in given.items()]
    if len(set(columns)) < len(columns):
        raise InputError(f"donor, recipient and amount must be different columns, got {columns}")
    return TableLayout(
        "", columns[0], columns[1], (columns[2],), delimiter=delimiter, multiline=True, money=True
    )


def _donation_column(role: str, column: str | None, names: list[str]) -> str:
    """Return the given column, or the first whose name contains a word for the role."""
    if column is not None:
        if column not in names:
            raise InputError(f"{role}={column!r} is not a column; the columns are {names}")
        return column
    for word in _DONATION_WORDS[role]:
        for name in names:
            if word in name.lower().replace("_", " ").replace("-", " ").split():
                return name
    raise InputError(f"no column is named like the {role}. Pass {role}= with one of {names}")


# -- wide tables ----------------------------------------------------------------------------------

merck = PublishedDataset(
    "the Merck challenge: ACT*_training.csv with MOLECULE, Act and the descriptors D_...",
    ("ACT*_training.csv",),
    (WideLayout(",", ("MOLECULE", "Act")),),
    duplicates="error",
    many=True,
)
"""The Merck molecular activity challenge: molecules x descriptors, how often they occur.

Files: one ``ACT*_training.csv``, or a folder or an archive (``TrainingSet.zip``) of which all are
read. Descriptors that a file does not have are missing for its molecules. The measured activity
(``Act``) is not read.
"""

geuvadis = PublishedDataset(
    "Geuvadis expression: a table separated by tabs with TargetID, Gene_Symbol, Chr, Coord and "
    "the samples, such as GD462.GeneQuantRPKM.50FN.samplename.resk10.txt.gz",
    ("GD*.txt",),
    (WideLayout("\t", ("TargetID", "Gene_Symbol", "Chr", "Coord")),),
    duplicates="error",
)
"""Geuvadis: genes x people, the expression.

Files such as ``GD462.GeneQuantRPKM.50FN.samplename.resk10.txt.gz`` or ``GD660.GeneQuantRPKM.txt``.
Zeros are missing. Tables with ``resk10`` in their names are corrected for hidden factors and have
negative values too.
"""
