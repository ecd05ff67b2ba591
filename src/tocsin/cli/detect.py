"""`tocsin detect`: histories in files."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tocsin.cli.application import Exit, app, check_picture, console, progress, say, whole_number
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
from tocsin.data import (
    LONGEST_GAP,
    DataError,
    Problem,
    Signal,
    Signals,
    Writer,
    check_writable,
    merge_problems,
    open_writer,
    read_signals,
)
from tocsin.detection import SignalResult, detect_signals
from tocsin.detection.batch import select_incidents
from tocsin.detection.budget import check_budget
from tocsin.detection.history_budget import HistoryBudget
from tocsin.detection.settings import check_alone
from tocsin.evaluation import detection_report

# Fewer observations than this are done sooner here than another process is started.
WORTH_A_PROCESS = 200_000
# Where more of the rows are lost, the file was not understood.
MOST_LOST = 0.05
# So many signals are kept to be drawn, those with the most severe incidents.
MOST_KEPT = 50


@app.command()
@takes_detector_settings
def detect(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="CSV, TSV, JSON lines (.gz too) or Parquet; - for standard input."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write all verdicts (.csv, .jsonl, .parquet, .gz).")
    ] = None,
    incidents: Annotated[Path | None, typer.Option("--incidents", help="Write the incidents, likewise.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw signal, forecast, band, incidents and severity (.png, .svg).")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", metavar="ROWS|START/END", help="A stretch that was good: compare with it, not with the past."
        ),
    ] = None,
    time: Annotated[str | None, typer.Option("--time", help="The column of times. Default: found.")] = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", help="A column of values; repeatable. Default: the numeric ones.")
    ] = None,
    id: Annotated[  # noqa: A002
        str | None, typer.Option("--id", help="The column that says which signal a row is of (long layout).")
    ] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="Each value column is a signal of its own, not a feature of one.")
    ] = False,
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, jsonl or parquet. Default: by the file's name.")
    ] = None,
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
    most_lost: Annotated[
        float,
        typer.Option("--most-lost", metavar="SHARE", help="Stop if more of the rows are lost; 1 goes on with any."),
    ] = MOST_LOST,
    longest_gap: Annotated[
        int,
        typer.Option(
            "--longest-gap", parser=whole_number(0), metavar="INTEGER", help="A gap counts as so many missing, at most."
        ),
    ] = LONGEST_GAP,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="BUDGET",
            help="Incidents of all signals together: the rarest 5/week, or so that a share (0.1) is false.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", parser=whole_number(1), metavar="INTEGER", help="How many incidents to print.")
    ] = 20,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", parser=whole_number(1, 256), metavar="INTEGER", help="Processes. Default: one a core."),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 4 if there are incidents, as scripts may want.")
    ] = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Find the incidents in files: a table on screen, all verdicts to a file, a picture."""
    check_settings(settings, interval_known=False)
    _check_targets(files, {"--output": output, "--incidents": incidents, "--plot": plot})
    reading = {
        "format": file_format, "time": time, "values": value or None, "id": id, "separate": separate,
        "interval": settings["interval"], "every": every, "aggregate": aggregate, "ignore": ignore or (),
        "missing": missing or None, "delimiter": delimiter, "decimal": decimal, "encoding": encoding, "skip": skip,
        "time_format": time_format, "day_first": day_first, "longest_gap": longest_gap, "most_lost": most_lost,
    }  # fmt: skip
    if every is not None and settings["interval"] is not None:
        raise typer.BadParameter("--every is the interval: leave out --interval.", param_hint="--every")
    reading["every"] = number_or_text(every)
    run = _Run(settings, reading, jobs or os.cpu_count() or 1, drawing=plot is not None, reference=reference)
    share = _checked_budget(budget, settings)
    try:
        _detect(run, files, share, output, exit_code)
        run.report(top=top, incidents=incidents, plot=plot, output=output)
    except BrokenPipeError:
        raise  # nobody reads any more, which is no failure of ours
    except OSError as error:
        say(f"the results cannot be written: {error}")
        raise typer.Exit(Exit.FAILED) from error
    except BrokenExecutor as error:
        say(f"a process came to a sudden end, perhaps for want of memory; try --jobs 1: {error}")
        raise typer.Exit(Exit.FAILED) from error
    raise typer.Exit(run.exit_code(exit_code))


