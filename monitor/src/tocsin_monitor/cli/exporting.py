"""`tocsin export`: the monitor's data as tables."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.application import Exit, app, say
from tocsin.data import check_writable, open_writer
from tocsin_monitor.cli.monitoring import Config, Data, explained, opened, settings_of
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.observations import moment_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tocsin_monitor.exporting import Columns

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
    signal: Annotated[
        list[str] | None,
        typer.Option("--signal", metavar="PATTERN", help="Only signals whose names match, with * and ?; repeatable."),
    ] = None,
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
            patterns = signal or ["*"]
            found = [one for one in reader.signals() if any(fnmatchcase(one.name, pattern) for pattern in patterns)]
            if not found:
                raise UnknownError(f"no signal matches {', '.join(patterns)} (--signal)")
            export = Export(reader, found, first, last)
            tables = {
                "--observations": export.observations, "--verdicts": export.verdicts, "--incidents": export.incidents,
            }  # fmt: skip
            for option, target in targets.items():
                if target is not None:
                    rows = _write(target, tables[option]())
                    say(f"{target}: {rows:,} {option.removeprefix('--')} of {len(found)} signals")


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
