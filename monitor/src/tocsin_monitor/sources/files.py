"""Observations from files that grow."""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tocsin.data import LineParser
from tocsin.data import ParsedObservation as Line
from tocsin_monitor.config.sources import FileSourceSettings
from tocsin_monitor.errors import Backoff
from tocsin_monitor.observations import Cursor, Observation, Stamps, check_name
from tocsin_monitor.sources.base import Source, SourceContext

CHUNK = 2**18  # bytes read at once
LONGEST_LINE = 2**20  # bytes; anything longer is not a line
# Endings of old files that log rotation has compressed.
COMPRESSED = (".gz", ".xz", ".bz2", ".zst", ".zip")
# A file that is kept open is read to its end, even if it is removed in the meantime.
MOST_OPEN = 256
HEAD = 256  # bytes at the start, by which a file is recognised


@dataclass
class FilePosition:
    """How far a file was read, as stored. The file is recognised by its inode and its first bytes."""

    inode: int
    name: str
    offset: int = 0
    line: int = 0
    head: str = ""
    head_size: int = 0


class Tail:
    """Reads the complete lines that are appended to a file, from a position on.

    A file that was truncated or rewritten with the same inode is read from its start.
    """

    def __init__(self, path: Path, place: FilePosition, make_parser: Callable[[], LineParser]) -> None:
        self.path, self.place = path, place
        self._make_parser = make_parser
        self._parser: LineParser | None = None
        self._file: BinaryIO | None = None
        self._seen = (-1, -1)

    @property
    def parser(self) -> LineParser:
        """The parser of its lines, which has read the header and the first observation."""
        if self._parser is None:
            self._parser = self._primed()
        return self._parser

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def changed(self, status: os.stat_result) -> bool:
        """Whether the file may have new lines."""
        return self._seen != (status.st_size, status.st_mtime_ns)

    def skip_to_end(self) -> None:
        """Skip all complete lines. A line that is not complete yet is read when it is."""
        file = self._opened()
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - LONGEST_LINE)
        file.seek(start)
        self.place.offset = start + file.read(size - start).rfind(b"\n") + 1
        self._know_again()

    def lines(self, most: int) -> list[str]:
        """The next complete lines, at most `most`; fewer only if there are no more at the moment."""
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
                data += b"\n"  # too long for a line: passed on in pieces, which are refused
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
        """A parser that has read the start of the file, up to the first observation before the position."""
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
                    continue  # it was reported when it was new
        finally:
            self.place = place
        parser.line = place.line
        return parser


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class FileSource(Source):
    """Follows a file, or the files of a folder: new lines, new files, and files that are renamed or rewritten.

    The position in each file is stored together with its observations, so after a crash nothing is read twice or left
    out. Files are read in the order of their last change, so a renamed file is finished before its successor.
    """

    def __init__(self, settings: FileSourceSettings, context: SourceContext) -> None:
        super().__init__(settings.name, context)
        self._settings, self._cursor, self._most = settings, context.cursor, context.most
        self._tails: dict[int, Tail] | None = None
        self._places: dict[int, FilePosition] = {}
        self._waiting: tuple[list[Observation], str] | None = None
        self._stored = ""
        self._stamps = Stamps()
        self._parser()  # ValueError if the settings are invalid

    def _parser(self) -> LineParser:
        settings = self._settings
        return LineParser(
            settings.format,
            time=settings.time,
            values=settings.value or None,
            id=settings.id,
            time_format=settings.time_format,
            delimiter=settings.delimiter,
        )

    async def _work(self, backoff: Backoff) -> None:
        try:
            while True:
                if self._waiting is None:
                    observations, troubles = await asyncio.to_thread(self._collect)
                    for trouble in troubles:
                        self._skipped(trouble)
                    position = self._position()
                    if position != self._stored:
                        self._waiting = observations, position
                if self._waiting is None:
                    self._succeeded()
                    await asyncio.sleep(self._settings.poll)
                    continue
                # If this fails, it is tried again with the same lines, which are not read again.
                observations, position = self._waiting
                await self._hand_over(observations, Cursor(self.name, position))
                self._stored, self._waiting = position, None
                backoff.succeeded()
                if len(observations) < self._most:
                    await asyncio.sleep(self._settings.poll)
        finally:
            for tail in (self._tails or {}).values():
                tail.close()

    def _position(self) -> str:
        places = [asdict(tail.place) for tail in (self._tails or {}).values()]
        return json.dumps({"files": places}, separators=(",", ":"))

    def _collect(self) -> tuple[list[Observation], list[str]]:
        """The observations on new lines, at most one batch, and what is wrong with other lines."""
        tails, first_time = self._remembered()
        there = {status.st_ino: (path, status) for path, status in self._files(tails)}
        for inode, (path, _) in there.items():
            if inode not in tails:
                place = self._places.get(inode) or FilePosition(inode, path.name)
                tails[inode] = Tail(path, place, self._parser)
                if first_time and not self._settings.from_start:
                    tails[inode].skip_to_end()
            tails[inode].path = path
        observations: list[Observation] = []
        troubles: list[str] = []
        gone = [inode for inode in tails if inode not in there]
        for inode in [*gone, *sorted(there, key=lambda inode: there[inode][1].st_mtime_ns)]:
            tail = tails[inode]
            if len(observations) >= self._most:
                break
            if inode in gone or tail.changed(there[inode][1]):
                self._read(tail, observations, troubles)
            if inode in gone and len(observations) < self._most:
                tails.pop(inode).close()
            elif len(tails) > MOST_OPEN:
                tail.close()
        self._places = {}
        return observations, troubles

    def _remembered(self) -> tuple[dict[int, Tail], bool]:
        """The files that are followed, and whether the source has never stored a position."""
        if self._tails is not None:
            return self._tails, False
        position = self._cursor(self.name)
        if position is not None:
            self._stored = position
            self._places = {one["inode"]: FilePosition(**one) for one in json.loads(position)["files"]}
        self._tails = {}
        return self._tails, position is None

    def _files(self, tails: dict[int, Tail]) -> Iterator[tuple[Path, os.stat_result]]:
        path = self._settings.path
        folder = path if path.is_dir() else path.parent
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if not entry.is_file():
                        continue
                    status = entry.stat()
                except OSError:
                    continue  # it was just removed
                known = status.st_ino in tails or status.st_ino in self._places
                if known or self._wanted(entry.name, folder):
                    yield Path(entry.path), status

    def _wanted(self, name: str, folder: Path) -> bool:
        if folder != self._settings.path:
            return name == self._settings.path.name
        pattern = self._settings.pattern
        hidden = name.startswith(".") and not pattern.startswith(".")
        return not hidden and not name.endswith(COMPRESSED) and fnmatchcase(name, pattern)

    def _read(self, tail: Tail, observations: list[Observation], troubles: list[str]) -> None:
        try:
            parser = tail.parser
            lines = tail.lines(self._most - len(observations))
        except OSError as error:
            troubles.append(f"{tail.path.name}: {error.strerror or error}")
            return
        parser = tail.parser  # a new one if the file was rewritten
        for text in lines:
            try:
                line = parser.parse(text)
                if line is not None:
                    observations.append(self._observation(line, parser.features, tail.place.name))
            except ValueError as error:
                troubles.append(f"{tail.path.name}, {error}")
        tail.place.line = parser.line

    def _observation(self, line: Line, features: tuple[str, ...] | None, file: str) -> Observation:
        if isinstance(line.time, float):
            raise ValueError(f"a time must be an ISO 8601 time, a date or a Unix time, got {line.time:g}")
        time = self._stamps.next() if line.time is None else int(line.time.astype("datetime64[ns]").astype(np.int64))
        signal = check_name(line.id if line.id is not None else Path(file).stem)
        return Observation(signal, time, line.values, features if len(line.values) > 1 else None)
