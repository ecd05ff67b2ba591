"""What all `tocsin` commands share, and their list. Each is imported only when called; other packages add theirs."""

import importlib
import importlib.util
import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from enum import IntEnum
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self, cast

import typer
import typer.main
from typer import Typer
from typer.core import TyperCommand, TyperGroup

from tocsin import __version__

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
    "detectable": ListedCommand(
        "tocsin.cli.detectable",
        FILES,
        "Show which faults would be found in the signals of files, how soon, and which would not.",
    ),
    "causes": ListedCommand(
        "tocsin.cli.causes",
        FILES,
        "Show which signal of a file moved first in an event, and whether that can be told.",
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


if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

app = typer.Typer(
    name="tocsin",
    help="Alarms on signals whose threshold is the false-alarm rate.",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


class Exit(IntEnum):
    """The exit codes of all commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DAMAGED = 3
    INCIDENTS = 4


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tocsin {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


def whole_number(least: int, most: int = 10**9) -> Callable[[str], int]:
    """An option parser whose errors, unlike the built-in one's, include the value given."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise typer.BadParameter(f"{text!r} is not a whole number from {least} to {most}.")
        return value

    return parse


def refuse_unknown(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Reject unknown names, and list the known ones."""
    accepted = list(known)
    for name in given:
        if name not in accepted:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(accepted)}.", param_hint=option)


def console() -> "Console":
    """Standard output. If it is not a terminal, it is wide enough to show every table uncut."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # plain ASCII output shows ? for other characters
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=140)


class ProgressLines:
    """In place of a progress bar where nobody watches: a line now and then on standard error."""

    def __init__(self, every: float) -> None:
        self._every, self._next = every, time.monotonic() + every
        self._name, self._done = "", 0.0
        self._total: float | None = None
        #: When something was done first, and how much was done then.
        self._first: tuple[float, float] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to tell."""

    def add_task(self, description: str, total: float | None = None) -> int:
        """Begin something of this name."""
        self._name, self._done, self._total, self._first = description, 0.0, total, None
        return 0

    def update(
        self, _: int, *, advance: float = 0.0, completed: float | None = None, total: float | None = None,
        description: str | None = None,
    ) -> None:  # fmt: skip
        """So much more is done."""
        self._name, self._total = description or self._name, total or self._total
        self._done = self._done + advance if completed is None else completed
        now = time.monotonic()
        began, before = self._first = self._first or (now, self._done)
        if now >= self._next:
            self._next = now + self._every
            line = f"{self._name}: {self._done:,.0f}" + (f" of {self._total:,.0f}" if self._total else "")
            if self._total and self._done > before:
                seconds = (now - began) * max(0.0, self._total - self._done) / (self._done - before)
                line += f", {timedelta(seconds=round(seconds))} left"
            say(line)

    def track(self, things: Iterable[Any], total: float | None = None, description: str = "") -> Iterator[Any]:
        """Each of the things, while it is told how many there were."""
        task = self.add_task(description, total)
        for one in things:
            yield one
            self.update(task, advance=1.0)


#: Seconds between two lines of progress.
LINE_EVERY = 60.0


def progress(line_every: float | None = None) -> "Progress":
    """A progress bar on standard error that shows the time remaining.

    If that is no terminal, a line a minute, or so many seconds after the one before.
    """
    from rich.console import Console

    if not Console(stderr=True).is_terminal:
        return cast("Progress", ProgressLines(line_every or LINE_EVERY))
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def say(message: Any) -> None:
    """Print a message that is not a result to standard error."""
    typer.echo(str(message), err=True)


def require_matplotlib(option: str) -> None:
    """Fail before the work starts if plotting is not possible."""
    if importlib.util.find_spec("matplotlib") is None:
        raise typer.BadParameter("drawing needs matplotlib: pip install 'tocsin[plot]'.", param_hint=option)


def check_picture(path: Path, option: str) -> None:
    """Reject a picture path that cannot be written before the work starts."""
    require_matplotlib(option)
    _check_target(path, PICTURES, option)


def check_page(path: Path, option: str) -> None:
    """Reject a page path that cannot be written before the work starts."""
    _check_target(path, PAGES, option)


def _check_target(path: Path, suffixes: tuple[str, ...], option: str) -> None:
    if path.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"{path} must end in one of {', '.join(suffixes)}.", param_hint=option)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise typer.BadParameter(f"cannot write to {path}: {error}.", param_hint=option) from error


PICTURES = (".png", ".svg", ".pdf", ".jpg")
PAGES = (".html", ".htm")
