"""Code shared by all `tocsin` commands."""

import importlib.util
import io
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin import __version__
from tocsin.cli.commands import Commands

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


def progress() -> "Progress":
    """A progress bar on standard error that shows the time remaining."""
    from rich.console import Console
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
