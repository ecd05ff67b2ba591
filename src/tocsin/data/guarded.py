"""Readers of formats that libraries in other languages parse, each in a process of its own.

A damaged or hostile file can make such a library allocate what the file claims to hold, or end its process. Here that
is a process that reads this one file, with limits of memory and time.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np

from tocsin.arrays import pack_arrays, unpack_arrays
from tocsin.checks import Argument, Message, message_of
from tocsin.data.formats import ExcelReader, ParquetFolderReader, ParquetReader
from tocsin.data.leftovers import check_room
from tocsin.data.numbers import Cells
from tocsin.data.problems import DataError
from tocsin.data.sources import OpenSource, Source
from tocsin.data.tables import ANYTHING, BlockReader, ExpectedTypes, RowBlock

# The time that a file of any size may take, and for how many bytes it may take a second more.
LEAST_SECONDS, BYTES_PER_SECOND = 60, 100_000
LEAST_MEMORY = 2**29
# Before the number of an open file, for one that has no name.
UNNAMED = "/dev/fd/"


def memory_of_machine() -> int:
    """The bytes of memory available to this process: those of the machine, or of its container."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 * 2**30
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return found
    return min(found, int(limit)) if limit.isdigit() else found


@dataclass(frozen=True)
class GuardedFile:
    """A file or folder to read, and how: the arguments of `ExcelReader`, or none for Parquet."""

    path: str
    label: str
    format: str
    arguments: Sequence[Any]
    #: The limits of the process, in bytes and in seconds of computing.
    memory: int
    seconds: int

    def open(self, resources: ExitStack) -> BlockReader:
        if os.path.isdir(self.path):
            return ParquetFolderReader(self.path)
        stream = resources.enter_context(open(self.path, "rb"))  # noqa: SIM115
        source = OpenSource(self.label, self.label, self.format, stream, compressed=False)
        return ParquetReader(source) if self.format == "parquet" else ExcelReader(source, *self.arguments)


