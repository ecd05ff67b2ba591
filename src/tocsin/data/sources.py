"""Opening of sources: a path, standard input or an open file, compressed or not."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from tocsin import checks
from tocsin.data.problems import DataError

FORMATS = ("csv", "tsv", "jsonl", "parquet", "excel")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
    ".ods": "excel",
}

Source = str | PathLike[str] | IO[Any]

UNNAMED = "the open file"
PEEKED = 2**16  # bytes used to detect format and encoding
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class OpenSource:
    """An open source: its label in messages, its short name, its format, and its (decompressed) content.

    `stream` yields bytes, or text if the caller's open file does. `compressed` says that it is being decompressed.
    """

    label: str
    name: str
    format: str
    stream: IO[Any]
    compressed: bool


def format_of(path: str, given: str | None) -> str | None:
    """The requested format, or that of the suffix, or None."""
    if given is not None:
        return checks.choice("format", given, FORMATS)
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


@contextmanager
def open_source(source: Source, given_format: str | None) -> Iterator[OpenSource]:
    """Open for reading. Closes what it opened, never what the caller opened."""
    if hasattr(source, "read"):
        label = str(getattr(source, "name", UNNAMED))
        yield _prepared(cast("IO[Any]", source), label, given_format)
    elif source == "-":
        yield _prepared(sys.stdin.buffer if hasattr(sys.stdin, "buffer") else sys.stdin, "stdin", given_format)
    else:
        path = os.fspath(source)
        if os.path.isdir(path):  # unlike pathlib, it accepts any text
            raise DataError(f"{path} is a folder, and only folders of Parquet files can be read")
        try:
            stream = open(path, "rb", buffering=PEEKED)  # noqa: SIM115
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}") from error
        with stream:
            yield _prepared(stream, path, given_format)


def _prepared(stream: IO[Any], label: str, given_format: str | None) -> OpenSource:
    name = "signal" if label == UNNAMED else Path(label).name.split(".")[0] or label
    format_ = format_of(label, given_format)
    if isinstance(stream, io.TextIOBase):
        if format_ in ("parquet", "excel"):
            raise DataError(f"{label} is open as text; {format_.title()} needs a file opened in binary mode")
        return OpenSource(label, name, format_ or "csv", stream, compressed=False)
    buffered = stream if hasattr(stream, "peek") else io.BufferedReader(_Unclosed(stream), PEEKED)
    start = _peek(buffered, label)
    compressed = start.startswith(_GZIP)
    if label.lower().endswith(".gz") and not compressed:
        raise DataError(f"{label} is not a gzip file, despite its name")
    if compressed:
        buffered = cast("IO[Any]", gzip.GzipFile(fileobj=cast("Any", buffered)))
        start = _peek(buffered, label)
    if not start:
        raise DataError(f"{label} is empty")
    return OpenSource(label=label, name=name, format=format_ or _guessed(start), stream=buffered, compressed=compressed)


def _peek(stream: Any, label: str) -> bytes:
    try:
        return bytes(stream.peek(PEEKED)[:PEEKED])
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{label} cannot be read: {error}") from error


def _guessed(start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return "excel"
    text = start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")  # in UTF-8 or UTF-16
    return "jsonl" if text.startswith(b"{") else "csv"


class _Unclosed(io.RawIOBase):
    """A caller's file as a raw stream; closing it leaves the file open."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
