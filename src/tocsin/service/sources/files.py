"""Observations from files that grow."""

import asyncio
import json
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from tocsin.data import LineParser
from tocsin.data import ParsedObservation as Line
from tocsin.service.config import FileSourceSettings
from tocsin.service.errors import Backoff
from tocsin.service.observations import Cursor, Observation, Stamps, check_name
from tocsin.service.sources.base import Source, SourceContext
from tocsin.service.sources.tails import FilePosition, Tail

# What programs that rotate files make of the old ones.
COMPRESSED = (".gz", ".xz", ".bz2", ".zst", ".zip")
# A file that is kept open is read to its end even if it is removed meanwhile.
MOST_OPEN = 256


class FileSource(Source):
    """Follows a file, or the files of a folder: new lines, new files, and files that are renamed or written anew.

    How far each was read is stored together with what was read: after a crash nothing is read twice or left out.
    Files are read in the order in which they were last written, so that a renamed one is finished before its successor.
    """

    kind = "file"

    def __init__(self, settings: FileSourceSettings, context: SourceContext) -> None:
        super().__init__(settings.name, context)
        self._settings, self._cursor, self._most = settings, context.cursor, context.most
        self._tails: dict[int, Tail] | None = None
        self._places: dict[int, FilePosition] = {}
        self._waiting: tuple[list[Observation], str] | None = None
        self._stored = ""
        self._stamps = Stamps()
        self._parser()  # refuses what it cannot work with

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
                # If this fails it is tried again: the lines were read, and are not read again.
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
        places = [tail.place.as_json() for tail in (self._tails or {}).values()]
        return json.dumps({"files": places}, separators=(",", ":"))

    def _collect(self) -> tuple[list[Observation], list[str]]:
        """The observations on new lines, at most as many as a batch has, and what is wrong with other lines."""
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
        """The files that are followed, and whether this is the first time ever."""
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
                    continue  # it was removed just now
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
        parser = tail.parser  # another one, if the file turned out to be written anew
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