def _detect(run: "_Run", files: list[str], share: str | float | None, output: Path | None, exit_code: bool) -> None:
    """Judge all files, and write their verdicts as they come."""
    with ExitStack() as resources:
        try:
            writer = resources.enter_context(open_writer(output)) if output is not None else None
        except OSError as error:
            raise typer.BadParameter(f"cannot write to {output}: {error}.", param_hint="--output") from error
        if share is None:
            for file in files:
                with run.open(file) as signals:
                    run.judge(file, signals, writer, prefix=len(files) > 1)
        else:
            everything = [(file, resources.enter_context(run.open(file))) for file in files]
            run.shared = HistoryBudget(share, max(sum(len(signals or ()) for _, signals in everything), 1))
            for file, signals in everything:
                run.judge(file, signals, writer, prefix=len(files) > 1)
        if not run.results:
            raise typer.Exit(run.exit_code(exit_code))  # and an earlier result stays as it is


def _checked_budget(budget: str | None, settings: Mapping[str, Any]) -> str | float | None:
    """The budget in its proper type; refused beside an alarm rate, which is a promise of its own."""
    if budget is None:
        return None
    try:
        share = float(budget)
    except ValueError:
        share = None
    try:
        chosen = check_budget("budget", budget if share is None else share)
        check_alone(chosen, settings["alarm_rate"], settings["promise"])
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--budget") from error
    return chosen


def _check_targets(files: list[str], targets: Mapping[str, Path | None]) -> None:
    """Refuse, before the work, what cannot be written or would overwrite what is read or written besides."""
    taken = {Path(file).resolve(): f"the input {file}" for file in files if file != "-"}
    for option, target in targets.items():
        if target is None:
            continue
        if target.resolve() in taken:
            raise typer.BadParameter(f"{target} is {taken[target.resolve()]} already.", param_hint=option)
        taken[target.resolve()] = option
        if option == "--plot":
            check_picture(target, option)
            continue
        try:
            check_writable(target)
        except (OSError, ValueError, ImportError) as error:
            raise typer.BadParameter(f"{error}.", param_hint=option) from error


def _label(file: str) -> str:
    return "standard input" if file == "-" else file


