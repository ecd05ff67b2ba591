"""`tocsin config` and `tocsin doctor`: the settings, and whether everything around the monitor fits them."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tocsin.cli.application import Exit, app, console, say
from tocsin_monitor.cli.monitoring import Config, Data, explained, read

if TYPE_CHECKING:
    from pathlib import Path

    from tocsin_monitor.config import Settings
    from tocsin_monitor.doctor import Finding

config = typer.Typer(name="config", help="Check the monitor's settings, or print all of them.", no_args_is_help=True)
app.add_typer(config)


@config.command()
def check(config: Config = None) -> None:
    """Report problems in the settings. If there are none, print the settings in effect and where each comes from."""
    with explained():
        loaded = read(config)
        _try_parts(loaded.settings)
        from tocsin_monitor.config.writing import effective

        for path, value, origin in effective(loaded.settings, loaded.layers):
            typer.echo(f"{path} = {value}" + (f"  # {origin}" if origin else ""))


@config.command()
def example() -> None:
    """Print a TOML file with every setting, its description and its default."""
    with explained():
        from tocsin_monitor.config.writing import example as text

        typer.echo(text(), nl=False)


def _try_parts(settings: "Settings") -> None:
    """Create the sources and sinks as the monitor would, but do not start them: this checks their settings further."""
    from tocsin_monitor.metrics import Metrics
    from tocsin_monitor.sinks import make_sinks
    from tocsin_monitor.sources import make_sources

    unused = cast("Any", None)
    try:
        make_sources(settings, unused, unused, Metrics())
        make_sinks(settings, unused, unused, Metrics())
    except ValueError as error:
        say(error)
        raise typer.Exit(Exit.USAGE) from error


_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@app.command()
def doctor(
    config: Config = None,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check the settings and everything around the monitor, and say what to do about each problem."""
    with explained():
        found = _findings(config, data)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        for heading in ("check", "state", "found", "what to do"):
            table.add_column(heading, overflow="fold")
        for one in found:
            table.add_row(
                Text(one.check), Text(one.state, style=_STYLES[one.state]), Text(one.message), Text(one.advice)
            )
        console().print(table)
    raise typer.Exit(Exit.FAILED if any(one.state == "failed" for one in found) else Exit.DONE)


def _findings(config: "Path | None", data: "Path | None") -> "list[Finding]":
    """What is wrong with the settings, or what all other checks find with them."""
    from tocsin_monitor.cli.monitoring import layers_of
    from tocsin_monitor.config import ConfigError, read_settings
    from tocsin_monitor.doctor import Finding, State, examine

    try:
        loaded = read_settings(config, layers_of(data=("storage.folder", data)))
    except ConfigError as error:
        advice = "correct it; `tocsin config example` lists every setting"
        return [Finding("settings", State.FAILED, problem, advice) for problem in error.problems]
    first = [Finding("settings", State.WARNING, problem, "check its spelling") for problem in loaded.warnings]
    first = first or [Finding("settings", State.OK, "they are valid")]
    return [*first, *examine(loaded.settings)]
