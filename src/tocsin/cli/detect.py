"""`tocsin detect`: read files, judge their signals, and report what was found and what went wrong."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from tocsin.cli.application import Exit, app, check_page, check_picture, console, progress, say, whole_number
from tocsin.cli.options import (
    check_settings,
    in_options,
    number_or_text,
    takes_detector_settings,
    takes_reading_options,
)
from tocsin.cli.wide import SeparateColumns, of_relations, separate
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
    parse_time,
    read_signals,
)
from tocsin.detection import Result, detect_signals, with_peers
from tocsin.detection.batch import select_incidents, share_alarm_rate
from tocsin.detection.incidents.budget import HistoryBudget, check_budget
from tocsin.detection.incidents.incident import Incident, incident_columns
from tocsin.detection.paper.scoring import PAPER
from tocsin.detection.settings.detector_settings import check_alone
from tocsin.reports.page import ReportText, detection_page
from tocsin.reports.picture import draw_detection
from tocsin.reports.tables import (
    audit_summary,
    budget_summary,
    incident_table,
    intervals_of,
    part_table,
    usual_rate_line,
    worst_severity,
)

# If more rows than this are lost, the file was probably misread.
MOST_LOST = 0.05
# Below this many observations, judging them here is faster than starting another process.
WORTH_A_PROCESS = 200_000
# This many signals are kept for the charts: those with the most severe incidents.
MOST_KEPT = 50


Within = tuple[np.datetime64 | float | None, np.datetime64 | float | None]


def label_of(file: str) -> str:
    """The name of a file in messages."""
    return "standard input" if file == "-" else file


class DetectRun:
    """All files of one invocation."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        reading: Mapping[str, Any],
        jobs: int,
        *,
        drawing: bool,
        reference: str | None,
        peers: bool = False,
        joint: bool = True,
    ) -> None:
        self.settings, self.reading, self.jobs, self.drawing = settings, reading, jobs, drawing
        self.reference, self.peers, self.joint = reference, peers, joint
        self.shared: HistoryBudget | None = None
        self.results: list[Result] = []
        self.drawn: list[Result] = []
        self.problems: list[Problem] = []
        self.report_text = ReportText("")
        self.failed = self.sharing = False

    def open(self, file: str) -> AbstractContextManager[Signals | None]:
        """The signals of one file, or None, with a message, if it cannot be read."""
        label = label_of(file)
        try:
            return read_signals(file, **self.reading)
        except (DataError, OSError, ImportError, MemoryError) as error:
            self._fail(label, error)
            return nullcontext()
        except (TypeError, ValueError) as error:
            raise typer.BadParameter(f"{in_options(error)}.") from error

    def _fail(self, label: str, error: Exception | str) -> None:
        message = in_options(error)
        say(message if message.startswith(label) else f"{label}: {message}")
        self.failed = True

    def separated(self, signals: Signals) -> SeparateColumns | None:
        """How the columns of a file are watched separately; None if they are features of one signal."""
        return None if self.joint else separate(signals.columns, self.settings, peers=self.peers)

    def count(self, signals: Signals) -> int:
        """How many signals are judged of a file."""
        apart = self.separated(signals)
        return len(signals) * (1 if apart is None else apart.parts)

    def judge(self, file: str, signals: Signals | None, writer: Writer | None, *, prefix: bool) -> None:
        """Judge the signals of one file, and report those that cannot be judged."""
        if signals is None:
            return
        label, apart = label_of(file), self.separated(signals)
        parts = 1 if apart is None else apart.parts
        count, rows = parts * len(signals), parts * signals.rows
        self.sharing |= apart is not None
        # With several files, a file with a single signal is named by its path.
        name = f"{file}: " if prefix and count > 1 else ""
        alone = file if prefix and count == 1 else None
        written: list[str] = []

        def write(signal: str, columns: dict[str, Any]) -> None:
            if writer is not None:
                nothing = np.full(len(columns["time"]), np.nan)
                written.extend([] if written else columns)
                if "value" in written and "value" not in columns:  # relations have none of their own
                    columns = {name: columns.get(name, nothing) for name in written}
                names = np.full(len(nothing), alone or f"{name}{signal}", dtype=object)
                writer.write({"signal": names, **columns})

        found: list[Problem] = []

        def passing() -> Iterator[Signal]:
            for number in range(len(signals)):
                try:
                    signal = signals[number]
                except (TypeError, ValueError, MemoryError) as error:
                    self._fail(label, error)  # the others may still be fine
                    continue
                found.extend(signal.problems)
                yield from [signal] if apart is None else apart.split(signal)

        try:
            judged = iter(with_peers(list(passing()))) if self.peers else passing()
        except ValueError as error:
            self._fail(label, error)
            return

        with progress() as bar:
            jobs = min(self.jobs, count) if rows > WORTH_A_PROCESS else 1
            task = bar.add_task(escape(Path(file).name), total=rows)
            together: list[Result] = []
            for result in detect_signals(
                judged,
                self.settings if apart is None else apart.settings_of,
                keep=self.drawing,
                reference=self.reference,
                sink=None if writer is None else write,
                progress=lambda done: bar.update(task, advance=done),
                jobs=jobs,
                shared=self.shared,
            ):
                together.append(of_relations(result) if apart is not None and apart.relates(result.judged) else result)
                if len(together) < parts:
                    continue
                if len(together) > 1 and result.error and {one.error for one in together} == {result.error}:
                    together = [result]  # once is enough
                for one in together if apart is None or self.shared else share_alarm_rate(together):
                    self._take(one, alone or f"{name}{one.signal}")
                together = []
            self.problems.extend([*signals.problems, *found])
        if apart is not None:
            signals.summary.signals, signals.summary.separate = len(signals) * len(signals.columns.values), True
        lines = [in_options(one) for one in (signals.summary, *merge_problems([*signals.problems, *found]))]
        self.report_text.files.append((label, lines[0], lines[1:]))
        for line in lines:
            say(f"{label}: {line}")

    def _take(self, result: Result, name: str) -> None:
        if result.error is not None:
            self._fail(name, result.error)
            return
        result = replace(result, judged=replace(result.judged, name=name))
        for incident in result.incident_list:
            incident.signal = name
        if self.drawing:
            self.drawn.append(result)
            if len(self.drawn) > MOST_KEPT:
                self.drawn.sort(key=lambda one: worst_severity(one.incident_list), reverse=True)
                self.drawn.pop()
        self.results.append(result.without_verdicts())

    def report(self, top: int, targets: Mapping[str, Path | None], within: Within) -> None:
        """Write the requested files, and print the summary; `targets` maps contents to files.

        Incidents are told that lie at least partly between the two times of `within`.
        """
        screen = console()
        proposed = sum(len(result.incident_list) for result in self.results)
        if self.shared is not None:
            self.results = select_incidents(self.results, self.shared)
            selected = {id(incident) for result in self.results for incident in result.incident_list}
            self.drawn = [
                replace(result, incident_list=[one for one in result.incident_list if id(one) in selected])
                for result in self.drawn
            ]
        if any(one is not None for one in within):
            self.results, self.drawn = ([_limited(one, within) for one in of] for of in (self.results, self.drawn))
        found = [incident for result in self.results for incident in result.incident_list]
        if (path := targets["incidents"]) is not None:
            with open_writer(path) as writer:
                writer.write(incident_columns(found))
        if (path := targets["picture"]) is not None:
            draw_detection(self.drawn, path)
        chosen = [] if self.settings["alarm_rate"] is not None or self.shared else [self._rate_line()]
        for line in chosen:
            screen.print(line, markup=False)
        short = [result for result in self.results if result.warning]
        for result in short[:3]:
            say(f"note: {result.warning}")
        if len(short) > 3:
            say(f"note: {len(short) - 3} more signals are too short as well")
        if found and (table := part_table(self.results, top=top)):
            screen.print(table)
        if found:
            intervals = intervals_of(self.results)
            screen.print(incident_table(found, top=top, many=len(self.results) > 1, intervals=intervals))
        else:
            screen.print("no incidents")
        shared = self.shared
        summary = audit_summary(self.results) if shared is None else budget_summary(self.results, shared, proposed)
        screen.print(summary, markup=False)
        if (path := targets["report"]) is not None:
            self.report_text.title = ", ".join(label for label, *_ in self.report_text.files[:3])
            self.report_text.promised = "\n".join([*chosen, summary])
            self.report_text.notes = [result.warning for result in short[:3] if result.warning]
            path.write_text(detection_page(self.results, self.drawn, self.report_text), encoding="utf-8")
        for name, path in targets.items():
            if path is not None:
                screen.print(f"{name}: {path}", markup=False)

    def _rate_line(self) -> str:
        """How the alarm rate follows from the length of the histories."""
        by_p = self.settings["preset"] == PAPER or self.settings["promise"] == "observations"
        return usual_rate_line(self.results, "false alarm" if by_p else "false incident", together=self.sharing)

    def exit_code(self, incidents_matter: bool) -> Exit:
        if self.failed:
            return Exit.FAILED
        if incidents_matter and any(result.incident_list for result in self.results):
            return Exit.INCIDENTS
        if any(problem.severity == "damage" for problem in self.problems):
            return Exit.DAMAGED
        return Exit.DONE


