"""`tocsin watch`: lines in, verdicts out."""

import io
import json
import math
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer

from tocsin.cli.application import Exit, app, say, whole_number
from tocsin.cli.options import check_settings, number_or_text, takes_detector_settings
from tocsin.cli.reading import (
    Aggregate,
    DayFirst,
    Decimal,
    Delimiter,
    Encoding,
    Every,
    Ignore,
    Missing,
    Skip,
    TimeFormat,
    in_options,
)
from tocsin.data import LineError, LineParser, Observation, Resampler, format_times, read_signals
from tocsin.data.encodings import WESTERN, check_encoding, find_encoding
from tocsin.detection import Detector, Verdict, Watch
from tocsin.detection.audit import audit_together

#: What is said of an open incident beside its start.
OF_INCIDENTS = ("alarms", "p", "severity", "return_period", "view", "explanation")


@app.command()
@takes_detector_settings
def watch(
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Keep what was learned in this file, and go on from it if it is there."),
    ] = None,
    save_every: Annotated[
        int,
        typer.Option(
            "--save-every", parser=whole_number(1), metavar="INTEGER", help="Save the state after so many lines."
        ),
    ] = 1000,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference", help="A file that was good: new signals are compared with it, not with their past."
        ),
    ] = None,
    alarms_only: Annotated[bool, typer.Option("--alarms-only", help="Write verdicts with an alarm only.")] = False,
    file_format: Annotated[
        str, typer.Option("--format", help="How lines are written: plain, csv, jsonl or auto.")
    ] = "auto",
    time: Annotated[str | None, typer.Option("--time", help="The field of times.")] = None,
    value: Annotated[list[str] | None, typer.Option("--value", help="A field of values; repeatable.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="The field that says which signal it is.")] = None,  # noqa: A002
    every: Every = None,
    aggregate: Aggregate = "mean",
    ignore: Ignore = None,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    skip: Skip = 0,
    time_format: TimeFormat = None,
    day_first: DayFirst = None,
    *,
    settings: dict[str, Any],
) -> None:
    """Read observations from standard input, one a line, and write a verdict for each as a line of JSON.

    A line that cannot be read is told of on standard error and left out; the others go on.
    """
    if every is not None:
        if settings["interval"] is not None:
            raise typer.BadParameter("--every is the interval: leave out --interval.", param_hint="--every")
        settings["interval"] = number_or_text(every)
    check_settings(settings, interval_known=True)
    # What holds for the lines holds for the file that was good, too.
    written: dict[str, Any] = {
        "time": time, "values": value or None, "ignore": ignore or (), "delimiter": delimiter, "decimal": decimal,
        "missing": missing or None, "skip": skip, "time_format": time_format, "day_first": day_first,
    }  # fmt: skip
    try:
        parser = LineParser(file_format, id=id, **written)
        together = None if every is None else Resampler(settings["interval"], aggregate)
        check_encoding(encoding)
        good = None
        if reference is not None:
            good = _good(reference, {**written, "encoding": encoding, "every": settings["interval"] if every else None,
                                     "aggregate": aggregate})  # fmt: skip
        watched = _resumed(state, settings, good)
        if state is not None:
            watched.save(state)  # found out now, not after the first thousand lines: whether it can be written
    except (OSError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"{in_options(error)}.") from error
    damaged = told = False

    def judge(observation: Observation) -> bool:
        """Write the verdict; false if nobody reads any more."""
        verdict = watched.observe(observation, parser.features)
        if alarms_only and not verdict.alarm:
            return True
        return _write(_record(observation, verdict, watched.detectors[observation.id]))

    with _stopping_gently() as stop:
        for number, line in enumerate(_lines(stop, encoding), start=1):
            try:
                observation = parser.parse(line)
                if observation is None:
                    continue
                if not told:
                    say(parser.understood)
                    told = True
                if together is not None:
                    observation = together.push(observation)
                if observation is not None and not judge(observation):
                    break
            except (LineError, TypeError, ValueError) as error:
                say(in_options(error if isinstance(error, LineError) else f"line {number}: {error}"))
                damaged = True
                continue
            if state is not None and number % save_every == 0:
                _save(watched, state)
        else:
            for observation in () if together is None or stop.asked else together.flush():
                judge(observation)
        if state is not None:
            _save(watched, state)
    if watched.detectors:
        say(_summary(watched))
    raise typer.Exit(Exit.DAMAGED if damaged else Exit.DONE)


def _summary(watched: Watch) -> str:
    """How much was watched, and what the audit finds, of all signals together."""
    detectors = watched.detectors.values()
    signals = f" of {len(detectors)} signals" if len(detectors) > 1 else ""
    incidents = sum(len(detector.incidents) for detector in detectors)
    found = audit_together([detector.audit for detector in detectors]).in_words()
    return f"{watched.observations:,} observations{signals}, {incidents:,} incidents; {found}"


def _save(watched: Watch, state: Path) -> None:
    try:
        watched.save(state)
    except OSError as error:
        say(f"{state}: the state cannot be saved: {error}")
        raise typer.Exit(Exit.FAILED) from error


def _good(file: Path, reading: dict[str, Any]) -> Any:
    """The values of the one signal in a file."""
    with read_signals(file, **reading) as signals:
        if len(signals) != 1:
            raise ValueError(f"--reference must be a file of one signal, got {len(signals)} in {file}")
        return next(iter(signals)).values


def _resumed(state: Path | None, settings: dict[str, Any], reference: Any) -> Watch:
    if state is None or not state.exists():
        if state is not None:
            state.parent.mkdir(parents=True, exist_ok=True)
        return Watch(settings, reference)
    watched = Watch.load(state, settings, reference)
    say(f"{state}: going on after {watched.observations} observations of {len(watched.detectors)} signals")
    return watched


class _Stop:
    """Notes a signal to stop, and breaks off waiting for a line, but nothing else: what is being done is finished."""

    def __init__(self) -> None:
        self.asked = False
        self.waiting = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self.waiting:
            raise KeyboardInterrupt


@contextmanager
def _stopping_gently() -> Iterator[_Stop]:
    """Let a signal to stop end the reading, so that the state is saved."""
    stop = _Stop()
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _lines(stop: _Stop, encoding: str | None) -> Iterator[str]:
    """Standard input line by line; ends at its end, or when asked to stop."""
    stream: Any = None
    while True:
        try:
            stop.waiting = True
            if stop.asked:
                return
            stream = stream or _decoded(sys.stdin, encoding)
            line = stream.readline()
            stop.waiting = False
        except KeyboardInterrupt:
            return
        finally:
            stop.waiting = False
        if not line:
            return
        yield _text(line) if isinstance(line, bytes) else line


def _decoded(stdin: Any, encoding: str | None) -> Any:
    """Standard input in bytes, or as text where its lines cannot be told by their bytes."""
    stream = getattr(stdin, "buffer", stdin)
    if encoding is None and hasattr(stream, "peek"):
        found = find_encoding(stream.peek(1))  # waits for the first bytes, and takes none
        encoding = found if found and found.startswith("utf-16") else None
    return stream if encoding is None else io.TextIOWrapper(stream, encoding=encoding, errors="replace")


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode(WESTERN, errors="replace")


def _record(observation: Observation, verdict: Verdict, detector: Detector) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if observation.id is not None:
        record["id"] = observation.id
    if verdict.time is not None:
        record["time"] = _time(verdict.time)
    for name in ("value", "p", "alarm", "severity", "return_period", "forecast", "low", "high", "warm", "direction"):
        record[name] = _plain(getattr(verdict, name))
    if verdict.alarm:
        record["view"], record["explanation"] = verdict.view, verdict.explanation
    newest = detector.incidents[-1:] if verdict.alarm else []
    if newest and newest[0].open:
        told = {name: _plain(getattr(newest[0], name)) for name in OF_INCIDENTS}
        record["incident"] = {"start": _time(newest[0].start), **told}
    return record


def _time(time: Any) -> Any:
    return format_times(np.array([time]))[0] if isinstance(time, np.datetime64) else time


def _plain(value: Any) -> Any:
    """As JSON can say it: null for what is not there or has no bound."""
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(record: dict[str, Any]) -> bool:
    """Write one line at once; false if nobody reads any more."""
    try:
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError):
            sys.stdout.close()
        return False
    return True
