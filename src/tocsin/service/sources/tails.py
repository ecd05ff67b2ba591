"""The end of a file that grows."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from tocsin.data import LineParser

CHUNK = 2**18  # bytes read at once
LONGEST_LINE = 2**20  # bytes: what is longer is no line
HEAD = 256  # bytes by which a file is known again


@dataclass
class FilePosition:
    """How far a file was read, as it is stored: the file is known by its inode and by how it begins."""

    inode: int
    name: str
    offset: int = 0
    line: int = 0
    head: str = ""
    head_size: int = 0

    def as_json(self) -> dict[str, int | str]:
        """For the cursor."""
        return asdict(self)


class Tail:
    """Reads the complete lines that a file gets, from a place on.

    A file that was cut short or written anew, in the same inode, is read from its start.
    """

    def __init__(self, path: Path, place: FilePosition, make_parser: Callable[[], LineParser]) -> None:
        self.path, self.place = path, place
        self._make_parser = make_parser
        self._parser: LineParser | None = None
        self._file: BinaryIO | None = None
        self._seen = (-1, -1)

    @property
    def parser(self) -> LineParser:
        """The parser of its lines, which knows the header and the first observation."""
        if self._parser is None:
            self._parser = self._primed()
        return self._parser

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def changed(self, status: os.stat_result) -> bool:
        """Whether there may be something new."""
        return self._seen != (status.st_size, status.st_mtime_ns)

    def skip_to_end(self) -> None:
        """Take up only what comes from now on; a line that is not complete yet is still to come."""
        file = self._opened()
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - LONGEST_LINE)
        file.seek(start)
        self.place.offset = start + file.read(size - start).rfind(b"\n") + 1
        self._know_again()

    def lines(self, most: int) -> list[str]:
        """The next complete lines, at most so many; fewer than `most` only if there are no more by now."""
        file = self._opened()
        status = os.fstat(file.fileno())
        if status.st_size < self.place.offset or not self._is_same(file):
            self.place = FilePosition(self.place.inode, self.place.name)
            self._parser = None
        found: list[str] = []
        while len(found) < most:
            some = self._next_lines(file, most - len(found))
            if not some:
                self._seen = (status.st_size, status.st_mtime_ns)
                break
            found += some
        self._know_again()
        return found

    def _next_lines(self, file: BinaryIO, most: int) -> list[str]:
        file.seek(self.place.offset)
        data = file.read(CHUNK)
        if b"\n" not in data and len(data) == CHUNK:
            data += file.read(LONGEST_LINE - CHUNK)
            if b"\n" not in data and len(data) == LONGEST_LINE:
                data += b"\n"  # too long to be a line: passed on, to be refused piece by piece
                self.place.offset -= 1
        pieces = data.split(b"\n")[:-1][:most]
        self.place.offset += sum(map(len, pieces)) + len(pieces)
        return [piece.decode("utf-8", errors="replace") for piece in pieces]

    def _opened(self) -> BinaryIO:
        if self._file is None:
            self._file = self.path.open("rb")
        return self._file

    def _is_same(self, file: BinaryIO) -> bool:
        file.seek(0)
        return _digest(file.read(self.place.head_size)) == self.place.head or not self.place.head_size

    def _know_again(self) -> None:
        size = min(HEAD, self.place.offset)
        if size != self.place.head_size:
            file = self._opened()
            file.seek(0)
            self.place.head, self.place.head_size = _digest(file.read(size)), size

    def _primed(self) -> LineParser:
        """A parser that has read the file's beginning, up to the first observation before the place."""
        parser, start = self._make_parser(), FilePosition(self.place.inode, self.place.name)
        place, self.place = self.place, start
        try:
            file = self._opened()
            while parser.features is None and start.offset < place.offset:
                some = self._next_lines(file, 1)
                if not some:
                    break
                try:
                    parser.parse(some[0])
                except ValueError:
                    continue  # it was told of when it was new
        finally:
            self.place = place
        parser.line = place.line
        return parser


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
