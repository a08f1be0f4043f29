"""Names of items, for lists that people read."""

from typing import Any

from hcpf.cli.screen import note
from hcpf.cli.sources import RETAIL


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
    from hcpf.data.readers import find_files, read_pairs

    for path in find_files(source):
        for left, right in read_pairs(path, first, second, **reading):
            yield list(zip(left, right, strict=True))
