"""The manifest of a folder of shards: what it holds, with the size and checksum of each file."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._version import __version__
from hcpf.data.shards.files import FileRecord
from hcpf.errors import ShardError
from hcpf.io import write_atomically

MANIFEST = "manifest.json"
FORMAT, SCHEMA = "hcpf-shards", 1
_UNFINISHED = "shard-[0-9]*/pointer.npy"
_ADVICE = "Pass a folder written by to_shards() or hcpf shard."


@dataclass(frozen=True)
class ValueSummary:
    """What has to be known of the values before anything is fitted to them."""

    n: int = 0
    total: float = 0.0
    low: float = 0.0
    high: float = 0.0
    fraction: float | None = None
    """One of the values that are not integers; None if all are."""

    @classmethod
    def of(cls, values: NDArray[Any]) -> "ValueSummary":
        """Summarize some values."""
        if not len(values):
            return cls()
        fractions = np.flatnonzero(values != np.floor(values))
        fraction = float(values[fractions[0]]) if len(fractions) else None
        total = float(np.sum(values, dtype=np.float64))
        return cls(len(values), total, float(values.min()), float(values.max()), fraction)

    def merge(self, other: "ValueSummary") -> "ValueSummary":
        """Return the summary of both."""
        if not self.n or not other.n:
            return self if self.n else other
        fraction = self.fraction if self.fraction is not None else other.fraction
        return ValueSummary(
            self.n + other.n, self.total + other.total,
            min(self.low, other.low), max(self.high, other.high), fraction,
        )  # fmt: skip

    @property
    def extremes(self) -> NDArray[np.float64]:
        """The least and the largest value, and one that is not an integer if there is one."""
        return np.array([self.low, self.high, *([] if self.fraction is None else [self.fraction])])


@dataclass(frozen=True)
class ShardRecord:
    """One shard: its subfolder, its sizes and its files."""

    name: str
    n_users: int
    n_items: int
    """The number of items when it was written; later shards may bring more."""
    n_entries: int
    files: dict[str, FileRecord]


@dataclass(frozen=True)
class Manifest:
    """All that is in a folder of shards."""

    n_items: int
    dtype: str
    """Of the values: float32 or float64."""
    summary: ValueSummary
    items: tuple[str, FileRecord]
    """The file of the items' ids."""
    shards: tuple[ShardRecord, ...]
    digest: str = ""
    """The checksum of the manifest itself: folders that share it hold the same entries."""

    @property
    def n_users(self) -> int:
        """The number of users of all shards."""
        return sum(shard.n_users for shard in self.shards)

    @property
    def n_entries(self) -> int:
        """The number of entries of all shards."""
        return sum(shard.n_entries for shard in self.shards)

    def write(self, folder: Path) -> "Manifest":
        """Write the manifest in one step, which makes the shards that it lists part of the folder.

        Returns it with its digest.
        """
        content = {
            "format": FORMAT, "schema": SCHEMA, "hcpf": __version__,
            "n_users": self.n_users, "n_items": self.n_items, "n_entries": self.n_entries,
            "dtype": self.dtype, "summary": asdict(self.summary),
            "items": {"name": self.items[0], **asdict(self.items[1])},
            "shards": [asdict(shard) for shard in self.shards],
        }  # fmt: skip
        digest = _digest_of(content)
        outer = {"sha256": digest, "manifest": content}
        write_atomically(folder / MANIFEST, json.dumps(outer, indent=1, allow_nan=False))
        return replace(self, digest=digest)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder, or raise a ShardError."""
    path = folder / MANIFEST
    try:
        outer = json.loads(path.read_text())
    except FileNotFoundError:
        raise ShardError(f"{folder} is not a folder of shards: {_missing(folder)}") from None
    except NotADirectoryError:
        raise ShardError(f"{folder} is a file, not a folder of shards. {_ADVICE}") from None
    except (OSError, ValueError) as error:
        raise ShardError(
            f"{path} cannot be read: {error}. Restore the file, or write the shards again."
        ) from None
    if not isinstance(outer, dict) or not isinstance(outer.get("manifest"), dict):
        raise ShardError(f"{path} was not written by hcpf. {_ADVICE}")
    content: dict[str, Any] = outer["manifest"]
    if content.get("format") != FORMAT:
        raise ShardError(f"{path} does not describe shards. {_ADVICE}")
    if content.get("schema") != SCHEMA:
        raise ShardError(
            f"{path} has schema {content.get('schema')!r}, but hcpf {__version__} reads {SCHEMA}. "
            f"It was written by hcpf {content.get('hcpf')}: use that version, or write the shards "
            "again."
        )
    if outer.get("sha256") != _digest_of(content):
        raise ShardError(f"{path} does not match its checksum. Write the shards again.")
    try:
        return _parse(content, str(outer["sha256"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ShardError(f"{path} cannot be read: {error!r}. Write the shards again.") from None


def is_shards(folder: Path) -> bool:
    """Return whether a folder has shards, or what an interrupted write has left of some."""
    try:
        return f'"{FORMAT}"' in (folder / MANIFEST).read_text()
    except FileNotFoundError:
        return any(folder.glob(_UNFINISHED))
    except (OSError, ValueError):
        return False


def _parse(content: dict[str, Any], digest: str) -> Manifest:
    listed: list[dict[str, Any]] = content["shards"]
    shards: list[ShardRecord] = []
    for shard in listed:
        files = {name: FileRecord(**record) for name, record in shard.pop("files").items()}
        shards.append(ShardRecord(**shard, files=files))
    items = dict(content["items"])
    return Manifest(
        n_items=int(content["n_items"]),
        dtype=str(content["dtype"]),
        summary=ValueSummary(**content["summary"]),
        items=(str(items.pop("name")), FileRecord(**items)),
        shards=tuple(shards),
        digest=digest,
    )


def _missing(folder: Path) -> str:
    if not folder.exists():
        return f"it does not exist. {_ADVICE}"
    if any(folder.glob(_UNFINISHED)):
        return f"writing it was interrupted, so it has no {MANIFEST}. Write the shards again."
    return f"it has no {MANIFEST}. {_ADVICE}"


def _digest_of(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
