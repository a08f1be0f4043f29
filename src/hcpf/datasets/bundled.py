"""The data set that comes with the library: purchases in an online shop."""

from importlib import resources
from typing import Any, Literal

import pyarrow as pa
from pyarrow import compute, parquet

from hcpf._checks import one_of
from hcpf.data.interactions import Interactions

pc: Any = compute  # its functions are made at run time, unseen by type checkers

_COLUMNS = {"spend": "pence", "quantity": "quantity", "invoices": "invoices"}


def retail(value: Literal["spend", "quantity", "invoices"] = "spend") -> Interactions:
    """Return customers x products of a British gift shop, December 2010 to December 2011.

    Parameters
    ----------
    value : {"spend", "quantity", "invoices"}, default "spend"
        The pounds that the customer spent on the product in total, the units bought, or the
        number of invoices with the product.

    Returns
    -------
    Interactions
        4334 customers, by number, and 3659 products, by stock code; ``retail_products`` has their
        names. Cancellations are removed, but the orders they cancelled are not: a few values are
        very large.

    Notes
    -----
    Derived from D. Chen, Online Retail, UCI Machine Learning Repository, 2015,
    `doi:10.24432/C5BW33 <https://doi.org/10.24432/C5BW33>`_, license CC BY 4.0.
    ``LICENSE-retail.txt`` in this folder lists the changes.

    Examples
    --------
    >>> data = retail("invoices")
    >>> data
    Interactions(4334 users x 3659 items, 266221 observed, sparsity 0.9832)
    >>> float(data.values.min()), float(data.values.max())
    (1.0, 63.0)
    """
    column = _COLUMNS[one_of("value", value, tuple(_COLUMNS))]
    table = _load("retail.parquet", ["customer", "product", column])
    values = pc.cast(table[column], pa.float64())
    if column == "pence":
        values = pc.divide(values, 100.0)
    return Interactions.from_arrays(table["customer"], table["product"], values)


def retail_products() -> dict[str, str]:
    """Return the names of the products of ``retail`` by stock code.

    Examples
    --------
    >>> retail_products()["22423"]
    'Regency cakestand 3 tier'
    """
    table = _load("retail_products.parquet", ["product", "name"])
    return dict(zip(table["product"].to_pylist(), table["name"].to_pylist(), strict=True))


def _load(name: str, columns: list[str]) -> Any:
    with resources.files("hcpf.datasets").joinpath(name).open("rb") as file:
        return parquet.ParquetFile(file).read(columns=columns)
