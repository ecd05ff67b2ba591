"""The list of commands. Each is imported only when called; other packages add theirs."""

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import NamedTuple

import typer.main
from typer import Typer
from typer.core import TyperCommand, TyperGroup

ENTRY_POINTS = "tocsin.commands"
FILES, METHODS = "Files and streams", "Methods"


class ListedCommand(NamedTuple):
    """A command's module, its heading in the list, and what it does."""

    module: str
    panel: str
    help: str


_BUILT_IN = {
    "demo": ListedCommand(
        "tocsin.cli.demo",
        FILES,
        "Generate four weeks of a machine's sensor data with six faults, then detect the faults.",
    ),
    "detect": ListedCommand(
        "tocsin.cli.detect",
        FILES,
        "Find incidents in files: a table on screen, all verdicts to a file, a picture, a page.",
    ),
    "watch": ListedCommand(
        "tocsin.cli.watch",
        FILES,
        "Read observations from standard input, one per line, and write one JSON verdict per line.",
    ),
    "forecasters": ListedCommand(
        "tocsin.cli.forecasters", METHODS, "List the forecasters, what each does and what it needs."
    ),
    "simulate": ListedCommand(
        "tocsin.cli.simulate",
        METHODS,
        "Score simulated errors whose true p-values are known, and show how well calibrated each method is.",
    ),
}


@cache
def commands() -> dict[str, ListedCommand]:
    """All commands by name, with those of other packages; names of this package take precedence.

    An entry point of another package refers to a dict like the one above.
    """
    found = dict(_BUILT_IN)
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        for name, command in point.load().items():
            found.setdefault(name, command)
    return dict(sorted(found.items(), key=lambda item: item[1].panel == METHODS))  # what is done daily comes first


class Commands(TyperGroup):
    """A group that knows its commands before importing them, so listing them is fast."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(commands())

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override]
        """A command's entry in the list; `resolve_command` gives the command itself."""
        if cmd_name in self.commands or cmd_name not in commands():
            return super().get_command(ctx, cmd_name)  # type: ignore[return-value]
        entry = commands()[cmd_name]
        return TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # type: ignore[override]
        """The command that was called, and the remaining arguments."""
        if args and args[0] in commands():
            self.commands[args[0]] = whole(load(args[0])).commands[args[0]]
        return super().resolve_command(ctx, args)


def whole(app: Typer) -> TyperGroup:
    """The group with all imported commands."""
    return typer.main.get_group(app)


def load(*names: str) -> Typer:
    """Import the named commands, or all of them; returns the application that they joined."""
    modules = [importlib.import_module(commands()[name].module) for name in names or commands()]
    app: Typer = modules[0].app
    return app
