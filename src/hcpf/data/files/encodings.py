"""The encoding of text files: detected, and decoded to UTF-8."""

import codecs
import os
import re
import tempfile
import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa

from hcpf.errors import InputError

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
UTF8 = "utf-8"
FALLBACK = "cp1252"
"""Windows' encoding of western Europe, of which Latin-1's printable characters are a part."""

_BUFFER_BYTES = 1 << 20
_SAMPLE_BYTES = 1 << 20
# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: UTF8,  # which Arrow skips
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def open_bytes(path: Path) -> Any:
    """Open a file as a stream of uncompressed bytes."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    return pa.input_stream(str(path), compression=compression, buffer_size=_BUFFER_BYTES)


class DecodedFile:
    """A file as UTF-8: the file itself, or a temporary copy if it has another encoding.

    Arrow's own decoding calls Python from threads that outlive a reader that is not exhausted:
    rows were lost, and processes did not end.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        self._path = path
        if codecs.lookup(encoding).name == "utf-8":
            return
        handle, name = tempfile.mkstemp(prefix="hcpf-", suffix=".txt")
        self._path = Path(name)
        weakref.finalize(self, self._path.unlink, missing_ok=True)
        decoder = codecs.getincrementaldecoder(encoding)()
        with os.fdopen(handle, "wb") as copy, open_bytes(path) as file:
            while chunk := bytes(file.read(_BUFFER_BYTES)):
                copy.write(decoder.decode(chunk).encode())
            copy.write(decoder.decode(b"", final=True).encode())

    def open(self) -> Any:
        """Open a stream of uncompressed bytes in UTF-8."""
        return open_bytes(self._path)


def detect_encoding(path: Path) -> str:
    """Return the encoding of a text file by its mark and its first megabyte.

    A file that is UTF-8 there may still turn out not to be when all of it is read.
    """
    with open_bytes(path) as file:
        sample = file.read(_SAMPLE_BYTES)
    for mark, encoding in _MARKS.items():
        if sample.startswith(mark):
            return encoding
    if is_utf8(sample):
        return _utf16_without_mark(sample) or UTF8
    return _utf16_without_mark(sample) or check_fallback(sample)


def is_utf8(sample: bytes) -> bool:
    """Return whether bytes are UTF-8, the last character of which may be incomplete."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def check_fallback(sample: bytes) -> str:
    """Return the fallback encoding, or raise an InputError if the bytes are not text in it."""
    if not _CONTROL.search(sample):
        try:
            sample.decode(FALLBACK)
        except UnicodeDecodeError:
            pass
        else:
            return FALLBACK
    raise InputError(
        "this is neither UTF-8 nor Windows text. Pass its encoding, for example "
        "encoding='mac-roman', if it is text at all."
    )


def example_word(path: Path, encoding: str) -> str | None:
    """Return the first word that is not plain ASCII, decoded; None if the sample has none."""
    with open_bytes(path) as file:
        sample = bytes(file.read(_SAMPLE_BYTES))
    word = re.search(r"\w*[^\x00-\x7f]+\w*", sample.decode(encoding, "ignore"))
    return word[0][:30] if word else None


def _utf16_without_mark(sample: bytes) -> str | None:
    """Return UTF-16 of either byte order if every other byte is mostly 0, as for Latin letters."""
    head = sample[: len(sample) // 2 * 2][:4096]
    if len(head) < 8:
        return None
    high, low = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if min(high, low) > 0.1 * half or max(high, low) < 0.6 * half:
        return None
    return "utf-16-be" if high > low else "utf-16-le"
