"""`tocsin token`: who may do what with the monitor."""

import getpass
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tocsin.cli.application import app, console, refuse_unknown, say
from tocsin.cli.monitoring import Config, Data, explained, opened, place_of, settings_of
from tocsin.data import parse_duration
from tocsin.service.audit import Deed, doing
from tocsin.service.observations import moment_of
from tocsin.service.tokens import NAME_PATTERN, ROLES, check_patterns, hash_token, make_token

if TYPE_CHECKING:
    from tocsin.service.store import Role

token = typer.Typer(name="token", help="Make, list and revoke the tokens of the monitor.", no_args_is_help=True)
app.add_typer(token)

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the token is called: who uses it.")]


@token.command()
def create(
    name: Name,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help=f"What it allows: {', '.join(ROLES)}.")],
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="WHEN", help="When it ends: '90d', or a time such as 2027-01-01."),
    ] = None,
    match: Annotated[
        list[str],
        typer.Option("--match", metavar="PATTERN", help="Limit it to signals of such names, with * and ?; repeatable."),
    ] = [],  # noqa: B006 the library copies it
    config: Config = None,
    data: Data = None,
) -> None:
    """Make a token and print it, this once: only its hash is kept. A monitor that runs knows it after seconds."""
    refuse_unknown("--role", [role], ROLES)
    now = time.time_ns()
    end = None if expires is None else _moment(expires, now)
    if not re.fullmatch(NAME_PATTERN, name):
        raise typer.BadParameter(
            f"{name!r} is not 1 to 64 letters, digits and _ . @ -, a letter or digit first.", param_hint="NAME"
        )
    try:
        check_patterns(role, match)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--match") from error
    with explained():
        settings = settings_of(config, data)
        text = make_token()
        deed = Deed(_who(), "token create", name, " ".join((role, *match)))
        with opened(settings, make=True) as store, doing(deed), store.transaction() as writer:
            writer.add_token(name, cast("Role", role), hash_token(text), now, end, match)
        # The token alone on standard output: TOKEN=$(tocsin token create ...)
        typer.echo(text)
        say(f"{name}: {role}, kept in {place_of(settings)}; it is not shown again")


@token.command("list")
def list_tokens(config: Config = None, data: Data = None) -> None:
    """List the tokens: their names, roles and times, never the tokens themselves."""
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
                row.name, row.role, _text(row.created), f"{end} (over)" if over else end, ", ".join(row.patterns)
            )
        if rows:
            console().print(table)
        else:
            say("there are no tokens: until the first one is made, a browser on this machine may do everything")


@token.command()
def revoke(name: Name, config: Config = None, data: Data = None) -> None:
    """Take a token back. A monitor that runs refuses it after seconds."""
    with explained():
        deed = Deed(_who(), "token revoke", name)
        with opened(settings_of(config, data)) as store, doing(deed), store.transaction() as writer:
            writer.remove_token(name)
        say(f"{name}: revoked")


def _who() -> str:
    """Who calls, for the audit trail; nobody may have a name in a container."""
    try:
        return f"{getpass.getuser()} at the command line"
    except (KeyError, OSError):
        return "the command line"


def _text(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment // 10**9, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _moment(text: str, now: int) -> int:
    """When a token ends, in nanoseconds since 1970, from a length of time or a time."""
    try:
        end = now + int(parse_duration(text).astype("int64"))
    except ValueError:
        try:
            end = moment_of(text)
        except ValueError as error:
            raise typer.BadParameter(
                f"{text!r} is no length of time such as '90d' and no time such as 2027-01-01.", param_hint="--expires"
            ) from error
    if end <= now:
        raise typer.BadParameter(f"{text!r} is over already.", param_hint="--expires")
    if end >= 2**63:
        raise typer.BadParameter(f"{text!r} is after the year 2262.", param_hint="--expires")
    return end
