"""`tocsin serve`: the monitor."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.application import Exit, app, say, whole_number
from tocsin_monitor.cli.monitoring import Config, Data, again, explained, layers_of, opened, place_of, read

if TYPE_CHECKING:
    from tocsin_monitor.config import Settings
    from tocsin_monitor.monitor import Monitor
    from tocsin_monitor.store import StoreReader, TokenRow


@app.command()
def serve(
    config: Config = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="The address to listen on. Default: 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            parser=whole_number(0, 65535),
            metavar="INTEGER",
            help="The port; 0 for a free one. Default: 8710.",
        ),
    ] = None,
    data: Data = None,
    standby: Annotated[
        bool | None,
        typer.Option("--standby", help="Wait on standby while another monitor uses the database (PostgreSQL)."),
    ] = None,
) -> None:
    """Run the monitor: observations in by HTTP, MQTT, Prometheus or files; a dashboard and alerts out."""
    with explained():
        options = {
            "host": ("server.host", host),
            "port": ("server.port", port),
            "data": ("storage.folder", data),
            "standby": ("storage.standby", standby),
        }
        loaded = read(config, **options)
        _refuse_strangers(loaded.settings, config, data)
        from tocsin_monitor.config import read_settings
        from tocsin_monitor.monitor import run

        run(
            loaded.settings,
            lambda monitor, ready: _announce(monitor, again(config, data)) if ready else _announce_address(monitor),
            lambda: read_settings(config, layers_of(**options)).settings,
        )


def _announce_address(monitor: "Monitor") -> None:
    """Once the monitor listens, print its address."""
    typer.echo(f"listening: {monitor.address}")
    typer.echo(f"data: {place_of(monitor.settings)}")


def _announce(monitor: "Monitor", options: str) -> None:
    """Once the monitor is ready, print what it resumed and how to sign in."""
    resumed = len(monitor.engine.overview())
    typer.echo(f"resumed: {resumed} signals")
    if not resumed:
        say(f"a signal appears with its first observation: POST {monitor.address}/api/v1/observations")
    from tocsin_monitor.errors import StoreError

    try:
        with monitor.store.reading() as reader:
            guarded, known = reader.guarded_since() is not None, _that_count(reader)
    except StoreError:  # the monitor waits for the store to come back
        return
    if not known and (guarded or not monitor.settings.server.private):
        why = "there used to be tokens" if guarded else "server.external_url or server.allowed_hosts is set"
        say(f"warning: nobody can sign in, since {why} and there is no valid token. {_how(options)}")


def _refuse_strangers(settings: "Settings", config: Path | None, data: Path | None) -> None:
    """Refuse to listen to other machines until there is a valid token."""
    if settings.server.loopback:
        return
    # One on standby must not touch tables that another monitor works on. It lets nobody in without a token either.
    if not settings.storage.standby:
        with opened(settings, make=True) as store, store.reading() as reader:
            known = _that_count(reader)
        if not known:
            say(
                f"server.host: {settings.server.host} can be reached from other machines, and there is no valid "
                f"token. {_how(again(config, data))}"
            )
            raise typer.Exit(Exit.USAGE)
    if settings.server.tls_certificate is None:
        say(
            "warning: other machines can reach this over plain HTTP, and tokens can be intercepted: set "
            "server.tls_certificate and server.tls_key, or put a TLS proxy in front"
        )


def _that_count(reader: "StoreReader") -> "list[TokenRow]":
    now = time.time_ns()
    return [token for token in reader.tokens() if token.expires is None or token.expires > now]


def _how(options: str) -> str:
    return f"Create one: tocsin token create admin --role admin{options}"
