"""The list of commands, in the order in which people need them. Each is imported only when called."""

import importlib
from typing import NamedTuple

import typer.main
from typer import Typer
from typer.core import TyperCommand, TyperGroup


class ListedCommand(NamedTuple):
    """A command's module, its heading in the list, and what it does."""

    module: str
    panel: str
    help: str


_FILES, _MONITOR, _METHODS = "Files and streams", "The monitor", "Methods"
COMMANDS = {
    "demo": ListedCommand(
        "demo", _FILES, "Generate four weeks of a machine's sensor data with six faults, then detect the faults."
    ),
    "detect": ListedCommand(
        "detect",
        _FILES,
        "Find incidents in files: a table on screen, all verdicts to a file, a picture, a page.",
    ),
    "watch": ListedCommand(
        "watch",
        _FILES,
        "Read observations from standard input, one per line, and write one JSON verdict per line.",
    ),
    "spark-detect": ListedCommand(
        "spark",
        _FILES,
        "Find incidents in many signals on Apache Spark: Parquet or a table in, Parquet out; restartable.",
    ),
    "serve": ListedCommand(
        "serve",
        _MONITOR,
        "Run the monitor: observations in by HTTP, MQTT, Prometheus or files; a dashboard and alerts out.",
    ),
    "status": ListedCommand(
        "status",
        _MONITOR,
        "Ask a running monitor how it is doing: signals, rates, incidents, sources, sinks, store.",
    ),
    "doctor": ListedCommand(
        "doctor",
        _MONITOR,
        "Check the settings and everything around the monitor, and say what to do about each problem.",
    ),
    "import": ListedCommand(
        "importing",
        _MONITOR,
        "Import history into a running monitor: it is learned and judged, but sends no alerts.",
    ),
    "export": ListedCommand(
        "exporting",
        _MONITOR,
        "Export the monitor's data to files, as a consistent snapshot. The monitor may keep running.",
    ),
    "report": ListedCommand(
        "reporting",
        _MONITOR,
        "Report on a week of the monitor: incidents, promised and raised alarms, and what took the most attention.",
    ),
    "config": ListedCommand("config", _MONITOR, "Check the monitor's settings, or print all of them."),
    "token": ListedCommand("token", _MONITOR, "Create, list and revoke the monitor's tokens."),
    "backup": ListedCommand(
        "backup",
        _MONITOR,
        "Back up all of the monitor's data to one file, as a consistent snapshot. The monitor may keep running.",
    ),
    "restore": ListedCommand(
        "backup",
        _MONITOR,
        "Restore a backup into an empty store in any supported database. The monitor must not be running.",
    ),
    "forecasters": ListedCommand("forecasters", _METHODS, "List the forecasters, what each does and what it needs."),
    "simulate": ListedCommand(
        "simulate",
        _METHODS,
        "Score simulated errors whose true p-values are known, and show how well calibrated each method is.",
    ),
    "bench": ListedCommand(
        "bench", _METHODS, "Run detectors on folders of labelled files (TSB-AD) and report the results."
    ),
}


class Commands(TyperGroup):
    """A group that knows its commands before importing them, so listing them is fast."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override]
        """A command's entry in the list; `resolve_command` gives the command itself."""
        if cmd_name in self.commands or cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)  # type: ignore[return-value]
        entry = COMMANDS[cmd_name]
        return TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # type: ignore[override]
        """The command that was called, and the remaining arguments."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = whole(load(args[0])).commands[args[0]]
        return super().resolve_command(ctx, args)


def whole(app: Typer) -> TyperGroup:
    """The group with all imported commands."""
    return typer.main.get_group(app)


def load(*names: str) -> Typer:
    """Import the named commands, or all of them; returns the application that they joined."""
    modules = [importlib.import_module(f"tocsin.cli.{COMMANDS[name].module}") for name in names or COMMANDS]
    app: Typer = modules[0].app
    return app
