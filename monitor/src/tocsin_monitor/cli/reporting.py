"""`tocsin report`: what happened in a period, on one page."""

import asyncio
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.application import app, check_page, say
from tocsin_monitor.cli.exporting import moment_given
from tocsin_monitor.cli.monitoring import Config, Data, explained, opened, settings_of
from tocsin_monitor.errors import RefusedError, UnknownError

if TYPE_CHECKING:
    from tocsin_monitor.config import Settings
    from tocsin_monitor.config.sinks import MailSettings

WEEK = 7 * 86400 * 10**9


@app.command()
def report(
    week: Annotated[bool, typer.Option("--week", help="The seven days before --to. This is the default.")] = False,
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="The first time.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The last time. Default: now.")] = None,
    signal: Annotated[
        list[str] | None,
        typer.Option("--signal", metavar="PATTERN", help="Only signals whose names match, with * and ?; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the page to a file (.html).")] = None,
    mail: Annotated[
        str | None, typer.Option("--mail", metavar="SINK", help="Send the page through this mail sink of the settings.")
    ] = None,
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
            patterns = signal or ["*"]
            found = [one for one in reader.signals() if any(fnmatchcase(one.name, pattern) for pattern in patterns)]
            if not found:
                raise UnknownError(f"no signal matches {', '.join(patterns)} (--signal)")
            gathered = gather(reader, found, Period(first, last))
            page = report_page(reader, gathered, settings) if out is not None or sink is not None else ""
        for line in summary_of(gathered):
            typer.echo(line)
        if out is not None:
            out.write_text(page, encoding="utf-8")
            say(f"{out}: {len(page.encode()) / 1e6:.1f} MB")
        if sink is not None:
            from tocsin_monitor.report.page import send_report

            asyncio.run(send_report(sink, settings, gathered, page))
            say(f"sent to {', '.join(sink.recipients)}")


def _mail_sink(settings: "Settings", name: str) -> "MailSettings":
    """The settings of the mail sink of this name."""
    from tocsin_monitor.config.sinks import MailSettings

    known = [sink for _, sink in settings.sinks.each() if isinstance(sink, MailSettings)]
    for sink in known:
        if sink.name == name:
            return sink
    names = ", ".join(sink.name for sink in known) or "none"
    raise RefusedError(f"--mail: there is no mail sink {name!r} in the settings; mail sinks: {names}")
