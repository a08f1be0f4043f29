"""Readable names of items."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hcpf.errors import InputError
from hcpf.report.wording import id_text

_ADVICE = "give a dict of ids and names, or a CSV or Parquet file with the columns id and name"


def labels(items: NDArray[Any], names: Any) -> list[str]:
    """The name of each item, its id where it has none.

    Parameters
    ----------
    items
        Ids.
    names
        A mapping of ids to names; the path of a CSV or Parquet file with columns ``id`` and
        ``name``; or None. Ids match by their text, since a CSV file knows nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> labels(np.array([7, 8]), {7: "tea"})
    ['tea', '8']
    """
    known = _read(names)
    found = [known.get(id_text(item)) or id_text(item) for item in items]
    if known and all(id_text(item) not in known for item in items):
        raise InputError(f"names: none of the {len(known)} ids is one of the model's items.")
    return found


def _read(names: Any) -> dict[str, str]:
    if names is None:
        return {}
    if isinstance(names, Mapping):
        return {id_text(key): str(name) for key, name in names.items() if name is not None}
    if not isinstance(names, (str, Path)):
        raise InputError(f"names: {_ADVICE}; got {type(names).__name__}.")
    path = Path(names)
    try:
        pairs = _parquet(path) if path.suffix == ".parquet" else _csv(path)
    except FileNotFoundError:
        raise InputError(f"names: there is no file {path}.") from None
    except (OSError, ValueError, KeyError, csv.Error) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"names: {path} cannot be read ({reason}); {_ADVICE}.") from None
    return {id_text(key): str(name) for key, name in pairs if name not in (None, "")}


def _parquet(path: Path) -> list[tuple[Any, Any]]:
    from pyarrow import parquet

    if not path.exists():
        raise FileNotFoundError(path)
    table = parquet.read_table(path, columns=["id", "name"])
    return list(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))


def _csv(path: Path) -> list[tuple[str, str | None]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if not {"id", "name"} <= set(reader.fieldnames or ()):
            raise ValueError(f"its columns are {reader.fieldnames}")
        return [(row["id"], row["name"]) for row in reader]
