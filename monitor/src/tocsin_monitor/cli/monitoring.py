"""Code shared by the monitor's commands: its settings, its store, and messages about missing libraries."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.application import Exit, say
from tocsin_monitor.errors import MonitorError

# The monitor's libraries are an extra and slow to import: only its commands import them, when they run.
if TYPE_CHECKING:
    from tocsin_monitor.config import Layer, Loaded, Settings
    from tocsin_monitor.store import Store

Config = Annotated[
    Path | None,
    typer.Option("--config", envvar="TOCSIN_CONFIG", metavar="FILE", help="TOML file with settings."),
]
Data = Annotated[Path | None, typer.Option("--data", metavar="FOLDER", help="The data folder; overrides storage.url.")]


@contextmanager
def explained() -> Iterator[None]:
    """Print an error, or the name of the missing extra, instead of a traceback."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").split(".")[0]
        if name in ("tocsin", "tocsin_monitor"):
            raise
        needed = "'tocsin-monitor[postgres]'" if name == "psycopg" else "tocsin-monitor"
        say(f"the monitor needs {name}, which is not installed: pip install {needed}")
        raise typer.Exit(Exit.FAILED) from error
    except MonitorError as error:
        say(error)
        raise typer.Exit(Exit.FAILED) from error


def read(config: Path | None, **options: tuple[str, Any]) -> "Loaded":
    """The settings, overridden by options: the name of an option, and its path and value."""
    from tocsin_monitor.config import ConfigError, read_settings

    try:
        loaded = read_settings(config, layers_of(**options))
    except ConfigError as error:
        for problem in error.problems:
            say(problem)
        raise typer.Exit(Exit.USAGE) from error
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    return loaded


def layers_of(**options: tuple[str, Any]) -> "list[Layer]":
    """What options override: the name of each, and its path and value."""
    from tocsin_monitor.config import Layer

    layers = []
    for option, (path, value) in options.items():
        if value is not None:
            section, name = path.split(".")
            # An explicit folder overrides the database in the settings.
            more = {"url": None} if path == "storage.folder" else {}
            layers.append(Layer(f"--{option}", {section: {name: value, **more}}))
    return layers


def settings_of(config: Path | None, data: Path | None) -> "Settings":
    """The settings for a command that works on the store."""
    return read(config, data=("storage.folder", data)).settings


@contextmanager
def opened(settings: "Settings", *, make: bool = False) -> "Iterator[Store]":
    """The store, closed at the end. A missing store is created, or refused."""
    from tocsin_monitor.store import Store

    if not make and settings.storage.url is None and not Path(settings.store_url.removeprefix("sqlite:///")).exists():
        raise MonitorError(f"there is no store in {settings.storage.folder} (--data, storage.folder)")
    store = Store.open(settings.store_url)
    try:
        yield store
    finally:
        store.close()


def place_of(settings: "Settings") -> str:
    """Where the store is, without a password."""
    return f"{settings.storage.folder}" if settings.storage.url is None else "the database of storage.url"


def again(config: Path | None, data: Path | None) -> str:
    """The options that make another command use the same store."""
    given = (("--config", config), ("--data", data))
    return "".join(f" {option} {shlex.quote(str(value))}" for option, value in given if value is not None)
