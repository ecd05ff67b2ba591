"""`tocsin import`, `export`, `report`, `backup` and `restore`: data in and out of a monitor."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.application import Exit, app, check_page, progress, say
from tocsin.cli.options import takes_reading_options, text_in_options
from tocsin.data import check_writable, open_writer
from tocsin_monitor.cli.client import (
    START_TIMEOUT,
    StartTimeout,
    Url,
    address_of,
    answer,
    client_of,
    token_option,
    wait_until_ready,
)
from tocsin_monitor.cli.import_progress import ImportProgress
from tocsin_monitor.cli.monitoring import Config, Data, explained, opened, place_of, read, settings_of
from tocsin_monitor.errors import MonitorError, RefusedError, UnknownError
from tocsin_monitor.observations import moment_of
from tocsin_monitor.tokens import fits_any

if TYPE_CHECKING:
    import httpx

    from tocsin_monitor.config import Settings
    from tocsin_monitor.config.sinks import MailSettings
    from tocsin_monitor.exporting import Columns
    from tocsin_monitor.report import Report
    from tocsin_monitor.store import SignalRow, Store, StoreReader

# The monitor reads and stores a file before it answers.
PATIENCE = 3600.0


@app.command("import")
@takes_reading_options(sheets=False, separate=True)
def import_history(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", exists=True, dir_okay=False, help="Files as `tocsin detect` reads them."),
    ],
    signal: Annotated[
        str,
        typer.Option(
            "--signal",
            metavar="NAME",
            help="The signal. {name} stands for its id in the file, or the file's name.",
        ),
    ] = "{name}",
    url: Url = None,
    token: Annotated[str | None, token_option("write")] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Whether to wait until the history is learned.")
    ] = True,
    *,
    reading: dict[str, Any],
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, jsonl or parquet. Default: by file extension.")
    ] = None,
    most_lost: Annotated[
        float | None,
        typer.Option(
            "--most-lost", metavar="SHARE", help="Stop if more than this share of rows is lost; 1 never stops."
        ),
    ] = None,
    start_timeout: StartTimeout = START_TIMEOUT,
    config: Config = None,
) -> None:
    """Import history into a running monitor: it is learned and judged, but sends no alerts.

    Importing the same data again is harmless.
    """
    asked = {"signal": signal, "format": file_format, "most_lost": most_lost, **reading}
    if "values" in asked:
        asked["value"] = asked.pop("values")
    with explained():
        address = url or address_of(read(config).settings)
        failed = False
        with client_of(address, token, PATIENCE) as client:
            wait_until_ready(client, start_timeout)
            importing = ImportProgress(client)
            for file in files:
                try:
                    _send(client, file, {name: one for name, one in asked.items() if one is not None}, importing)
                except MonitorError as error:
                    say(text_in_options(str(error)))
                    failed = True
            if wait:
                failed |= not _told(importing.wait())
    raise typer.Exit(Exit.FAILED if failed else Exit.DONE)


def _send(client: "httpx.Client", file: Path, reading: dict[str, Any], importing: ImportProgress) -> None:
    """Import one file."""
    params, headers = {"file": file.name, **reading}, {"Content-Type": "application/octet-stream"}
    with file.open("rb") as content, importing.shown(file.name):
        taken = answer(client, "POST", "/imports", params=params, content=content, headers=headers)
    say(f"{file}: {text_in_options(taken['understood'])}")
    for problem in taken["problems"]:
        say(f"{file}: {text_in_options(problem)}")
    for one in taken["signals"]:
        say(f"{one['signal']}: {_counted(one)}")
        importing.stored(one["signal"], one["observations"])


def _counted(one: dict[str, Any]) -> str:
    text = f"{one['observations']:,} observations stored"
    if one["duplicates"]:
        text += f", {one['duplicates']:,} of them already there"
    if one["refused"]:
        text += f", {one['refused']:,} rejected"
    if one["older"]:
        text += f"; {one['older']:,} are older than storage.keep_observations and will be deleted once learned"
    return text


def _told(found: dict[str, dict[str, Any] | None]) -> bool:
    """Print the incidents found in each signal's history; false if something could not be learned."""
    for name, one in found.items():
        if one is not None and one["stage"] == "failed":
            say(f"{name}: cannot learn its history: {one['message']}")
        elif one is not None:
            typer.echo(f"{name}: learned, {one['incidents']:,} past incidents")
    return all(one is None or one["stage"] == "done" for one in found.values())


