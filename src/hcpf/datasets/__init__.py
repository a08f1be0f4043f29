"""Data sets: one that comes with the library, readers of published ones, and downloads.

``retail`` needs no download. Every other reader takes the path of a file as it was published,
compressed or not, or of the folder or archive that holds it, and returns ``Interactions``;
``duplicates=`` sets how several rows of a pair are merged. ``download`` fetches the data sets that
anyone may fetch.

Examples
--------
>>> from hcpf import datasets
>>> datasets.retail("spend")
Interactions(4334 users x 3659 items, 266221 observed, sparsity 0.9832)
>>> datasets.retail_products()["85123A"]
'White hanging heart t-light holder'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcpf.datasets.bundled import retail, retail_products
    from hcpf.datasets.published import (
        amazon_fine_foods,
        bestbuy,
        bookcrossing,
        donations,
        donorschoose,
        echonest,
        geuvadis,
        lastfm,
        merck,
        movielens,
        netflix,
        steam,
        tencent,
        wordpress_likes,
        yelp,
    )  # fmt: skip
    from hcpf.datasets.remote import download, downloads

__all__ = [
    "amazon_fine_foods", "bestbuy", "bookcrossing", "donations", "donorschoose", "download",
    "downloads", "echonest", "geuvadis", "lastfm", "merck", "movielens", "netflix", "retail",
    "retail_products", "steam", "tencent", "wordpress_likes", "yelp",
]  # fmt: skip

_MODULES = {
    "retail": "bundled", "retail_products": "bundled", "download": "remote", "downloads": "remote",
}  # fmt: skip
"""Modules of the names that are not in ``published``."""


def __getattr__(name: str) -> Any:
    # The readers import pyarrow, which takes a while: import each when it is first used.
    if name not in __all__:
        raise AttributeError(f"module 'hcpf.datasets' has no attribute {name!r}")
    value = getattr(import_module(f"hcpf.datasets.{_MODULES.get(name, 'published')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
