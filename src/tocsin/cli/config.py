"""`tocsin config`: what the settings are, and what they could be."""

from typing import TYPE_CHECKING, Any, cast

import typer

from tocsin.cli.application import Exit, app, say
from tocsin.cli.monitoring import Config, explained, read

if TYPE_CHECKING:
    from tocsin.service.config import Settings

config = typer.Typer(name="config", help="Check the monitor's settings, or print all there are.", no_args_is_help=True)
app.add_typer(config)


@config.command()
def check(config: Config = None) -> None:
    """Say what is wrong with the settings; if nothing is, print all that are in force and where they come from."""
    with explained():
        loaded = read(config)
        _try_parts(loaded.settings)
        from tocsin.service.config.writing import effective

        for path, value, origin in effective(loaded.settings, loaded.layers):
            typer.echo(f"{path} = {value}" + (f"  # {origin}" if origin else ""))


@config.command()
def example() -> None:
    """Print a TOML file with every setting, its meaning and its default."""
    with explained():
        from tocsin.service.config.writing import example as text

        typer.echo(text(), nl=False)


def _try_parts(settings: "Settings") -> None:
    """Make the sources and sinks as the monitor would, without starting them: they look closer at their settings."""
    from tocsin.service.metrics import Metrics
    from tocsin.service.sinks import make_sinks
    from tocsin.service.sources import make_sources

    unused = cast("Any", None)
    try:
        make_sources(settings, unused, unused, Metrics())
        make_sinks(settings, unused, unused, Metrics())
    except ValueError as error:
        say(error)
        raise typer.Exit(Exit.USAGE) from error
