"""What people did, in delimited text: follows, plays, clicks and hours."""

from dataclasses import replace
from typing import Literal

from hcpf._checks import flag, one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Wanted
from hcpf.datasets.tables import Layout, read_table

_TENCENT = Wanted(
    "KDD Cup 2012 track 1: rec_log_train.txt (user, item, result 1 or -1, time) or user_action.txt "
    "(user, other user, mentions, retweets, comments), separated by tabs",
    ("rec_log_train.txt",),
)
_TENCENT_LOG = Layout(
    r"\d+\t\d+\t-?1\t\d+$", "f0", "f1", header=False, delimiter="\t", keep=("f2", "^1$")
)
_TENCENT_ACTIONS = Layout(
    r"\d+\t\d+\t\d+\t\d+\t\d+$", "f0", "f1", ("f2", "f3", "f4"), header=False, delimiter="\t"
)

_ECHONEST = Wanted(
    "the Echo Nest taste profile: user, song and play count, separated by tabs",
    ("train_triplets.txt",),
)
_ECHONEST_LAYOUT = Layout(
    r"\w+\t\w+\t\d+$", "f0", "f1", ("f2",), header=False, delimiter="\t", quoted=False
)

_BESTBUY = Wanted(
    "Best Buy clicks: train.csv with user, sku, category, query, click_time and query_time",
    ("train.csv",),
)
_BESTBUY_LAYOUT = Layout(r'"?user"?,"?sku"?,', "user", "sku", multiline=True)

_LASTFM = Wanted(
    "Last.fm plays: user_artists.dat (HetRec 2011) with userID, artistID and weight, or "
    "usersha1-artmbid-artname-plays.tsv (360K)",
    ("user_artists.dat", "usersha1-artmbid-artname-plays.tsv"),
)
_LASTFM_HETREC = Layout(
    r"userID\tartistID\tweight", "userID", "artistID", ("weight",), delimiter="\t"
)
_LASTFM_360K = Layout(
    r"[0-9a-f]{40}\t[^\t]*\t[^\t]*\t *\d+$", "f0", "f2", ("f3",), header=False, delimiter="\t",
    quoted=False, keep=("f0", "^[0-9a-f]{40}$"),  # a few rows have a date for a user
)  # fmt: skip

_STEAM = Wanted(
    "Steam: steam-200k.csv with user, game, play or purchase, hours and 0, and no header",
    ("steam-200k.csv",),
)
_STEAM_LAYOUT = Layout(
    r"\d+,.+,(play|purchase),[\d.]+,\d+$", "f0", "f1", ("f3",), header=False, keep=("f2", "^play$")
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
        What to do with a pair that is there more than once; by default the sum.
    """
    log = replace(_TENCENT_LOG, keep=None) if flag("rejected", rejected) else _TENCENT_LOG
    return read_table(path, _TENCENT, (log, _TENCENT_ACTIONS), duplicates)


def echonest(path: PathLike, *, duplicates: Duplicates = "sum") -> Interactions:
    """Read the Echo Nest taste profile: users x songs, the number of plays.

    Parameters
    ----------
    path : path
        ``train_triplets.txt``, or its zip.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the sum of the plays.
    """
    return read_table(path, _ECHONEST, (_ECHONEST_LAYOUT,), duplicates)


def bestbuy(path: PathLike, *, duplicates: Duplicates = "sum") -> Interactions:
    """Read Best Buy's clicks (ACM SF chapter hackathon): users x products, the number of clicks.

    Parameters
    ----------
    path : path
        ``train.csv``, or the folder or zip that holds it.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the number of clicks.
    """
    return read_table(path, _BESTBUY, (_BESTBUY_LAYOUT,), duplicates)


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
        What to do with a pair that is there more than once; by default the sum of the plays.
    """
    column = "f2" if one_of("artist", artist, ("name", "mbid")) == "name" else "f1"
    layouts = (_LASTFM_HETREC, replace(_LASTFM_360K, item=column))
    return read_table(path, _LASTFM, layouts, duplicates)


def steam(
    path: PathLike,
    *,
    behaviour: Literal["play", "purchase"] = "play",
    duplicates: Duplicates = "sum",
) -> Interactions:
    """Read Steam (``steam-200k.csv`` on Kaggle): players x games, the hours played.

    Parameters
    ----------
    path : path
        ``steam-200k.csv``, or the folder or zip that holds it.
    behaviour : {"play", "purchase"}
        The hours played; or the games bought, each counting 1.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the sum.
    """
    behaviour = one_of("behaviour", behaviour, ("play", "purchase"))  # pyright: ignore[reportAssignmentType]
    layout = replace(_STEAM_LAYOUT, keep=("f2", f"^{behaviour}$"))
    return read_table(path, _STEAM, (layout,), duplicates)
