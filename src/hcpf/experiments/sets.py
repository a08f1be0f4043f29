"""The data sets of the paper's tables, and public sets of the same kind."""

from pathlib import Path

import numpy as np

from hcpf.data.interactions import Interactions
from hcpf.errors import InputError

STAND_INS: dict[str, tuple[str, ...]] = {
    "amazon": ("bookcrossing_explicit",),
    "movielens": ("ml100k", "ml_latest_small_x2", "ml1m", "anime_30pct"),
    "netflix": ("netflix_1200",),
    "yelp": ("yelp_250k",),
    "wordpress": ("lastfm_artist_tags",),
    "tencent": ("lastfm_user_tags", "online_retail_quantity"),
    "echonest": ("echonest_43k", "online_retail_invoices"),
    "bestbuy": ("completejourney_baskets", "msweb", "gowalla_binary"),
    "merck": ("hiv_atompairs",),
    "donation": ("qld_donations",),
    "dchoose": ("completejourney_spend", "online_retail_spend", "steam_hours"),
    "geuvadis": ("geuvadis_ceu_chr19_genes",),
}
"""Public sets of the same kind as each of the paper's."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Ratings": ("amazon", "movielens", "netflix", "yelp"),
    "Counts: social media and music": ("wordpress", "tencent", "echonest"),
    "Near-binary counts": ("bestbuy", "merck"),
    "Money and expression": ("donation", "dchoose", "geuvadis"),
}
"""The paper's sets by kind of value."""

_SAMPLED_USERS = {"hiv_atompairs": 4_000}
"""Sets of which only some users are taken, evenly spread."""


def paper_set(name: str) -> str:
    """Return the set of the paper that a data set stands in for."""
    return next((like for like, names in STAND_INS.items() if name in (like, *names)), name)


def group_of(name: str) -> str:
    """Return the group of a data set."""
    like = paper_set(name)
    return next(group for group, members in GROUPS.items() if like in members)


def find_sets(folder: Path) -> dict[str, Path]:
    """Return the known data sets in a folder: NAME.parquet or NAME/NAME.parquet, smallest first."""
    from pyarrow import parquet

    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of data sets.")
    known = {name for names in STAND_INS.values() for name in names} | set(STAND_INS)
    found = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    found |= {path.stem: path for path in sorted(folder.glob("*/*.parquet"))}
    found = {name: path for name, path in found.items() if name in known}
    if not found:
        raise InputError(
            f"{folder} has none of the data sets. Put NAME.parquet there for one of: "
            f"{', '.join(sorted(known))}."
        )
    sizes = {name: int(parquet.read_metadata(path).num_rows) for name, path in found.items()}
    return {name: found[name] for name in sorted(sizes, key=sizes.__getitem__)}


def read_set(path: Path) -> Interactions:
    """Read a Parquet file with the columns user, item and value; of some sets a sample of users."""
    data = Interactions.read(path, user="user", item="item", value="value", progress=False)
    size = _SAMPLED_USERS.get(path.stem, data.n_users)
    if size >= data.n_users:
        return data
    rows = np.unique(np.linspace(0, data.n_users - 1, size).astype(np.int64))
    matrix = data.matrix[rows]
    items = np.flatnonzero(np.bincount(matrix.indices, minlength=data.n_items))
    return Interactions(matrix[:, items], data.users[rows], data.items[items])
