"""Data sets: one that comes with the library, readers for published ones, and downloads.

``retail`` loads at once and offline. Every other reader takes the path of a file that you have, in
the format in which it was published, packed or not, and returns ``Interactions``; ``download``
fetches those that their owners let anyone fetch.

Examples
--------
>>> from hcpf import datasets
>>> datasets.retail("spend")
Interactions(4334 users x 3659 items, 266221 observed, sparsity 0.983212)
>>> datasets.retail_products()["85123A"]
'White hanging heart t-light holder'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcpf.datasets.bundled import retail, retail_products
    from hcpf.datasets.events import bestbuy, echonest, lastfm, steam, tencent
    from hcpf.datasets.money import donations, donorschoose
    from hcpf.datasets.ratings import bookcrossing, movielens
    from hcpf.datasets.ratings_by_film import netflix
    from hcpf.datasets.records import amazon_fine_foods, wordpress_likes, yelp
    from hcpf.datasets.remote import download, downloads
    from hcpf.datasets.wide import geuvadis, merck

# The readers load pyarrow, which takes a while: each is loaded when it is first asked for.
_LAZY = {
    "amazon_fine_foods": "records",
    "bestbuy": "events",
    "bookcrossing": "ratings",
    "donations": "money",
    "donorschoose": "money",
    "download": "remote",
    "downloads": "remote",
    "echonest": "events",
    "geuvadis": "wide",
    "lastfm": "events",
    "merck": "wide",
    "movielens": "ratings",
    "netflix": "ratings_by_film",
    "retail": "bundled",
    "retail_products": "bundled",
    "steam": "events",
    "tencent": "events",
    "wordpress_likes": "records",
    "yelp": "records",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(import_module(f"hcpf.datasets.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hcpf.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "amazon_fine_foods",
    "bestbuy",
    "bookcrossing",
    "donations",
    "donorschoose",
    "download",
    "downloads",
    "echonest",
    "geuvadis",
    "lastfm",
    "merck",
    "movielens",
    "netflix",
    "retail",
    "retail_products",
    "steam",
    "tencent",
    "wordpress_likes",
    "yelp",
]
