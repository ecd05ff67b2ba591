"""`tocsin token`: who may do what on the monitor."""

import getpass
import re
import time
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tocsin.cli.application import app, console, refuse_unknown, say
from tocsin.data import parse_duration
from tocsin_monitor.access_log import AccessEntry, recording
from tocsin_monitor.cli.monitoring import Config, Data, explained, opened, place_of, settings_of
from tocsin_monitor.observations import moment_of
from tocsin_monitor.tokens import NAME_PATTERN, ROLES, Role, check_patterns, hash_token, make_token

token = typer.Typer(name="token", help="Create, list and revoke the monitor's tokens.", no_args_is_help=True)
app.add_typer(token)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The token's name: who uses it.")]


@token.command()
def create(
    name: Name,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help=f"What it allows: {', '.join(ROLES)}.")],
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="WHEN", help="When it expires: '90d', or a time such as 2027-01-01."),
    ] = None,
    match: Annotated[
        list[str],
        typer.Option(
            "--match", metavar="PATTERN", help="Limit it to signals whose names match, with * and ?; repeatable."
        ),
    ] = [],  # noqa: B006 the library copies it
    config: Config = None,
    data: Data = None,
) -> None:
    """Create a token and print it once: only its hash is stored. A running monitor accepts it within seconds."""
    refuse_unknown("--role", [role], ROLES)
    now = time.time_ns()
    end = None if expires is None else _moment(expires, now)
    if not re.fullmatch(NAME_PATTERN, name):
        raise typer.BadParameter(
            f"{name!r} must be 1 to 64 letters, digits and _ . @ -, starting with a letter or digit.", param_hint="NAME"
        )
    try:
        check_patterns(role, match)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--match") from error
    with explained():
        settings = settings_of(config, data)
        text = make_token()
        entry = AccessEntry(_who(), "token create", name, " ".join((role, *match)))
        with opened(settings, make=True) as store, recording(entry), store.transaction() as writer:
            writer.add_token(name, Role(role), hash_token(text), now, end, match)
        # The token alone on standard output: TOKEN=$(tocsin token create ...)
        typer.echo(text)
        say(f"{name}: {role}, stored in {place_of(settings)}; it will not be shown again")


@token.command("list")
def list_tokens(config: Config = None, data: Data = None) -> None:
    """List the tokens' names, roles and times, never the tokens themselves."""
    with explained():
        with opened(settings_of(config, data)) as store, store.reading() as reader:
            rows = reader.tokens()
        table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        for heading in ("name", "role", "created", "expires", "limited to"):
            table.add_column(heading, overflow="fold")
        now = time.time_ns()
        for row in rows:
            end = "never" if row.expires is None else _text(row.expires)
            over = row.expires is not None and row.expires <= now
            table.add_row(
                row.name, row.role, _text(row.created), f"{end} (expired)" if over else end, ", ".join(row.patterns)
            )
        if rows:
            console().print(table)
        else:
            say("there are no tokens: until you create one, a browser on this machine may do everything")


@token.command()
def revoke(name: Name, config: Config = None, data: Data = None) -> None:
    """Revoke a token. A running monitor rejects it within seconds."""
    with explained():
        entry = AccessEntry(_who(), "token revoke", name)
        with opened(settings_of(config, data)) as store, recording(entry), store.transaction() as writer:
            writer.remove_token(name)
        say(f"{name}: revoked")


def _who() -> str:
    """The caller, for the access log. In a container, the user may have no name."""
    try:
        return f"{getpass.getuser()} at the command line"
    except (KeyError, OSError):
        return "the command line"


def _text(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment // 10**9, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _moment(text: str, now: int) -> int:
    """When a token expires, in nanoseconds since 1970, from a duration or a time."""
    try:
        end = now + int(parse_duration(text).astype("int64"))
    except ValueError:
        try:
            end = moment_of(text)
        except ValueError as error:
            raise typer.BadParameter(
                f"{text!r} is neither a duration such as '90d' nor a time such as 2027-01-01.", param_hint="--expires"
            ) from error
    if end <= now:
        raise typer.BadParameter(f"{text!r} is in the past.", param_hint="--expires")
    if end >= 2**63:
        raise typer.BadParameter(f"{text!r} is after the year 2262.", param_hint="--expires")
    return end
