"""Makes the bundled retail data from the invoice lines of UCI Online Retail.

Run it again with ``main(source, folder)``.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet

pc: Any = compute  # its functions are made at run time, unseen by type checkers
Table = Any
"""A ``pyarrow.Table``."""

PRODUCT_CODE = "^[0-9]{5}[A-Z]*$"
"""Products have five digits and perhaps letters; POST, D, M, BANK CHARGES, ... do not."""


def main(source: str | Path, folder: str | Path) -> None:
    """Aggregate invoice lines and write the two Parquet files of the package.

    Parameters
    ----------
    source : path
        The invoice lines as Parquet: InvoiceNo, StockCode, Description, Quantity, UnitPrice
        (text, with a decimal point or comma) and CustomerID.
    folder : path
        Where ``retail.parquet`` and ``retail_products.parquet`` go.
    """
    lines = product_lines(parquet.read_table(source))
    purchases = purchases_of(lines)
    _write(purchases, Path(folder) / "retail.parquet", sorted_column="customer")
    _write(product_names(lines), Path(folder) / "retail_products.parquet", sorted_column=None)


def product_lines(table: Table) -> Table:
    """The lines on which a known customer bought a product and paid for it."""
    # Some codes are there in capitals and in small letters, for the same product.
    code = pc.utf8_upper(pc.utf8_trim_whitespace(table["StockCode"]))
    price = pc.cast(pc.replace_substring(table["UnitPrice"], ",", "."), pa.float64())
    quantity = pc.cast(table["Quantity"], pa.int64())
    conditions = [
        pc.match_substring_regex(code, PRODUCT_CODE),
        pc.invert(pc.starts_with(table["InvoiceNo"], "C")),  # a cancellation
        pc.greater(quantity, 0),
        pc.greater(price, 0),
        pc.greater(pc.fill_null(table["CustomerID"], 0), 0),
    ]
    wanted = conditions[0]
    for condition in conditions[1:]:
        wanted = pc.and_(wanted, condition)
    lines = pa.table(
        {
            "customer": pc.cast(table["CustomerID"], pa.int32()),
            "product": code,
            "name": pc.fill_null(table["Description"], ""),
            "invoice": table["InvoiceNo"],
            "quantity": quantity,
            "paid": pc.multiply(price, pc.cast(quantity, pa.float64())),
        }
    )
    return lines.filter(wanted)


def purchases_of(lines: Table) -> Table:
    """One row for each customer and product, in their order."""
    sums = lines.group_by(["customer", "product"]).aggregate(
        [("paid", "sum"), ("quantity", "sum"), ("invoice", "count_distinct")]
    )
    sums = sums.sort_by([("customer", "ascending"), ("product", "ascending")])
    pence = pc.cast(pc.round(pc.multiply(sums["paid_sum"], 100.0)), pa.int32())
    return pa.table(
        {
            "customer": sums["customer"],
            "product": sums["product"],
            # Whole pence are exact, and take less space than pounds; never 0, which would say
            # that nothing was bought.
            "pence": pc.max_element_wise(pence, pa.scalar(1, pa.int32())),
            "quantity": pc.cast(sums["quantity_sum"], pa.int32()),
            "invoices": pc.cast(sums["invoice_count_distinct"], pa.int32()),
        }
    )


def product_names(lines: Table) -> Table:
    """The commonest description of each product, tidied, in the order of the products."""
    counts = lines.group_by(["product", "name"]).aggregate([("name", "count")])
    order = [("product", "ascending"), ("name_count", "descending"), ("name", "ascending")]
    names: dict[str, str] = {}
    for row in counts.sort_by(order).to_pylist():
        name = tidy(row["name"])
        if name:
            names.setdefault(row["product"], name)
    return pa.table({"product": list(names), "name": list(names.values())})


def tidy(description: str) -> str:
    """A description as one would write it.

    >>> tidy(" WHITE HANGING HEART  T-LIGHT HOLDER.")
    'White hanging heart t-light holder'
    """
    return " ".join(description.split()).strip(" .,").capitalize()


def _write(table: Table, path: Path, *, sorted_column: str | None) -> None:
    encodings = {sorted_column: "DELTA_BINARY_PACKED"} if sorted_column else None
    write: Any = parquet.write_table  # whose annotations are narrower than its documentation
    write(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in table.column_names if name != sorted_column],
        column_encoding=encodings,
        write_statistics=False,
        store_schema=False,
    )