class _Run:
    """All files of one call."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        reading: Mapping[str, Any],
        jobs: int,
        *,
        drawing: bool,
        reference: str | None,
    ) -> None:
        self.settings, self.reading, self.jobs, self.drawing = settings, reading, jobs, drawing
        self.reference = reference
        self.shared: HistoryBudget | None = None
        self.results: list[SignalResult] = []
        self.drawn: list[SignalResult] = []
        self.problems: list[Problem] = []
        self.failed = False

    def open(self, file: str) -> AbstractContextManager[Signals | None]:
        """The signals of one file; None where nothing can be made of it, which is told."""
        label = _label(file)
        try:
            return read_signals(file, **self.reading)
        except (DataError, OSError, ImportError, MemoryError) as error:
            self._fail(label, error)
            return nullcontext()
        except (TypeError, ValueError) as error:
            raise typer.BadParameter(f"{in_options(error)}.") from error

    def _fail(self, label: str, error: Exception) -> None:
        message = in_options(error)
        say(message if message.startswith(label) else f"{label}: {message}")
        self.failed = True

    def judge(self, file: str, signals: Signals | None, writer: Writer | None, *, prefix: bool) -> None:
        """The signals of one file: what can be done with it is done, the rest is told."""
        if signals is None:
            return
        label = _label(file)
        # A file that is one signal is called by its path where there are several files.
        name = f"{file}: " if prefix and len(signals) > 1 else ""
        alone = file if prefix and len(signals) == 1 else None

        def write(signal: str, columns: dict[str, Any]) -> None:
            if writer is not None:
                names = np.full(len(columns["time"]), alone or f"{name}{signal}", dtype=object)
                writer.write({"signal": names, **columns})

        found: list[Problem] = []

        def passing() -> Iterator[Signal]:
            for number in range(len(signals)):
                try:
                    signal = signals[number]
                except (TypeError, ValueError, MemoryError) as error:
                    self._fail(label, error)  # the others may be as they should
                    continue
                found.extend(signal.problems)
                yield signal

        with progress() as bar:
            jobs = min(self.jobs, len(signals)) if signals.rows > WORTH_A_PROCESS else 1
            task = bar.add_task(Path(file).name, total=signals.rows)
            for result in detect_signals(
                passing(),
                self.settings,
                keep=self.drawing,
                reference=self.reference,
                sink=None if writer is None else write,
                progress=lambda done: bar.update(task, advance=done),
                jobs=jobs,
                shared=self.shared,
            ):
                self._take(result, alone or f"{name}{result.signal}")
            self.problems.extend([*signals.problems, *found])
        say(f"{label}: {in_options(signals.understood)}")
        for problem in merge_problems([*signals.problems, *found]):
            say(f"{label}: {in_options(problem)}")

    def _take(self, result: SignalResult, name: str) -> None:
        if result.error is not None:
            self._fail(name, ValueError(result.error))
            return
        result = replace(result, signal=name)
        for incident in result.incidents:
            incident.signal = name
        if self.drawing:
            self.drawn.append(result)
            if len(self.drawn) > MOST_KEPT:
                self.drawn.sort(key=detection_report.worst_severity, reverse=True)
                self.drawn.pop()
        self.results.append(replace(result, columns=None, weights=None))

    def report(self, *, top: int, incidents: Path | None, plot: Path | None, output: Path | None) -> None:
        """Write what was asked for, and print what a person wants to see."""
        screen = console()
        proposed = sum(len(result.incidents) for result in self.results)
        if self.shared is not None:
            self.results = select_incidents(self.results, self.shared)
            told = {id(incident) for result in self.results for incident in result.incidents}
            self.drawn = [
                replace(result, incidents=[incident for incident in result.incidents if id(incident) in told])
                for result in self.drawn
            ]
        found = [incident for result in self.results for incident in result.incidents]
        if incidents is not None:
            with open_writer(incidents) as writer:
                writer.write(detection_report.incident_columns(found))
        if plot is not None:
            detection_report.draw_detection(self.drawn, plot)
        short = [result for result in self.results if result.warning]
        for result in short[:3]:
            say(f"note: {result.warning}")
        if len(short) > 3:
            say(f"note: {len(short) - 3} more signals are too short, too")
        if found:
            intervals = detection_report.intervals_of(self.results)
            screen.print(
                detection_report.incident_table(found, top=top, many=len(self.results) > 1, intervals=intervals)
            )
        else:
            screen.print("no incidents")
        if self.shared is None:
            screen.print(detection_report.summary(self.results))
        else:
            screen.print(detection_report.budget_summary(self.results, self.shared, proposed))
        for name, path in (("verdicts", output), ("incidents", incidents), ("picture", plot)):
            if path is not None:
                screen.print(f"{name}: {path}")

    def exit_code(self, incidents_matter: bool) -> Exit:
        """What a script should know."""
        if self.failed:
            return Exit.FAILED
        if incidents_matter and any(result.incidents for result in self.results):
            return Exit.INCIDENTS
        if any(problem.severity == "damage" for problem in self.problems):
            return Exit.DAMAGED
        return Exit.DONE
