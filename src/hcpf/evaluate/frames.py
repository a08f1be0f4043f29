"""Tables that become data frames, and print as text."""

from typing import Any

import narwhals as nw

from hcpf.errors import InputError, MissingDependencyError

BACKENDS = ("pandas", "polars", "pyarrow")


class Table:
    """Records of the same fields."""

    def records(self) -> list[dict[str, Any]]:
        """The rows as plain dicts."""
        raise NotImplementedError

    def to_frame(self, backend: str = "pandas") -> Any:
        """A data frame of pandas, polars or pyarrow, one row for each record."""
        if backend not in BACKENDS:
            raise InputError(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}.")
        records = self.records()
        columns = {name: [record[name] for record in records] for name in records[0]}
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError as error:
            raise MissingDependencyError(f"{backend} is not installed: {error}.") from None

    def __repr__(self) -> str:
        records = self.records()
        names = [name for name in records[0] if not name.endswith("_error")]
        lines = [names] + [[_cell(record[name]) for name in names] for record in records]
        widths = [max(len(line[j]) for line in lines) for j in range(len(names))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