Chosen = Annotated[
    list[str] | None,
    typer.Option("--signal", metavar="PATTERN", help="Only signals whose names match, with * and ?; repeatable."),
]
_KINDS = "(.csv, .jsonl, .parquet, .gz)"


@app.command("export")
def export_tables(
    observations: Annotated[
        Path | None, typer.Option("--observations", metavar="FILE", help=f"Write the observations {_KINDS}.")
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option("--verdicts", metavar="FILE", help="Write the observations with their verdicts.")
    ] = None,
    incidents: Annotated[Path | None, typer.Option("--incidents", metavar="FILE", help="Write the incidents.")] = None,
    signal: Chosen = None,
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="The first time.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The last time.")] = None,
    config: Config = None,
    data: Data = None,
) -> None:
    """Export the monitor's data to files, as a consistent snapshot. The monitor may keep running."""
    targets = {"--observations": observations, "--verdicts": verdicts, "--incidents": incidents}
    _check(targets)
    first, last = moment_given(start, "--from"), moment_given(end, "--to")
    with explained():
        settings = settings_of(config, data)
        from tocsin_monitor.exporting import Export

        with opened(settings) as store, store.reading() as reader:
            found = _chosen(reader, signal or ["*"])
            export = Export(reader, found, first, last)
            tables = {
                "--observations": export.observations, "--verdicts": export.verdicts, "--incidents": export.incidents,
            }  # fmt: skip
            for option, target in targets.items():
                if target is not None:
                    rows = _write(target, tables[option]())
                    say(f"{target}: {rows:,} {option.removeprefix('--')} of {len(found)} signals")


def _chosen(reader: "StoreReader", patterns: list[str]) -> "list[SignalRow]":
    """The signals whose names match; UnknownError if there is none."""
    found = [one for one in reader.signals() if fits_any(one.name, patterns)]
    if not found:
        raise UnknownError(f"no signal matches {', '.join(patterns)} (--signal)")
    return found


def _check(targets: dict[str, Path | None]) -> None:
    """Reject targets that cannot be written before the work starts."""
    given = [target for target in targets.values() if target is not None]
    if not given:
        raise typer.BadParameter(f"give at least one of {', '.join(targets)}.")
    if len({target.resolve() for target in given}) < len(given):
        raise typer.BadParameter("each table needs its own file.", param_hint=", ".join(targets))
    for option, target in targets.items():
        if target is not None:
            try:
                check_writable(target)
            except (OSError, ValueError, ImportError) as error:
                raise typer.BadParameter(f"{error}.", param_hint=option) from error


def moment_given(text: str | None, option: str) -> int | None:
    """The time that an option gives."""
    if text is None:
        return None
    try:
        return moment_of(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint=option) from error


def _write(target: Path, pieces: "Iterable[Columns]") -> int:
    rows = 0
    try:
        with open_writer(target) as writer:
            for columns in pieces:
                writer.write(columns)
                rows += len(columns["signal"])
    except OSError as error:
        say(f"cannot write {target}: {error}")
        raise typer.Exit(Exit.FAILED) from error
    return rows


WEEK = 7 * 86400 * 10**9


