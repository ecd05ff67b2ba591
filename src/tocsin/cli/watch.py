"""`tocsin watch`: verdicts for a live stream on standard input, and the wait for its lines."""

import codecs
import json
import math
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer

from tocsin import checks
from tocsin.cli.application import Exit, app, say, whole_number
from tocsin.cli.options import (
    check_settings,
    in_options,
    number_or_text,
    takes_detector_settings,
    takes_reading_options,
)
from tocsin.data import (
    WESTERN,
    LineError,
    LineParser,
    ParsedObservation,
    Resampler,
    clear_leftovers,
    find_encoding,
    read_signals,
)
from tocsin.data.sources import check_encoding
from tocsin.data.times import zone_offset
from tocsin.detection import Watch
from tocsin.detection.incidents.audit import audit_together
from tocsin.detection.watching import WatchedObservation

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


_VERDICT_FIELDS = ("value", "p", "alarm", "severity", "return_period", "forecast", "low", "high", "warm", "direction")
#: The fields of an open incident besides its start.
_INCIDENT_FIELDS = ("alarms", "p", "severity", "return_period", "view", "explanation")
_EPOCH = datetime(1970, 1, 1)
_encode = json.JSONEncoder().encode


@app.command()
@takes_detector_settings
@takes_reading_options(columns=False, sheets=False)
def watch(
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Save the state to this file, and resume from it if it exists."),
    ] = None,
    save_every: Annotated[
        int,
        typer.Option(
            "--save-every", parser=whole_number(1), metavar="INTEGER", help="Save the state every this many lines."
        ),
    ] = 1000,
    reference: Annotated[
        Path | None,
        typer.Option("--reference", help="A known-good file to compare new signals with, instead of their past."),
    ] = None,
    alarms_only: Annotated[bool, typer.Option("--alarms-only", help="Write only verdicts with an alarm.")] = False,
    file_format: Annotated[
        str, typer.Option("--format", help="Format of the lines: plain, csv, jsonl or auto.")
    ] = "auto",
    time: Annotated[str | None, typer.Option("--time", help="The time field.")] = None,
    value: Annotated[list[str] | None, typer.Option("--value", help="A value field; repeatable.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="The field with the signal's name.")] = None,  # noqa: A002
    *,
    reading: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    """Read observations from standard input, one per line, and write one JSON verdict per line.

    A line that cannot be read is reported on standard error and skipped.
    """
    every, aggregate, encoding = (reading.pop(name, None) for name in ("every", "aggregate", "encoding"))
    if every is not None:
        if settings["interval"] is not None:
            raise typer.BadParameter("--every sets the interval: omit --interval.", param_hint="--every")
        settings["interval"] = every = number_or_text(every)
    check_settings(settings, interval_known=True)
    # The known-good file is read with the same options as the lines.
    reading |= {"time": time, "values": value or None, "zone": settings["zone"]}
    try:
        parser = LineParser(file_format, id=id, **reading)
        resampler = None if every is None else Resampler(every, aggregate)
        check_encoding(encoding)
        good = None
        if reference is not None:
            good = _good(reference, {**reading, "encoding": encoding, "every": every, "aggregate": aggregate})
        if state is not None and state.parent.is_dir():
            clear_leftovers(state.parent, f"{state.name}.", ".unfinished")
        watched = _resumed(state, settings, good)
        if state is not None:
            watched.save(state)  # fail now, not after a thousand lines, if it cannot be written
    except (OSError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"{in_options(error)}.") from error
    run = _Run(parser, resampler, watched, alarms_only=alarms_only)
    with stopping_gently() as stop:
        saved = 0
        for lines in waiting_lines(stop, encoding):
            if not run.take(lines):
                break
            if state is not None and run.lines // save_every > saved:
                saved = run.lines // save_every
                _save(watched, state)
        else:
            if not stop.asked:
                run.finish()
        if state is not None:
            _save(watched, state)
    if watched.detectors:
        say(_summary(watched))
    raise typer.Exit(Exit.DAMAGED if run.damaged else Exit.DONE)


class _Run:
    """The lines of one invocation. How they are batched does not change the output."""

    def __init__(self, parser: LineParser, resampler: Resampler | None, watched: Watch, *, alarms_only: bool) -> None:
        self._parser, self._resampler, self._watched = parser, resampler, watched
        self._alarms_only = alarms_only
        self._announced = False
        self.lines = 0
        self.damaged = False

    def take(self, lines: Sequence[str]) -> bool:
        """Judge the observations on these lines; false if the reader has gone away."""
        pending: list[tuple[int, ParsedObservation]] = []
        for line in lines:
            self.lines += 1
            try:
                observation = self._parser.parse(line)
                if observation is None:
                    continue
                if not self._announced:
                    say(in_options(self._parser.summary))
                    self._announced = True
                if self._resampler is not None:
                    observation = self._resampler.push(observation)
                if observation is not None:
                    pending.append((self.lines, observation))
            except (LineError, TypeError, ValueError) as error:
                self._complain(self.lines, error)
        return self._judge(pending)

    def finish(self) -> None:
        """Judge the last aggregated observations."""
        if self._resampler is not None:
            self._judge([(self.lines, observation) for observation in self._resampler.flush()])

    def _judge(self, pending: Sequence[tuple[int, ParsedObservation]]) -> bool:
        if not pending:
            return True
        answers = self._watched.observe([observation for _, observation in pending], self._parser.features)
        written = []
        for (number, observation), answer in zip(pending, answers, strict=True):
            if not isinstance(answer, WatchedObservation):
                self._complain(number, answer)
            elif not self._alarms_only or answer.batch.columns["alarm"][answer.step]:
                written.append(verdict_line(observation, answer) + "\n")
        return _write("".join(written))

    def _complain(self, number: int, error: Exception) -> None:
        say(in_options(error if isinstance(error, LineError) else checks.Message(f"line {number}: ", error)))
        self.damaged = True


def _summary(watched: Watch) -> str:
    """How much was watched, and the audit over all signals."""
    detectors = watched.detectors.values()
    signals = f" of {len(detectors)} signals" if len(detectors) > 1 else ""
    incidents = sum(len(detector.incidents) for detector in detectors)
    found = audit_together([detector.audit for detector in detectors]).in_words()
    return f"{watched.observations:,} observations{signals}, {incidents:,} incidents; {found}"


def _save(watched: Watch, state: Path) -> None:
    try:
        watched.save(state)
    except OSError as error:
        say(f"{state}: cannot save the state: {error}")
        raise typer.Exit(Exit.FAILED) from error


def _good(file: Path, reading: dict[str, Any]) -> Any:
    """The values of the one signal in a file."""
    with read_signals(file, **reading) as signals:
        if len(signals) != 1:
            raise ValueError(f"--reference must be a file with one signal, got {len(signals)} in {file}")
        return next(iter(signals)).values


def _resumed(state: Path | None, settings: dict[str, Any], reference: Any) -> Watch:
    if state is None or not state.exists():
        if state is not None:
            state.parent.mkdir(parents=True, exist_ok=True)
        return Watch(settings, reference)
    watched = Watch.load(state, settings, reference)
    say(f"{state}: resuming after {watched.observations} observations of {len(watched.detectors)} signals")
    return watched


def _write(text: str) -> bool:
    """Write lines without delay; false if the reader has gone away."""
    left = memoryview(text.encode())
    try:
        while left:
            left = left[sys.stdout.buffer.write(left) :]  # unbuffered: a signal may interrupt a write
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        with suppress(OSError):
            sys.stdout.close()
        return False
    return True


def verdict_line(observation: ParsedObservation, judged: WatchedObservation) -> str:
    """The line for one observation."""
    record: dict[str, Any] = {}
    if observation.id is not None:
        record["id"] = observation.id
    if judged.time is not None:
        record["time"] = _time(judged.time, observation.zone)
    columns, step = judged.batch.columns, judged.step
    for name in _VERDICT_FIELDS:
        record[name] = columns[name][step]
    if record["alarm"]:
        why = judged.batch.explanation(step, judged.time)
        record["view"], record["explanation"] = (why.view, why.text) if why else (None, None)
        incident = judged.batch.incidents[step]
        if incident is not None:
            fields = {name: _plain(getattr(incident, name)) for name in _INCIDENT_FIELDS}
            record["incident"] = {"start": _time(incident.start, observation.zone), **fields}
    return _encode(record)


def _time(time: Any, zone: str | None) -> Any:
    """A time as it was written: in its zone, if it had one, and with no more digits than needed."""
    if not isinstance(time, np.datetime64):
        return time
    stamp = int(time.astype("datetime64[ns]").astype(np.int64)) + zone_offset(zone)
    second, rest = divmod(stamp, 10**9)
    text = (_EPOCH + timedelta(seconds=second)).isoformat()
    digits = next(digits for digits in (0, 3, 6, 9) if not rest % 10 ** (9 - digits))
    fraction = f".{rest:09d}"[: digits + 1] if digits else ""
    return f"{text}{fraction}{zone or ''}"


def _plain(value: Any) -> Any:
    """A value that JSON can express: null if it is missing or infinite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
