"""Opening of sources: a path, standard input or an open file, compressed or not; and their text, line by line."""

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from tocsin import checks
from tocsin.checks import Argument, ArgumentError, Message
from tocsin.data.problems import DataError, ProblemLog

FORMATS = {
    "csv": (".csv",), "tsv": (".tsv", ".tab"), "jsonl": (".jsonl", ".ndjson"), "parquet": (".parquet", ".pq"),
    "excel": (".xlsx", ".xlsm", ".xls", ".ods"),
}  # fmt: skip
SUFFIXES = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}

Source = str | PathLike[str] | IO[Any]

UNNAMED = "the open file"
PEEKED = 2**16  # bytes used to detect format and encoding
_GZIP = b"\x1f\x8b"

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
WESTERN = "cp1252"  # Latin-1 as Windows writes it
ENCODING_NAMES = {"utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", WESTERN: "Latin-1"}
CHUNK_SIZE = 2**19  # bytes or characters that fill a chunk
_BYTEWISE = frozenset({"utf-8", "ascii", "iso8859-1", WESTERN})  # encodings in which line-end bytes occur nowhere else
_UNDECODABLE = re.compile("[\ud800-\udfff]")  # Python's stand-ins for undecodable bytes


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


def check_encoding(encoding: str | None) -> str | None:
    """The encoding's canonical name; ValueError if it is unknown."""
    try:
        return None if encoding is None else codecs.lookup(encoding).name
    except LookupError:
        raise ArgumentError("encoding", f"must be one that Python knows, such as 'utf-8', got {encoding!r}") from None


def find_encoding(start: bytes) -> str | None:
    """UTF-8, UTF-16 or Western (Latin-1); None if the bytes are not text.

    Without a byte order mark, UTF-16 shows by a zero in every other byte. Text that is not valid UTF-8 is Western,
    unless parts of it can only be UTF-8: then it is damaged UTF-8.

    Examples
    --------
    >>> find_encoding("Größe".encode()), find_encoding("Größe".encode("latin-1")), find_encoding(b"a\\0;\\0b\\0")
    ('utf-8', 'cp1252', 'utf-16-le')
    """
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    if b"\0" in start:
        for first, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):
            if start[first::2].count(0) > 0.7 * len(start[first::2]) and start[1 - first :: 2].count(0) == 0:
                return encoding
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        proper = start.decode("utf-8", errors="ignore")
        return "utf-8" if _BEYOND_ASCII.search(proper.encode()) else WESTERN
    return "utf-8"


class Chunk:
    """Some lines: the number of the first, and their bytes if known (`raw`); decoded on demand.

    Undecodable bytes become U+FFFD and are reported.
    """

    def __init__(self, first: int, raw: bytes | None, lines: list[str] | None, encoding: str, log: ProblemLog) -> None:
        self.first = first
        self.raw = raw
        self._given = lines
        self._encoding = encoding
        self._log = log

    @cached_property
    def lines(self) -> list[str]:
        lines = self._given
        if lines is None:
            text = (self.raw or b"").decode(self._encoding, errors="surrogateescape")
            lines = list(io.StringIO(text, newline=""))
        if not all(map(str.isascii, lines)):
            for i, line in enumerate(lines):
                bad = _UNDECODABLE.search(line)
                if bad is not None:
                    place = f"line {self.first + i}: byte 0x{ord(bad[0]) & 0xFF:02x}"
                    self._log.add("undecodable text", 1, [place])
                    lines[i] = _UNDECODABLE.sub("\N{REPLACEMENT CHARACTER}", line)
        return lines

    @cached_property
    def count(self) -> int:
        raw = self.raw
        if raw is None or (b"\r" in raw and raw.count(b"\r") != raw.count(b"\r\n")):
            return len(self.lines)
        ends = np.count_nonzero(np.frombuffer(raw, dtype=np.uint8) == ord("\n"))  # many times faster than bytes.count
        return int(ends) + (not raw.endswith(b"\n"))

    def without(self, count: int) -> "Chunk":
        """The lines after the first `count`."""
        return Chunk(self.first + count, None, self.lines[count:], self._encoding, self._log)


class TextChunks:
    """Iterates over the chunks of a text.

    The encoding is detected from the first bytes if not given. The first `skip` lines are skipped.
    """

    def __init__(self, source: OpenSource, encoding: str | None, log: ProblemLog, skip: int = 0) -> None:
        self._source = source
        self._log = log
        self._skip = checks.integer("skip", skip, least=0)
        self.encoding = check_encoding(encoding) or self._found()

    def _found(self) -> str:
        stream: Any = self._source.stream
        if isinstance(stream, io.TextIOBase):
            return "utf-8"
        encoding = find_encoding(stream.peek(PEEKED)[:PEEKED])
        if encoding is None:
            problem = f"{self._source.label} is not text, so it cannot be read as {self._source.format}"
            raise DataError(Message(problem, " (if it is text in another encoding, set ", Argument("encoding"), ")"))
        return encoding

    def __iter__(self) -> Iterator[Chunk]:
        number = 1
        try:
            for chunk in self._chunks():
                chunk.first = number
                if number == 1:
                    chunk.lines[0] = chunk.lines[0].removeprefix("\ufeff")  # a byte order mark is not part of the text
                number += chunk.count
                passed = max(self._skip + 1 - chunk.first, 0)
                if passed < chunk.count:
                    yield chunk.without(passed) if passed else chunk
        except UnicodeError as error:
            raise DataError(f"{self._source.label} cannot be read as {self.encoding}: {error}") from error
        except (EOFError, zlib.error, OSError) as error:
            if not self._source.compressed:
                raise DataError(f"{self._source.label} cannot be read: {error}") from error
            place = f"after line {number - 1}: the rest of the gzip file is damaged or missing"
            self._log.add("cut short", 1, [place])

    def _chunks(self) -> Iterator[Chunk]:
        stream: Any = self._source.stream
        if isinstance(stream, io.TextIOBase) or self.encoding not in _BYTEWISE:
            yield from (Chunk(0, None, lines, self.encoding, self._log) for lines in self._by_lines(stream))
        else:
            yield from (Chunk(0, raw, None, self.encoding, self._log) for raw in _whole_lines(stream))

    def _by_lines(self, stream: Any) -> Iterator[list[str]]:
        text = stream
        if not isinstance(stream, io.TextIOBase):
            text = io.TextIOWrapper(stream, encoding=self.encoding, errors="surrogateescape", newline="")
        try:
            while lines := text.readlines(CHUNK_SIZE):
                yield lines
        finally:
            if text is not stream:
                text.detach()  # otherwise it would close the caller's stream


def _whole_lines(stream: Any) -> Iterator[bytes]:
    """Pieces of bytes that end at a line end. What was read before an error comes first."""
    read = getattr(stream, "read1", stream.read)
    parts: list[bytes] = []
    size, full = 0, CHUNK_SIZE
    trouble: Exception | None = None
    while True:
        try:
            part = read(min(PEEKED, CHUNK_SIZE))
        except (EOFError, OSError, zlib.error) as error:
            part, trouble = b"", error
        parts.append(part)
        size += len(part)
        if part and size < full:
            continue
        data = b"".join(parts)
        # A carriage return at the very end may be half of a line end.
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1 if part or trouble else len(data)
        if end:
            yield data[:end]
        if trouble is not None:
            raise trouble
        if not part:
            return
        parts, size = [data[end:]], size - end
        full = max(CHUNK_SIZE, 2 * size)  # a line may have any length