@app.command()
def report(
    week: Annotated[bool, typer.Option("--week", help="The seven days before --to. This is the default.")] = False,
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="The first time.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The last time. Default: now.")] = None,
    signal: Chosen = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the page to a file (.html).")] = None,
    mail: Annotated[
        str | None, typer.Option("--mail", metavar="SINK", help="Send the page through this mail sink of the settings.")
    ] = None,
    detectable: Annotated[
        int,
        typer.Option(
            "--detectable",
            metavar="N",
            min=0,
            help="Also say what can be found in N signals, those with most attention first; up to two minutes each.",
        ),
    ] = 0,
    config: Config = None,
    data: Data = None,
) -> None:
    """Report on a week of the monitor: incidents, promised and raised alarms, and what took the most attention."""
    if week and start is not None:
        raise typer.BadParameter("--week and --from exclude each other.", param_hint="--week")
    if out is not None:
        check_page(out, "--out")
    last = moment_given(end, "--to") or time.time_ns()
    first = moment_given(start, "--from")
    first = last - WEEK if first is None else first
    if first >= last:
        raise typer.BadParameter(f"{start} is not before {end or 'now'}.", param_hint="--from")
    with explained():
        settings = settings_of(config, data)
        sink = None if mail is None else _mail_sink(settings, mail)
        from tocsin_monitor.report import Period, gather, report_page, summary_of

        with opened(settings) as store, store.reading() as reader:
            found = _chosen(reader, signal or ["*"])
            gathered = gather(reader, found, Period(first, last))
            certificates = dict(_certificates(store, gathered, settings, detectable))
            page = report_page(reader, gathered, settings, certificates) if out is not None or sink is not None else ""
        for line in summary_of(gathered):
            typer.echo(line)
        for name, sentences in certificates.items():
            typer.echo("\n".join([f"{name}:", *(f"  {one}" for one in sentences)]))
        if out is not None:
            out.write_text(page, encoding="utf-8")
            say(f"{out}: {len(page.encode()) / 1e6:.1f} MB")
        if sink is not None:
            from tocsin_monitor.report.page import send_report

            asyncio.run(send_report(sink, settings, gathered, page))
            say(f"sent to {', '.join(sink.recipients)}")


def _certificates(
    store: "Store", report: "Report", settings: "Settings", most: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What can be found in some signals of a report, by name, and in those of them that have the same template."""
    from tocsin.evaluation import Detectability, median_and_worst
    from tocsin_monitor.engine.detectability import DetectableRun

    attended = {one.row.name: one.row for one in (*report.by_attention, *report.signals)}
    by_template: dict[str, dict[str, Detectability]] = {}
    for name, row in list(attended.items())[:most]:
        say(f"{name}: injecting faults")
        found = DetectableRun.alone(store, row, settings)
        if isinstance(found, str):
            yield name, (found,)
            continue
        yield name, tuple(found.sentences)
        if row.template is not None:
            by_template.setdefault(row.template, {})[name] = found
    for match, several in by_template.items():
        if len(several) > 1:
            yield f"template {match}", tuple(median_and_worst(several))


def _mail_sink(settings: "Settings", name: str) -> "MailSettings":
    from tocsin_monitor.config.sinks import MailSettings

    known = [sink for _, sink in settings.sinks.each() if isinstance(sink, MailSettings)]
    for sink in known:
        if sink.name == name:
            return sink
    names = ", ".join(sink.name for sink in known) or "none"
    raise RefusedError(f"--mail: there is no mail sink {name!r} in the settings; mail sinks: {names}")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write. It must not exist yet.")],
    config: Config = None,
    data: Data = None,
) -> None:
    """Back up all of the monitor's data to one file, as a consistent snapshot. The monitor may keep running."""
    with explained():
        settings = settings_of(config, data)
        from tocsin_monitor.store.backup import backup as write

        _with_bar("backup", lambda progress: write(settings.store_url, file, progress))
        say(f"{file}: a backup of {place_of(settings)}, {file.stat().st_size:,} bytes")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `tocsin backup` wrote.")],
    config: Config = None,
    data: Data = None,
) -> None:
    """Restore a backup into an empty store in any supported database. The monitor must not be running."""
    with explained():
        settings = settings_of(config, data)
        from tocsin_monitor.store.backup import restore as read

        _with_bar("restore", lambda progress: read(file, settings.store_url, progress))
        say(f"{file}: restored to {place_of(settings)}")


def _with_bar(name: str, work: Callable[[Callable[[int, int], None]], None]) -> None:
    with progress() as bar:
        task = bar.add_task(name, total=None)
        work(lambda done, total: bar.update(task, completed=done, total=total))
