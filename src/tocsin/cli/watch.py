"""`tocsin watch`: lines in, verdicts out."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli.application import Exit, app, say, whole_number
from tocsin.cli.options import check_settings, number_or_text, takes_detector_settings
from tocsin.cli.reading import in_options, takes_reading_options
from tocsin.cli.verdict_lines import line_of
from tocsin.cli.waiting import stopping_gently, waiting_lines
from tocsin.data import LineError, LineParser, ParsedObservation, Resampler, read_signals
from tocsin.data.sources import check_encoding
from tocsin.detection import Watch
from tocsin.detection.audit import audit_together
from tocsin.detection.watching import WatchedObservation


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
    reading |= {"time": time, "values": value or None}
    try:
        parser = LineParser(file_format, id=id, **reading)
        together = None if every is None else Resampler(every, aggregate)
        check_encoding(encoding)
        good = None
        if reference is not None:
            good = _good(reference, {**reading, "encoding": encoding, "every": every, "aggregate": aggregate})
        watched = _resumed(state, settings, good)
        if state is not None:
            watched.save(state)  # fail now, not after a thousand lines, if it cannot be written
    except (OSError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"{in_options(error)}.") from error
    run = _Run(parser, together, watched, alarms_only=alarms_only)
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

    def __init__(self, parser: LineParser, together: Resampler | None, watched: Watch, *, alarms_only: bool) -> None:
        self._parser, self._together, self._watched = parser, together, watched
        self._alarms_only = alarms_only
        self._told = False
        self.lines = 0
        self.damaged = False

    def take(self, lines: Sequence[str]) -> bool:
        """Judge the observations on these lines; false if the reader has gone away."""
        coming: list[tuple[int, ParsedObservation]] = []
        for line in lines:
            self.lines += 1
            try:
                observation = self._parser.parse(line)
                if observation is None:
                    continue
                if not self._told:
                    say(self._parser.summary)
                    self._told = True
                if self._together is not None:
                    observation = self._together.push(observation)
                if observation is not None:
                    coming.append((self.lines, observation))
            except (LineError, TypeError, ValueError) as error:
                self._complain(self.lines, error)
        return self._judge(coming)

    def finish(self) -> None:
        """Judge the last aggregated observations."""
        if self._together is not None:
            self._judge([(self.lines, observation) for observation in self._together.flush()])

    def _judge(self, coming: Sequence[tuple[int, ParsedObservation]]) -> bool:
        if not coming:
            return True
        answers = self._watched.observe([observation for _, observation in coming], self._parser.features)
        written = []
        for (number, observation), answer in zip(coming, answers, strict=True):
            if not isinstance(answer, WatchedObservation):
                self._complain(number, answer)
            elif not self._alarms_only or answer.batch.columns["alarm"][answer.step]:
                written.append(line_of(observation, answer) + "\n")
        return _write("".join(written))

    def _complain(self, number: int, error: Exception) -> None:
        say(in_options(error if isinstance(error, LineError) else f"line {number}: {error}"))
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
