"""Readers of data sets that are published as delimited text.

Each is declared by the files it is found in and their layouts.
"""

import csv
from dataclasses import replace
from typing import Literal

from hcpf._checks import flag, one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.columns import TripleBuilder
from hcpf.data.detect import guess_delimiter
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Source, Stream, first_line
from hcpf.datasets.tables import TableLayout, add_table, read_table, read_triples
from hcpf.errors import InputError

# -- ratings --------------------------------------------------------------------------------------

_MOVIELENS = Source(
    "MovieLens ratings: u.data (100K), ratings.dat (1M, 10M) or ratings.csv (20M and later), or "
    "the folder or zip that holds one of them",
    ("u.data", "ratings.dat", "ratings.csv"),
)
_MOVIELENS_LAYOUTS = (
    TableLayout(r"\d+\t\d+\t[\d.]+\t\d+$", "f0", "f1", ("f2",), header=False, delimiter="\t"),
    # The delimiter is two colons: with one of them, every second column is empty.
    TableLayout(r"\d+::\d+::[\d.]+::\d+$", "f0", "f2", ("f4",), header=False, delimiter=":"),
    TableLayout(r"userId,movieId,rating\b", "userId", "movieId", ("rating",)),
)


def movielens(path: PathLike, *, duplicates: Duplicates = "error") -> Interactions:
    r"""Read MovieLens: users x films, the stars.

    Parameters
    ----------
    path : path
        ``u.data`` of 100K, ``ratings.dat`` of 1M and 10M, ``ratings.csv`` of 20M, 25M, 32M and
        latest, or the folder or zip in which they come.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair. MovieLens has none.

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


_BOOKS = Source(
    "Book-Crossing ratings: BX-Book-Ratings.csv with User-ID, ISBN and Book-Rating, or the folder "
    "or zip that holds it",
    ("BX-Book-Ratings.csv", "Ratings.csv"),
)
_BOOKS_DUMP = TableLayout(
    r'"?User-ID"?;"?ISBN"?;"?Book-Rating"?', "User-ID", "ISBN", ("Book-Rating",),
    delimiter=";", encoding="latin1", escape="\\",
)  # fmt: skip
_BOOKS_KAGGLE = replace(
    _BOOKS_DUMP, first_line=_BOOKS_DUMP.first_line.replace(";", ","), delimiter=",", encoding="utf8"
)
_BOOKS_KEPT = {"implicit": "^0$", "all": "^[0-9]+$"}


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
        How to merge several rows of a pair; by default the last record counts.
    """
    layouts = (_BOOKS_DUMP, _BOOKS_KAGGLE)
    if one_of("kind", kind, ("explicit", "implicit", "all")) != "explicit":
        keep = ("Book-Rating", _BOOKS_KEPT[kind])
        layouts = tuple(replace(layout, value=(), keep=keep) for layout in layouts)
    return read_table(path, _BOOKS, layouts, duplicates)


# -- events ---------------------------------------------------------------------------------------

_TENCENT = Source(
    "KDD Cup 2012 track 1: rec_log_train.txt (user, item, result 1 or -1, time) or user_action.txt "
    "(user, other user, mentions, retweets, comments), separated by tabs",
    ("rec_log_train.txt",),
)
_TENCENT_LOG = TableLayout(
    r"\d+\t\d+\t-?1\t\d+$", "f0", "f1", header=False, delimiter="\t", keep=("f2", "^1$")
)
_TENCENT_ACTIONS = TableLayout(
    r"\d+\t\d+\t\d+\t\d+\t\d+$", "f0", "f1", ("f2", "f3", "f4"), header=False, delimiter="\t"
)


def tencent(
    path: PathLike, *, rejected: bool = False, duplicates: Duplicates = "sum"
) -> Interactions:
    """Read Tencent Weibo (KDD Cup 2012, track 1): users x accounts.

    Parameters
    ----------
    path : path
        ``rec_log_train.txt``, recommendations that a user accepted or not, each counting 1; or
        ``user_action.txt``, with the number of mentions, retweets and comments added up. From a
        folder or a zip ``rec_log_train.txt`` is taken. The sizes that the paper gives are those of
        a table of actions: far more accounts than the log's few thousand.
    rejected : bool
        Whether recommendations that were not accepted count as well.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the sum.
    """
    log = replace(_TENCENT_LOG, keep=None) if flag("rejected", rejected) else _TENCENT_LOG
    return read_table(path, _TENCENT, (log, _TENCENT_ACTIONS), duplicates)


_ECHONEST = Source(
    "the Echo Nest taste profile: user, song and play count, separated by tabs",
    ("train_triplets.txt",),
)
_ECHONEST_LAYOUT = TableLayout(
    r"\w+\t\w+\t\d+$", "f0", "f1", ("f2",), header=False, delimiter="\t", quoted=False
)


def echonest(path: PathLike, *, duplicates: Duplicates = "sum") -> Interactions:
    """Read the Echo Nest taste profile: users x songs, the number of plays.

    Parameters
    ----------
    path : path
        ``train_triplets.txt``, or its zip.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the sum of the plays.
    """
    return read_table(path, _ECHONEST, (_ECHONEST_LAYOUT,), duplicates)


_BESTBUY = Source(
    "Best Buy clicks: train.csv with user, sku, category, query, click_time and query_time",
    ("train.csv",),
)
_BESTBUY_LAYOUT = TableLayout(r'"?user"?,"?sku"?,', "user", "sku", multiline=True)


def bestbuy(path: PathLike, *, duplicates: Duplicates = "sum") -> Interactions:
    """Read Best Buy's clicks (ACM SF chapter hackathon): users x products, the number of clicks.

    Parameters
    ----------
    path : path
        ``train.csv``, or the folder or zip that holds it.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the number of clicks.
    """
    return read_table(path, _BESTBUY, (_BESTBUY_LAYOUT,), duplicates)