@app.command()
@takes_detector_settings
@takes_reading_options()
def detect(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV, TSV, JSON lines (.gz too), Excel or Parquet; a folder of Parquet files; a pattern such as "
            "'logs/*.csv'; - for standard input.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all verdicts to this file (.csv, .jsonl, .parquet, .gz)."),
    ] = None,
    incidents: Annotated[Path | None, typer.Option("--incidents", help="Write the incidents to this file.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw signal, forecast, band, incidents and severity (.png, .svg).")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Write a report with incidents, zoomable charts and the guarantees (.html)."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", metavar="ROWS|START/END", help="A known-good stretch to compare with, instead of the past."
        ),
    ] = None,
    *,
    reading: dict[str, Any],
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, jsonl, parquet or excel. Default: by file extension.")
    ] = None,
    most_lost: Annotated[
        float,
        typer.Option(
            "--most-lost", metavar="SHARE", help="Stop if more than this share of rows is lost; 1 never stops."
        ),
    ] = MOST_LOST,
    longest_gap: Annotated[
        int,
        typer.Option(
            "--longest-gap",
            parser=whole_number(0),
            metavar="INTEGER",
            help="Count a gap as at most this many missing observations.",
        ),
    ] = LONGEST_GAP,
    joint: Annotated[
        bool,
        typer.Option(
            "--joint/--separate", help="Watch the value columns as features of one signal, or each by itself."
        ),
    ] = True,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also compare each signal with the others of its file at the same time.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="BUDGET",
            help="Limit incidents over all signals: the rarest 5/week, or a share (0.1) of false ones.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Report no incidents that ended before this time.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Report no incidents that started after this time.")
    ] = None,
    top: Annotated[
        int, typer.Option("--top", parser=whole_number(1), metavar="INTEGER", help="How many incidents to print.")
    ] = 20,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", parser=whole_number(1, 256), metavar="INTEGER", help="Number of processes. Default: one per core."
        ),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with code 4 if there are incidents (for scripts).")
    ] = False,
    settings: dict[str, Any],
) -> None:
    """Find incidents in files: a table on screen, all verdicts to a file, a picture, a page."""
    check_settings(settings, interval_known=False)
    files = list(_named(files))
    _check_targets(files, {"--output": output, "--incidents": incidents, "--plot": plot, "--report": report})
    if "every" in reading and settings["interval"] is not None:
        raise typer.BadParameter("--every sets the interval: omit --interval.", param_hint="--every")
    reading |= {
        "format": file_format,
        "every": number_or_text(reading.get("every")),
        "interval": settings["interval"],
        "zone": settings["zone"],
        "longest_gap": longest_gap,
        "most_lost": most_lost,
    }
    drawing = plot is not None or report is not None
    processes = jobs or os.cpu_count() or 1
    run = DetectRun(settings, reading, processes, drawing=drawing, reference=reference, peers=peers, joint=joint)
    share = _checked_budget(budget, settings)
    within = time_option("--from", since), time_option("--to", until)
    try:
        _detect(run, files, share, output, exit_code)
        run.report(top, {"verdicts": output, "incidents": incidents, "picture": plot, "report": report}, within)
    except BrokenPipeError:
        raise  # the reader has gone away, which is not our failure
    except OSError as error:
        say(f"cannot write the results: {error}")
        raise typer.Exit(Exit.FAILED) from error
    except BrokenExecutor as error:
        say(f"a worker process died, perhaps because memory ran out; try --jobs 1: {error}")
        raise typer.Exit(Exit.FAILED) from error
    raise typer.Exit(run.exit_code(exit_code))


