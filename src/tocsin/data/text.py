"""Text in chunks of lines, with exact line numbers, from files that may be damaged."""

import io
import re
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.data.encodings import WESTERN, check_encoding, find_encoding
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.sources import PEEKED, OpenSource

CHUNK_SIZE = 2**19  # bytes or characters that fill a chunk

_BYTEWISE = frozenset({"utf-8", "ascii", "iso8859-1", WESTERN})  # encodings in which line-end bytes occur nowhere else
_UNDECODABLE = re.compile("[\ud800-\udfff]")  # Python's stand-ins for undecodable bytes


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
        """The number of lines."""
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
            raise DataError(
                f"{self._source.label} is not text, so it cannot be read as {self._source.format} "
                "(if it is text in another encoding, set `encoding`)"
            )
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
