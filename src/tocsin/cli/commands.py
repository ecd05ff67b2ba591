"""Which commands there are, in the order in which people need them. Each is imported when it is called."""

import importlib
from typing import NamedTuple

import typer.main
from typer import Typer
from typer.core import TyperCommand, TyperGroup


class Entry(NamedTuple):
    """Where a command is, under which heading it is listed, and what it does."""

    module: str
    panel: str
    help: str


_FILES, _MONITOR, _METHODS = "Files and streams", "The monitor", "Methods"
COMMANDS = {
    "demo": Entry(
        "demo", _FILES, "Make four weeks of a machine's sensor data with six faults in them, and look for the faults."
    ),
    "detect": Entry(
        "detect",
        _FILES,
        "Find the incidents in files: a table on screen, all verdicts to a file, a picture, a page.",
    ),
    "watch": Entry(
        "watch",
        _FILES,
        "Read observations from standard input, one a line, and write a verdict for each as a line of JSON.",
    ),
    "spark-detect": Entry(
        "spark",
        _FILES,
        "Find the incidents of many signals on Apache Spark: Parquet or a table in, Parquet out; restartable.",
    ),
    "serve": Entry(
        "serve",
        _MONITOR,
        "Watch signals as their observations come in: HTTP, MQTT, Prometheus and files in, a page and alerts out.",
    ),
    "import": Entry(
        "importing",
        _MONITOR,
        "Give history to a running monitor: it is learned and judged, and nobody is told of its incidents.",
    ),
    "export": Entry(
        "exporting",
        _MONITOR,
        "Write what the monitor keeps to files, as it is at one moment; the monitor may go on meanwhile.",
    ),
    "config": Entry("config", _MONITOR, "Check the monitor's settings, or print all there are."),
    "token": Entry("token", _MONITOR, "Make, list and revoke the tokens of the monitor."),
    "backup": Entry(
        "backup",
        _MONITOR,
        "Write everything that the monitor keeps to one file, as it is at one moment; the monitor may go on meanwhile.",
    ),
    "restore": Entry(
        "backup", _MONITOR, "Put a backup into an empty store, whichever database that is in. The monitor must not run."
    ),
    "forecasters": Entry("forecasters", _METHODS, "List the forecasters: what each does, and what it needs."),
    "simulate": Entry(
        "simulate",
        _METHODS,
        "Score simulated errors whose true p-values are known, and show how calibrated each method is.",
    ),
    "bench": Entry(
        "bench", _METHODS, "Run detectors over a folder of labelled files (TSB-AD), and report what came of it."
    ),
}


class Commands(TyperGroup):
    """A group that knows its commands before they are imported: listing them is quick."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override]
        """What a list says of a command; `resolve_command` has the whole of it."""
        if cmd_name in self.commands or cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)  # type: ignore[return-value]
        entry = COMMANDS[cmd_name]
        return TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # type: ignore[override]
        """The command that is called, and what is left of the arguments."""
        if args and args[0] in COMMANDS:
            from tocsin.cli.application import app

            load(args[0])
            self.commands[args[0]] = whole(app).commands[args[0]]
        return super().resolve_command(ctx, args)


def whole(app: Typer) -> TyperGroup:
    """The group with all commands that are imported."""
    return typer.main.get_group(app)


def load(*names: str) -> None:
    """Import commands, all of them if none is named."""
    for name in names or COMMANDS:
        importlib.import_module(f"tocsin.cli.{COMMANDS[name].module}")