def _detect(run: DetectRun, files: list[str], share: str | float | None, output: Path | None, exit_code: bool) -> None:
    """Judge all files, and write verdicts as they become available."""
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
            run.shared = HistoryBudget(share, max(sum(run.count(one) for _, one in everything if one is not None), 1))
            for file, signals in everything:
                run.judge(file, signals, writer, prefix=len(files) > 1)
        if not run.results:
            raise typer.Exit(run.exit_code(exit_code))  # an earlier result stays untouched


def time_option(option: str, text: str | None) -> np.datetime64 | float | None:
    """The time that an option gives."""
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint=option) from error


def check_time(option: str, time: Any, incident: Incident) -> None:
    """Reject a time of another kind than those of an incident."""
    dated = isinstance(incident.start, np.datetime64)
    if time is not None and isinstance(time, np.datetime64) != dated:
        accepted = "a date" if dated else f"a number, as the times of {incident.signal!r} are"
        raise typer.BadParameter(f"{time} is not {accepted}.", param_hint=option)


def _limited(result: Result, within: Within) -> Result:
    """The result with only the incidents that lie at least partly between two times."""
    first, last = within
    for incident in result.incident_list[:1]:
        check_time("--from", first, incident)
        check_time("--to", last, incident)
    kept = [
        one
        for one in result.incident_list
        if (first is None or one.end >= first) and (last is None or one.start <= last)
    ]
    return replace(result, incident_list=kept)