_LASTFM = Source(
    "Last.fm plays: user_artists.dat (HetRec 2011) with userID, artistID and weight, or "
    "usersha1-artmbid-artname-plays.tsv (360K)",
    ("user_artists.dat", "usersha1-artmbid-artname-plays.tsv"),
)
_LASTFM_HETREC = TableLayout(
    r"userID\tartistID\tweight", "userID", "artistID", ("weight",), delimiter="\t"
)
_LASTFM_360K = TableLayout(
    r"[0-9a-f]{40}\t[^\t]*\t[^\t]*\t *\d+$", "f0", "f2", ("f3",), header=False, delimiter="\t",
    quoted=False, keep=("f0", "^[0-9a-f]{40}$"),  # a few rows have a date for a user
)  # fmt: skip


def lastfm(
    path: PathLike, *, artist: Literal["name", "mbid"] = "name", duplicates: Duplicates = "sum"
) -> Interactions:
    """Read Last.fm: listeners x artists, the number of plays.

    Parameters
    ----------
    path : path
        ``user_artists.dat`` of HetRec 2011, ``usersha1-artmbid-artname-plays.tsv`` of 360K, or the
        folder or archive that holds one of them.
    artist : {"name", "mbid"}
        What stands for an artist in 360K: the name, or the MusicBrainz id, which some rows lack
        and which are then left out. HetRec has numbers, for which this makes no difference.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the sum of the plays.
    """
    column = "f2" if one_of("artist", artist, ("name", "mbid")) == "name" else "f1"
    layouts = (_LASTFM_HETREC, replace(_LASTFM_360K, item=column))
    return read_table(path, _LASTFM, layouts, duplicates)


_STEAM = Source(
    "Steam: steam-200k.csv with user, game, play or purchase, hours and 0, and no header",
    ("steam-200k.csv",),
)
_STEAM_LAYOUT = TableLayout(
    r"\d+,.+,(play|purchase),[\d.]+,\d+$", "f0", "f1", ("f3",), header=False
)


def steam(
    path: PathLike,
    *,
    behavior: Literal["play", "purchase"] = "play",
    duplicates: Duplicates = "sum",
) -> Interactions:
    """Read Steam (``steam-200k.csv`` on Kaggle): players x games, the hours played.

    Parameters
    ----------
    path : path
        ``steam-200k.csv``, or the folder or zip that holds it.
    behavior : {"play", "purchase"}
        The hours played; or the games bought, each counting 1.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the sum.
    """
    keep = ("f2", f"^{one_of('behavior', behavior, ('play', 'purchase'))}$")
    return read_table(path, _STEAM, (replace(_STEAM_LAYOUT, keep=keep),), duplicates)


# -- gifts ----------------------------------------------------------------------------------------

_DONORSCHOOSE = Source(
    "DonorsChoose donations: a table with _donor_acctid, _projectid and donation_total "
    "(opendata, with or without a header), donor_acctid, projectid and donation_total (KDD Cup "
    "2014) or Donor ID, Project ID and Donation Amount (Kaggle)",
    ("*donations*.csv", "opendata_donations*"),
)
_KDD_CUP = TableLayout(
    r'"?donationid"?,', "donor_acctid", "projectid", ("donation_total",), multiline=True, money=True
)
_OPENDATA = replace(
    _KDD_CUP, first_line=r'"?_donationid"?,', user="_donor_acctid", item="_projectid", escape="\\"
)
_DONORSCHOOSE_LAYOUTS = (
    _KDD_CUP,
    _OPENDATA,
    replace(
        _OPENDATA, first_line=r'"?[0-9a-f]{32}"?,"?[0-9a-f]{32}"?,"?[0-9a-f]{32}"?,', header=False,
        user="f2", item="f1", value=("f11",),
    ),
    replace(
        _KDD_CUP, first_line=r'"?Project ID"?,', user="Donor ID", item="Project ID",
        value=("Donation Amount",),
    ),
)  # fmt: skip


def donorschoose(path: PathLike, *, duplicates: Duplicates = "sum") -> Interactions:
    """Read DonorsChoose: donors x projects, the dollars given.

    Parameters
    ----------
    path : path
        ``opendata_donations.csv``, ``opendata_donations000.gz``, the ``donations.csv`` of KDD Cup
        2014, Kaggle's ``Donations.csv``, or the folder or zip that holds one of them. Rows with
        an amount of 0 or less are left out.
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the sum.
    """
    return read_table(path, _DONORSCHOOSE, _DONORSCHOOSE_LAYOUTS, duplicates)


_DONATIONS = Source(
    "a table with a donor, a recipient and an amount in each row and the columns' names in the "
    "first line",
    ("*donation*.csv", "*contribution*.csv"),
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
        or bars, packed or not. Amounts may be written like $1,234.50. Rows without a donor or a
        recipient, or with an amount of 0 or less, are left out.
    donor, recipient, amount : str, optional
        The columns' names; by default those with a word such as "donor", "recipient", "amount".
    duplicates : {"error", "sum", "mean", "last"}
        How to merge several rows of a pair; by default the sum.

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

    def add(builder: TripleBuilder, stream: Stream) -> None:
        add_table(builder, stream, _donation_layout(first_line(stream), given))

    return read_triples(path, _DONATIONS, duplicates, add)


def _donation_layout(line: str, given: dict[str, str | None]) -> TableLayout:
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
            raise InputError(f"{role}={column!r}: the columns are {names}")
        return column
    for word in _DONATION_WORDS[role]:
        for name in names:
            if word in name.lower().replace("_", " ").replace("-", " ").split():
                return name
    raise InputError(f"no column sounds like the {role}: name one of {names}")
