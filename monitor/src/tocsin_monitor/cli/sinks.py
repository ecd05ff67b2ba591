"""`tocsin sinks`: whether people would be told."""

from typing import Annotated

import typer

from tocsin.cli.application import Exit, app, say
from tocsin_monitor.cli.client import Url, address_of, answer, client_of, token_option
from tocsin_monitor.cli.monitoring import Config, explained, read

#: Seconds to wait for the reply: longer than any sink may take.
PATIENCE = 90.0

sinks = typer.Typer(name="sinks", help="Try out where a running monitor sends incidents.", no_args_is_help=True)
app.add_typer(sinks)


@sinks.command("test")
def send_test_messages(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only to the sink with this name.")] = None,
    url: Url = None,
    token: Annotated[str | None, token_option("admin")] = None,
    config: Config = None,
) -> None:
    """Let a running monitor send a test message to each sink, and say of each whether it was delivered."""
    with explained():
        address = url or address_of(read(config).settings)
        with client_of(address, token, PATIENCE) as client:
            found = answer(client, "POST", "/sinks/test", json={"name": name})["sinks"]
    for one in found:
        typer.echo(f"{one['name']}: {'delivered' if one['delivered'] else 'not delivered: ' + one['error']}")
    if not found:
        say("the monitor has no sinks: nobody is told of incidents")
    if not found or not all(one["delivered"] for one in found):
        raise typer.Exit(Exit.FAILED)
