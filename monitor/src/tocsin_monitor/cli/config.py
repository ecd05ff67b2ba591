"""`tocsin config`: check the settings, or print all of them."""

from typing import TYPE_CHECKING, Any, cast

import typer

from tocsin.cli.application import Exit, app, say
from tocsin_monitor.cli.monitoring import Config, explained, read

if TYPE_CHECKING:
    from tocsin_monitor.config import Settings

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
