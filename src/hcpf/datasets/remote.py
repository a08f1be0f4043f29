"""Downloads of data sets from the sites of their owners."""

import http.client
import logging
import os
import re
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from hcpf._checks import number
from hcpf._progress import progress_bar
from hcpf._version import __version__
from hcpf.errors import InputError
from hcpf.io import atomic_path, file_digest

_CHUNK_BYTES = 1 << 16
_MEGABYTE = 1 << 20
_GROUPLENS = "https://files.grouplens.org/datasets"

logger = logging.getLogger("hcpf")


@dataclass(frozen=True)
class Remote:
    """The address of a data set and the checksum of its file."""

    url: str
    reader: str
    """The function of ``hcpf.datasets`` that reads the file."""
    terms: str
    """The owner's conditions in short; the site has them in full."""
    checksum: str | None = None
    """``sha256:...`` or ``md5:...``; None if the owner may replace the file."""


_MOVIELENS_CHECKSUMS = {
    "100k": "sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    "1m": "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    "10m": "md5:ce571fd55effeba0271552578f2648bd",
    "20m": "sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
    "25m": "sha256:8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
    # Replaced from time to time.
    "latest-small": None,
    "latest": None,
}

REMOTES: dict[str, Remote] = {
    **{
        f"movielens-{name}": Remote(
            f"{_GROUPLENS}/movielens/ml-{name}.zip",
            "movielens",
            "research use, no redistribution; cite Harper and Konstan (2015)",
            checksum,
        )
        for name, checksum in _MOVIELENS_CHECKSUMS.items()
    },
    "lastfm": Remote(
        f"{_GROUPLENS}/hetrec2011/hetrec2011-lastfm-2k.zip",
        "lastfm",
        "research use, not commercial; cite Cantador, Brusilovsky and Kuflik (2011)",
    ),
    "amazon-fine-foods": Remote(
        "https://snap.stanford.edu/data/finefoods.txt.gz",
        "amazon_fine_foods",
        "cite McAuley and Leskovec (2013)",
    ),
    "geuvadis": Remote(
        "https://ftp.ebi.ac.uk/biostudies/fire/E-GEUV-/001/E-GEUV-1/Files/E-GEUV-1/"
        "analysis_results/GD462.GeneQuantRPKM.50FN.samplename.resk10.txt.gz",
        "geuvadis",
        "open access; cite Lappalainen and others (2013)",
    ),
}
"""The data sets that ``download`` can fetch."""


def downloads() -> dict[str, Remote]:
    """Return the data sets that ``download`` can fetch, with their addresses, readers and terms.

    Examples
    --------
    >>> downloads()["movielens-100k"].url
    'https://files.grouplens.org/datasets/movielens/ml-100k.zip'
    """
    return dict(REMOTES)


def download(
    name: str,
    folder: str | Path | None = None,
    *,
    sha256: str | None = None,
    progress: bool | None = None,
    timeout: float = 60.0,
) -> Path:
    """Download a data set from its owner's site and return the path of the file.

    A file that exists is not downloaded again, unless its checksum differs.

    Parameters
    ----------
    name : str
        One of the names in ``downloads()``, which also has the owner's terms.
    folder : path, optional
        The target folder; by default ``hcpf/datasets`` in your cache folder.
    sha256 : str, optional
        The checksum that the file must have, instead of the known one. If none is known, the
        checksum of the downloaded file is logged; pass it the next time to get the same file.
    progress : bool, optional
        Whether to show a progress bar; by default only in a terminal.
    timeout : float, default 60
        Seconds to wait for an answer of the site.

    Returns
    -------
    pathlib.Path
        The file as published, for the reader of the data set.
    """
    if name not in REMOTES:
        raise InputError(f"Unknown download {name!r}. Known downloads: {', '.join(REMOTES)}.")
    remote = REMOTES[name]
    checksum = remote.checksum if sha256 is None else f"sha256:{_checked_sha256(sha256)}"
    timeout = number("timeout", timeout, 1e-3, 1e6, "a number of seconds above 0")
    target = (_cache() if folder is None else Path(folder)) / remote.url.rsplit("/", 1)[-1]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file() and _has_checksum(target, checksum):
            return target
        logger.info("%s: from %s (%s).", name, remote.url, remote.terms)
        _fetch(remote.url, target, checksum, progress, timeout)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(
            f"{name} cannot be downloaded from {remote.url} to {target}: {reason}. Try again "
            "later, or download it by other means and pass its path to "
            f"hcpf.datasets.{remote.reader}()."
        ) from None
    return target


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hcpf" / "datasets"


def _has_checksum(path: Path, checksum: str | None) -> bool:
    algorithm, _, wanted = (checksum or "").partition(":")
    return checksum is None or file_digest(path, algorithm) == wanted


def _checked_sha256(sha256: str) -> str:
    if not isinstance(sha256, str) or not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise InputError(f"sha256 must be a string of 64 hexadecimal digits, got {sha256!r}.")
    return sha256.lower()


def _fetch(
    url: str, target: Path, checksum: str | None, progress: bool | None, timeout: float
) -> None:
    algorithm, _, wanted = (checksum or "sha256:").partition(":")
    with atomic_path(target) as path:
        _copy(url, path, progress, timeout)
        digest = file_digest(path, algorithm)
        if wanted and digest != wanted:
            raise InputError(
                f"{url} has the {algorithm} {digest}, but {wanted} was expected: the file has "
                "changed or is damaged. It was not kept."
            )
    logger.info("%s: %s %s.", target, algorithm, digest)


def _copy(url: str, path: Path, progress: bool | None, timeout: float) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": f"hcpf/{__version__}"})
    with path.open("wb") as file, urllib.request.urlopen(request, timeout=timeout) as response:
        announced = response.headers.get("Content-Length", "")
        n_bytes = int(announced) if announced.isdigit() else None
        total = (n_bytes or _MEGABYTE) / _MEGABYTE
        with progress_bar(progress, "Downloading", total) as advance:
            while chunk := response.read(_CHUNK_BYTES):
                file.write(chunk)
                advance(len(chunk) / _MEGABYTE, f"{file.tell() / _MEGABYTE:.1f} MB")
        # A broken connection looks like the end of the file.
        if n_bytes is not None and file.tell() < n_bytes:
            raise InputError(
                f"{url}: the connection broke after {file.tell():,} of {n_bytes:,} bytes. The "
                "file was not kept; try again."
            )
