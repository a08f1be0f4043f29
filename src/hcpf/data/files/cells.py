"""Cells of spreadsheets and databases: Python objects of any type become columns of one."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hcpf.data.amounts import mostly_amounts
from hcpf.data.files.base import ColumnKind

_MAX_KIND_ROWS = 1000


def cells_to_ids(cells: Sequence[Any]) -> Any:
    """Return cells as an Arrow array of text; empty ones are null.

    >>> cells_to_ids([17850.0, "A1", None, 7]).to_pylist()
    ['17850', 'A1', None, '7']
    """
    return pa.array([_id_text(cell) for cell in cells], pa.string())


def cells_to_values(cells: Sequence[Any]) -> Any:
    """Return cells as an Arrow array of numbers, or of text if some cells are text.

    >>> cells_to_values([1, None, 2.5]).to_pylist(), cells_to_values([2.5, "£3"]).to_pylist()
    ([1.0, None, 2.5], ['25e-1', '£3'])
    """
    present = [None if _is_empty(cell) else cell for cell in cells]
    kinds = {type(cell) for cell in present if cell is not None}
    try:
        if kinds <= {int, bool}:
            return pa.array([None if cell is None else int(cell) for cell in present], pa.int64())
        if kinds <= {int, float} and not any(_is_long(cell) for cell in present):
            return pa.array(present, pa.float64())
    except OverflowError:  # an integer beyond 64 bits: its text keeps all digits
        pass
    return pa.array([None if cell is None else _value_text(cell) for cell in present], pa.string())


def kind_of_cells(cells: Sequence[Any]) -> ColumnKind:
    """Return the kind of a column by its first cells."""
    present = [cell for cell in cells[:_MAX_KIND_ROWS] if not _is_empty(cell)]
    if not present:
        return "other"
    if all(isinstance(cell, int | float | Decimal) for cell in present):
        return "integer" if all(cell == int(cell) for cell in present if cell == cell) else "real"
    if all(hasattr(cell, "isoformat") for cell in present):
        return "time"
    texts = [cell for cell in present if isinstance(cell, str)]
    return "real" if texts and mostly_amounts(pa.array(texts)) else "text"


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_long(cell: Any) -> bool:
    return isinstance(cell, int) and abs(cell) > 2**53


def _id_text(cell: Any) -> str | None:
    if _is_empty(cell) or cell != cell:
        return None
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else str(cell)
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


def _value_text(cell: Any) -> str:
    """Return the text of a cell; a number without a decimal mark, which could be either."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return str(cell)
    number = Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)
    if not number.is_finite():
        return str(cell)
    sign, digits, exponent = number.as_tuple()
    text = f"{'-' * sign}{''.join(map(str, digits))}"
    return text if exponent == 0 else f"{text}e{exponent}"
