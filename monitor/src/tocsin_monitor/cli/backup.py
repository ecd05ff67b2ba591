"""`tocsin backup` and `tocsin restore`: all of the monitor's data in one file."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli.application import app, progress, say
from tocsin_monitor.cli.monitoring import Config, Data, explained, place_of, settings_of


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

        _with_bar("backup", lambda told: write(settings.store_url, file, told))
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

        _with_bar("restore", lambda told: read(file, settings.store_url, told))
        say(f"{file}: restored to {place_of(settings)}")


def _with_bar(name: str, work: Callable[[Callable[[int, int], None]], None]) -> None:
    with progress() as bar:
        task = bar.add_task(name, total=None)
        work(lambda done, total: bar.update(task, completed=done, total=total))
