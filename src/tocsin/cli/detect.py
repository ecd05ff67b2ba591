"""`tocsin detect`: detection in files."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli.application import Exit, app, check_page, check_picture, say, whole_number
from tocsin.cli.detecting import DetectRun
from tocsin.cli.options import check_settings, number_or_text, takes_detector_settings
from tocsin.cli.reading import takes_reading_options
from tocsin.data import LONGEST_GAP, check_writable, open_writer
from tocsin.detection.budget import check_budget
from tocsin.detection.history_budget import HistoryBudget
from tocsin.detection.settings import check_alone

# If more rows than this are lost, the file was probably misread.
MOST_LOST = 0.05


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
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="BUDGET",
            help="Limit incidents over all signals: the rarest 5/week, or a share (0.1) of false ones.",
        ),
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
        "longest_gap": longest_gap,
        "most_lost": most_lost,
    }
    drawing = plot is not None or report is not None
    run = DetectRun(settings, reading, jobs or os.cpu_count() or 1, drawing=drawing, reference=reference)
    share = _checked_budget(budget, settings)
    try:
        _detect(run, files, share, output, exit_code)
        run.report(top, {"verdicts": output, "incidents": incidents, "picture": plot, "report": report})
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
            run.shared = HistoryBudget(share, max(sum(len(signals or ()) for _, signals in everything), 1))
            for file, signals in everything:
                run.judge(file, signals, writer, prefix=len(files) > 1)
        if not run.results:
            raise typer.Exit(run.exit_code(exit_code))  # an earlier result stays untouched


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
