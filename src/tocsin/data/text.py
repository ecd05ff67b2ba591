"""Text in chunks of lines, with exact line numbers, from files that may be damaged."""

import io
import re
import zlib
from collections.abc import Iterator
from typing import Any

from tocsin import checks
from tocsin.data.encodings import check_encoding, find_encoding
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.sources import PEEKED, OpenSource

CHUNK = 16_384  # lines, at most
CHUNK_SIZE = 2**21  # characters, after which a chunk is full: a line may hold thousands of cells

_UNDECODABLE = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that make no sense


class TextChunks:
    """Iterates over (number of the first line, lines). Undecodable bytes become U+FFFD and are reported.

    The encoding is found by the first bytes if it is not given. The first `skip` lines are passed over.
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
                f"{self._source.label} is not text (or in an encoding that must be given: `encoding`); "
                f"it was to be read as {self._source.format}"
            )
        return encoding

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        number = 1
        for chunk in _chunks(self._lines()):
            if not all(map(str.isascii, chunk)):
                self._repair(chunk, number)
            if number == 1:
                chunk[0] = chunk[0].removeprefix("\ufeff")  # a byte order mark is no part of the text
            passed = max(self._skip + 1 - number, 0)
            if passed < len(chunk):
                yield number + passed, chunk[passed:]
            number += len(chunk)

    def _lines(self) -> Iterator[str]:
        stream = self._source.stream
        text = stream
        if not isinstance(stream, io.TextIOBase):
            text = io.TextIOWrapper(stream, encoding=self.encoding, errors="surrogateescape", newline="")
        count = 0
        try:
            for line in text:
                count += 1
                yield line
        except UnicodeError as error:
            raise DataError(f"{self._source.label} cannot be read as {self.encoding}: {error}") from error
        except (EOFError, zlib.error, OSError) as error:
            if not self._source.compressed:
                raise DataError(f"{self._source.label} cannot be read: {error}") from error
            self._log.add("cut short", 1, [f"after line {count}: the rest of the gzip file is damaged or missing"])
        finally:
            if isinstance(text, io.TextIOWrapper) and text is not stream:
                text.detach()  # else its end would close what is not ours

    def _repair(self, chunk: list[str], first: int) -> None:
        for i, line in enumerate(chunk):
            bad = _UNDECODABLE.search(line)
            if bad is not None:
                self._log.add("undecodable text", 1, [f"line {first + i}: byte 0x{ord(bad[0]) & 0xFF:02x}"])
                chunk[i] = _UNDECODABLE.sub("\N{REPLACEMENT CHARACTER}", line)


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if len(chunk) >= CHUNK or size >= CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
