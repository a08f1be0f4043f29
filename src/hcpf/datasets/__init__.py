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
    from hcpf.datasets.public import (
        bestbuy,
        bookcrossing,
        donations,
        donorschoose,
        echonest,
        lastfm,
        movielens,
        steam,
        tencent,
    )  # fmt: skip
    from hcpf.datasets.records import amazon_fine_foods, netflix, wordpress_likes, yelp
    from hcpf.datasets.remote import download, downloads
    from hcpf.datasets.wide import geuvadis, merck

__all__ = [
    "amazon_fine_foods", "bestbuy", "bookcrossing", "donations", "donorschoose", "download",
    "downloads", "echonest", "geuvadis", "lastfm", "merck", "movielens", "netflix", "retail",
    "retail_products", "steam", "tencent", "wordpress_likes", "yelp",
]  # fmt: skip

_MODULES = {
    **dict.fromkeys(("retail", "retail_products"), "bundled"),
    **dict.fromkeys(("amazon_fine_foods", "netflix", "wordpress_likes", "yelp"), "records"),
    **dict.fromkeys(("download", "downloads"), "remote"),
    **dict.fromkeys(("geuvadis", "merck"), "wide"),
}
"""Modules of the names that are not in ``public``."""


def __getattr__(name: str) -> Any:
    # The readers import pyarrow, which takes a while: import each when it is first used.
    if name not in __all__:
        raise AttributeError(f"module 'hcpf.datasets' has no attribute {name!r}")
    value = getattr(import_module(f"hcpf.datasets.{_MODULES.get(name, 'public')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
