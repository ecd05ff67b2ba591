"""The work of `tocsin detect`: read, judge and report files, and report what goes wrong with each."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from tocsin.cli.application import Exit, console, progress, say
from tocsin.cli.reading import in_options
from tocsin.data import DataError, Problem, Signal, Signals, Writer, merge_problems, open_writer, read_signals
from tocsin.detection import SignalResult, detect_signals
from tocsin.detection.batch import select_incidents
from tocsin.detection.incident_words import incident_columns
from tocsin.reports.features import worst_severity
from tocsin.reports.page import Account, detection_page
from tocsin.reports.picture import draw_detection
from tocsin.reports.summary import audit_summary, budget_summary
from tocsin.reports.table import incident_table, intervals_of

if TYPE_CHECKING:
    from tocsin.detection.history_budget import HistoryBudget

# Below this many observations, judging them here is faster than starting another process.
WORTH_A_PROCESS = 200_000
# This many signals are kept for the charts: those with the most severe incidents.
MOST_KEPT = 50


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
    ) -> None:
        self.settings, self.reading, self.jobs, self.drawing = settings, reading, jobs, drawing
        self.reference = reference
        self.shared: HistoryBudget | None = None
        self.results: list[SignalResult] = []
        self.drawn: list[SignalResult] = []
        self.problems: list[Problem] = []
        self.account = Account("")
        self.failed = False

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

    def _fail(self, label: str, error: Exception) -> None:
        message = in_options(error)
        say(message if message.startswith(label) else f"{label}: {message}")
        self.failed = True

    def judge(self, file: str, signals: Signals | None, writer: Writer | None, *, prefix: bool) -> None:
        """Judge the signals of one file, and report those that cannot be judged."""
        if signals is None:
            return
        label = label_of(file)
        # With several files, a file with a single signal goes by its path.
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
                    self._fail(label, error)  # the others may still be fine
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
        told = [in_options(one) for one in (signals.summary, *merge_problems([*signals.problems, *found]))]
        self.account.understood.append((label, told[0], told[1:]))
        for line in told:
            say(f"{label}: {line}")

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
                self.drawn.sort(key=worst_severity, reverse=True)
                self.drawn.pop()
        self.results.append(replace(result, columns=None, weights=None))

    def report(self, top: int, targets: Mapping[str, Path | None]) -> None:
        """Write the requested files, and print the summary; `targets` maps contents to files."""
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
        if (path := targets["incidents"]) is not None:
            with open_writer(path) as writer:
                writer.write(incident_columns(found))
        if (path := targets["picture"]) is not None:
            draw_detection(self.drawn, path)
        short = [result for result in self.results if result.warning]
        for result in short[:3]:
            say(f"note: {result.warning}")
        if len(short) > 3:
            say(f"note: {len(short) - 3} more signals are too short as well")
        if found:
            intervals = intervals_of(self.results)
            screen.print(incident_table(found, top=top, many=len(self.results) > 1, intervals=intervals))
        else:
            screen.print("no incidents")
        shared = self.shared
        summary = audit_summary(self.results) if shared is None else budget_summary(self.results, shared, proposed)
        screen.print(summary)
        if (path := targets["report"]) is not None:
            self.account.title = ", ".join(label for label, *_ in self.account.understood[:3])
            self.account.promised = summary
            self.account.notes = [result.warning for result in short[:3] if result.warning]
            path.write_text(detection_page(self.results, self.drawn, self.account), encoding="utf-8")
        for name, path in targets.items():
            if path is not None:
                screen.print(f"{name}: {path}")

    def exit_code(self, incidents_matter: bool) -> Exit:
        """The exit code of the command."""
        if self.failed:
            return Exit.FAILED
        if incidents_matter and any(result.incidents for result in self.results):
            return Exit.INCIDENTS
        if any(problem.severity == "damage" for problem in self.problems):
            return Exit.DAMAGED
        return Exit.DONE