def _named(files: Iterable[str]) -> Iterator[str]:
    """Files by name. Patterns that the shell left unexpanded are expanded here."""
    for file in files:
        if file == "-" or os.path.exists(file) or not any(mark in file for mark in "*?["):
            yield file
            continue
        found = sorted(glob.glob(file, recursive=True))
        if not found:
            raise typer.BadParameter(f"no such file: {file!r}.", param_hint="FILE...")
        yield from found


def _checked_budget(budget: str | None, settings: Mapping[str, Any]) -> str | float | None:
    """The budget in its proper type. It excludes an alarm rate, which is a different guarantee."""
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
    """Before the work starts, reject targets that cannot be written or would overwrite an input or another output."""
    taken = {Path(file).resolve(): f"the input {file}" for file in files if file != "-"}
    for option, target in targets.items():
        if target is None:
            continue
        if target.resolve() in taken:
            raise typer.BadParameter(f"{target} is already {taken[target.resolve()]}.", param_hint=option)
        taken[target.resolve()] = option
        if option == "--plot":
            check_picture(target, option)
            continue
        if option == "--report":
            check_page(target, option)
            continue
        try:
            check_writable(target)
        except (OSError, ValueError, ImportError) as error:
            raise typer.BadParameter(f"{error}.", param_hint=option) from error