class GuardedReader:
    """Reads a file, or a folder of Parquet files, as the reader for its format does, but in another process."""

    unit = "row"
    names: Sequence[str]
    notes: Sequence[str]
    zoned: Collection[str]

    def __init__(
        self,
        path: str,
        label: str,
        format: str,  # noqa: A002
        resources: ExitStack,
        arguments: tuple[Any, ...] = (),
    ) -> None:
        self.label = label
        files = [path] if os.path.isfile(path) else [one for one in Path(path).rglob("*") if one.is_file()]
        self._file = GuardedFile(
            path, label, format, arguments,
            memory=max(LEAST_MEMORY, memory_of_machine() // 4),
            seconds=LEAST_SECONDS + sum(map(os.path.getsize, files)) // BYTES_PER_SECOND,
        )  # fmt: skip
        # It imports what this process does. What a library says before it ends is not for the reader of a file.
        paths = os.pathsep.join(map(os.path.abspath, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from tocsin.data.guarded import serve; serve()"],
            env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            pass_fds=[int(path.removeprefix(UNNAMED))] if path.startswith(UNNAMED) else (),
        )  # fmt: skip
        resources.callback(self._end)
        self._send(asdict(self._file))
        (self.names, self.notes, self.zoned), self._sample = self._receive()

    def sample(self) -> Mapping[str, Cells]:
        return dict(zip(self.names, self._sample, strict=True))

    def blocks(self, columns: Sequence[str], expected: ExpectedTypes = ANYTHING) -> Iterator[RowBlock]:
        self._send(list(columns))
        while parts := self._receive()[1]:
            lines, *cells = parts
            yield RowBlock(np.asarray(lines), dict(zip(columns, cells, strict=True)))

    def _send(self, thing: Any) -> None:
        with suppress(BrokenPipeError):  # `_receive` says why
            _write(self._process.stdin, thing)

    def _receive(self) -> tuple[Any, list[Cells]]:
        try:
            found, columns = _read(self._process.stdout)
        except (EOFError, TypeError, ValueError):
            raise DataError(f"{self.label} cannot be read: {self._why()}") from None
        if isinstance(found, dict):
            raise DataError(Message(*(part if isinstance(part, str) else Argument(*part) for part in found["error"])))
        return found, columns

    def _why(self) -> str:
        """Why the process ended."""
        ended = -self._process.wait()
        if ended == getattr(signal, "SIGXCPU", None):
            return f"that takes more than {self._file.seconds} s"
        return f"it is damaged, or reading it takes more than {self._file.memory / 2**20:,.0f} MB of memory"

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def guarded_reader(source: Source, opened: OpenSource, resources: ExitStack, *arguments: Any) -> GuardedReader:
    """Read an open Excel or Parquet file. What is no plain file is first copied to one."""
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    if opened.compressed or not os.path.isfile(path):
        copy = resources.enter_context(tempfile.TemporaryFile(prefix="tocsin-"))  # noqa: SIM115
        try:
            while piece := opened.stream.read(2**20):
                check_room(len(piece))
                copy.write(piece)
            copy.flush()
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{opened.label} cannot be read: {error}") from error
        path = f"{UNNAMED}{copy.fileno()}"  # it has no name: nothing is left of it, however this process ends
    return GuardedReader(path, opened.label, opened.format, resources, arguments)


def _limit(file: GuardedFile) -> None:
    """Set the limits of this process."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, this process ends, and no other
    try:
        import resource
    except ImportError:
        return  # not on this system
    resource.setrlimit(resource.RLIMIT_DATA, (file.memory, file.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (file.seconds, file.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve() -> None:
    """Read the file that the parent names, and send it what it asks for."""
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints may come in between
    file = GuardedFile(**_read(incoming)[0])
    _limit(file)
    with ExitStack() as resources:
        try:
            reader = file.open(resources)
            sample = reader.sample()
            _write(outgoing, (reader.names, reader.notes, list(reader.zoned)), [sample[name] for name in reader.names])
            columns, _ = _read(incoming)
            for block in reader.blocks(columns):
                _write(outgoing, None, [block.lines, *(block.cells[name] for name in columns)])
            _write(outgoing, None)
        except (EOFError, BrokenPipeError, KeyboardInterrupt):
            pass  # nobody reads on
        except MemoryError:
            _write(
                outgoing, {"error": [f"{file.label} takes more than {file.memory / 2**20:,.0f} MB of memory to read"]}
            )
        except Exception as error:
            said = message_of(error) if isinstance(error, DataError) else f"{file.label} cannot be read: {error}"
            parts = [part if isinstance(part, str) else (part.name, part.subject) for part in Message(said).parts]
            _write(outgoing, {"error": parts})


# What the two processes tell each other: text in JSON, then the columns that are arrays. No pickles, since a hostile
# file may have taken over the process that sends them.
_LENGTHS = struct.Struct("<QQ")
_TYPES: dict[str, Any] = {"datetime": datetime, "date": date, "time": time}


def _write(stream: Any, told: Any, columns: Sequence[Cells] = ()) -> None:
    arrays = {str(place): cells for place, cells in enumerate(columns) if isinstance(cells, np.ndarray)}
    lists = [None if isinstance(cells, np.ndarray) else list(cells) for cells in columns]
    text, packed = json.dumps((told, lists), default=_tagged).encode(), pack_arrays(arrays)
    stream.write(_LENGTHS.pack(len(text), len(packed)) + text + packed)
    stream.flush()


def _read(stream: Any) -> tuple[Any, list[Cells]]:
    """EOFError if there is no more, ValueError or TypeError if it is damaged."""
    head = stream.read(_LENGTHS.size)
    if len(head) < _LENGTHS.size:
        raise EOFError
    text, packed = map(stream.read, _LENGTHS.unpack(head))
    told, lists = json.loads(text, object_hook=_untagged)
    for place, array in unpack_arrays(packed).items():
        lists[int(place)] = array
    return told, lists


def _tagged(cell: Any) -> Any:
    """A time as JSON; as text, what is neither number nor time."""
    return {type(cell).__name__: cell.isoformat()} if type(cell).__name__ in _TYPES else str(cell)


def _untagged(found: dict[str, Any]) -> Any:
    kind, text = next(iter(found.items()), ("", ""))
    return _TYPES[kind].fromisoformat(text) if kind in _TYPES and len(found) == 1 else found
