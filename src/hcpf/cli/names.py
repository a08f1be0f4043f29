"""Names of items, for lists that people read."""

from typing import Any

from hcpf.cli.screen import note
from hcpf.cli.sources import RETAIL
from hcpf.errors import InputError


def read_names(source: str | None, items: Any) -> dict[str, str] | None:
    """Names by id: the first two columns of a file; or those of the data set retail."""
    if source is None:
        return None
    if source == RETAIL:
        from hcpf import datasets

        names = datasets.retail_products()
    else:
        names = {str(key): str(name) for batch in two_columns(source, 0, 1) for key, name in batch}
    if not any(str(item) in names for item in items):
        note(f"--names {source}: it has no name for any item of the model.")
    return names


def two_columns(source: str, first: int | str, second: int | str, **reading: Any) -> Any:
    """Rows of two columns of a file, in its order, batch by batch."""
    import pyarrow as pa

    from hcpf.data.readers import Wanted, find_files, reader_of

    wanted = Wanted(first, second, None, reading.get("delimiter"), reading.get("header", True))
    for path in find_files(source):
        try:
            for batch, _ in reader_of(path)(path, wanted):
                yield list(
                    zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
                )
        except (pa.ArrowException, OSError, ValueError) as error:
            lines = str(error).splitlines() or [type(error).__name__]
            raise InputError(f"{path} cannot be read: {lines[0]}") from None
