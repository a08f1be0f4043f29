"""Fetching data sets from where their owners publish them."""

import hashlib
import http.client
import logging
import os
import re
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hcpf._checks import number
from hcpf._progress import progress_bar
from hcpf._version import __version__
from hcpf.errors import InputError

_CHUNK = 1 << 16
_MEGABYTE = 1 << 20
_GROUPLENS = "https://files.grouplens.org/datasets"
_MOVIELENS_TERMS = "research use, no redistribution; cite Harper and Konstan (2015)"

logger = logging.getLogger("hcpf")


@dataclass(frozen=True)
class Remote:
    """Where a data set is, and how to know that it arrived whole."""

    url: str
    reader: str
    """The function of ``hcpf.datasets`` that reads the file."""
    terms: str
    """The owner's conditions in short; the file or its home has them in full."""
    checksum: str | None = None
    """``sha256:...`` or ``md5:...``; None where none is known for certain."""


def _movielens(name: str, checksum: str | None) -> Remote:
    return Remote(f"{_GROUPLENS}/movielens/{name}.zip", "movielens", _MOVIELENS_TERMS, checksum)


REMOTES: dict[str, Remote] = {
    "movielens-100k": _movielens(
        "ml-100k", "sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"
    ),
    "movielens-1m": _movielens(
        "ml-1m", "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"
    ),
    "movielens-10m": _movielens("ml-10m", "md5:ce571fd55effeba0271552578f2648bd"),
    "movielens-20m": _movielens(
        "ml-20m", "sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3"
    ),
    "movielens-25m": _movielens(
        "ml-25m", "sha256:8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa"
    ),
    # The two below are replaced from time to time, so that no checksum holds for ever.
    "movielens-latest-small": _movielens("ml-latest-small", None),
    "movielens-latest": _movielens("ml-latest", None),
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
"""What ``download`` knows."""


def downloads() -> dict[str, Remote]:
    """The data sets that ``download`` can fetch, with their addresses, readers and terms.

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
    """Fetch a data set from its owner's site and return where it is.

    A file that is there already is not fetched again, unless it has another checksum.

    Parameters
    ----------
    name : str
        One of the names in ``downloads()``. Mind the owner's terms given there.
    folder : path, optional
        Where the file goes; by default ``hcpf/datasets`` in your cache folder.
    sha256 : str, optional
        The checksum that the file must have, instead of the one known here. Where none is known,
        the checksum of what came is logged, so that you can ask for it the next time.
    progress : bool, optional
        Whether to show a progress bar; by default only in a terminal.
    timeout : float
        For how many seconds the site may be silent.

    Returns
    -------
    pathlib.Path
        Of the file as published, which the data set's reader takes as it is.
    """
    if name not in REMOTES:
        raise InputError(f"There is no download called {name!r}: there are {', '.join(REMOTES)}.")
    remote = REMOTES[name]
    checksum = remote.checksum if sha256 is None else f"sha256:{_checked_sha256(sha256)}"
    timeout = number("timeout", timeout, 1e-3, 1e6, "a number of seconds above 0")
    target = (_cache() if folder is None else Path(folder)) / remote.url.rsplit("/", 1)[-1]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file() and _is_right(target, checksum):
            return target
        logger.info("%s: from %s (%s).", name, remote.url, remote.terms)
        _fetch(remote.url, target, checksum, progress, timeout)
    except (OSError, http.client.HTTPException) as error:
        # HTTPError and URLError are kinds of OSError.
        reason = getattr(error, "reason", None) or error
        raise InputError(
            f"{name} cannot be downloaded from {remote.url} to {target}: {reason}. Try again "
            "later, or fetch it by other means and give its path to "
            f"hcpf.datasets.{remote.reader}."
        ) from None
    return target


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hcpf" / "datasets"


def _checked_sha256(sha256: str) -> str:
    if not isinstance(sha256, str) or not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise InputError(f"sha256 must be a string of 64 hexadecimal digits, got {sha256!r}.")
    return sha256.lower()


def _digest(kind: str) -> Any:
    return hashlib.new(kind, usedforsecurity=False)


def _is_right(path: Path, checksum: str | None) -> bool:
    if checksum is None:
        return True
    kind, _, wanted = checksum.partition(":")
    digest = _digest(kind)
    with path.open("rb") as file:
        while piece := file.read(_MEGABYTE):
            digest.update(piece)
    return digest.hexdigest() == wanted


def _fetch(
    url: str, target: Path, checksum: str | None, progress: bool | None, timeout: float
) -> None:
    """Write to a file of another name first, so that the target is whole or not there."""
    kind, _, wanted = (checksum or "sha256:").partition(":")
    digest = _digest(kind)
    handle, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _copy(url, file, digest.update, progress, timeout)
        found = digest.hexdigest()
        if wanted and found != wanted:
            raise InputError(
                f"{url} has the {kind} {found}, but {wanted} was expected: it has changed, or did "
                "not arrive whole. Nothing was kept."
            )
        Path(part).chmod(0o644)  # temporary files are for their owner only
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    logger.info("%s: %s %s.", target, kind, found)


def _copy(
    url: str,
    file: BinaryIO,
    update: Callable[[bytes], object],
    progress: bool | None,
    timeout: float,
) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": f"hcpf/{__version__}"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        announced = response.headers.get("Content-Length", "")
        size = int(announced) if announced.isdigit() else None
        done = 0
        with progress_bar(progress, "Downloading", (size or _MEGABYTE) / _MEGABYTE) as advance:
            while piece := response.read(_CHUNK):
                file.write(piece)
                update(piece)
                done += len(piece)
                advance(len(piece) / _MEGABYTE, f"{done / _MEGABYTE:.1f} MB")
    # A connection that breaks looks like the end of the file.
    if size is not None and done < size:
        raise InputError(f"{url} broke off after {done} of {size} bytes. Nothing was kept.")
