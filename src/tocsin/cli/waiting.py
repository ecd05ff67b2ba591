"""Lines of standard input: all that are waiting in one batch, a single one without delay."""

import codecs
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tocsin.data import WESTERN, find_encoding

# Bytes to read at once, at most. Later lines wait while these are judged.
CHUNK = 2**15


class Stop:
    """Records a signal to stop. It interrupts only the wait for lines; work in progress finishes."""

    def __init__(self) -> None:
        self.asked = False
        self.waiting = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self.waiting:
            raise KeyboardInterrupt


@contextmanager
def stopping_gently() -> Iterator[Stop]:
    """On a signal to stop, end the reading so that the state is saved."""
    stop = Stop()
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def waiting_lines(stop: Stop, encoding: str | None) -> Iterator[list[str]]:
    """Lines of standard input in batches as they arrive, until the end of input or a request to stop."""
    stream: Any = None
    lines: _Lines | None = None
    while True:
        try:
            stop.waiting = True
            if stop.asked:
                return
            if lines is None:
                stream, lines = _opened(sys.stdin, encoding)
            data = stream.read1(CHUNK)
            stop.waiting = False
        except KeyboardInterrupt:
            return
        finally:
            stop.waiting = False
        found = lines.add(data)
        if found:
            yield found
        if not data:
            return


class _Lines:
    """Assembles whole lines from pieces of bytes."""

    def __init__(self, encoding: str | None) -> None:
        self._decoder = None if encoding is None else codecs.getincrementaldecoder(encoding)(errors="replace")
        self._rest: Any = b"" if encoding is None else ""

    def add(self, data: bytes) -> list[str]:
        """The lines that are now complete; with no data, the remainder."""
        text: Any = data if self._decoder is None else self._decoder.decode(data, final=not data)
        *whole, self._rest = (self._rest + text).split("\n" if self._decoder else b"\n")
        if not data and self._rest:
            whole.append(self._rest)
        return [_text(line) if isinstance(line, bytes) else line for line in whole]


def _opened(stdin: Any, encoding: str | None) -> tuple[Any, _Lines]:
    """Standard input in bytes, and its line assembler. UTF-16 is detected here, other encodings line by line."""
    stream = getattr(stdin, "buffer", stdin)
    if encoding is None and hasattr(stream, "peek"):
        found = find_encoding(stream.peek(1))  # waits for the first bytes without consuming them
        encoding = found if found and found.startswith("utf-16") else None
    return stream, _Lines(encoding)


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode(WESTERN, errors="replace")
