"""`tocsin status`: how a running monitor is doing."""

import json
import re
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.application import Exit, app, say
from tocsin_monitor.cli.client import (
    START_TIMEOUT,
    StartTimeout,
    Url,
    address_of,
    answer,
    answered,
    client_of,
    token_option,
    wait_until_ready,
)
from tocsin_monitor.cli.monitoring import Config, explained, read

if TYPE_CHECKING:
    import httpx

PATIENCE = 30.0
# How long to count observations for their rate, in seconds.
COUNTED = 1.0
_OBSERVATIONS = re.compile(r"^tocsin_observations_total\{[^}]*\} (\S+)$", re.MULTILINE)


@app.command()
def status(
    url: Url = None,
    token: Annotated[str | None, token_option("read")] = None,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Ask a running monitor how it is doing: signals, rates, incidents, sources, sinks, store."""
    with explained():
        address = url or address_of(read(config).settings)
        with client_of(address, token, PATIENCE) as client:
            found = {"address": address, **_asked(client)}
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        for name, text in _lines(found):
            typer.echo(f"{name}: {text}")
    if not found["ready"]:
        say(f"it is not ready: {found['progress']}")
        raise typer.Exit(Exit.FAILED)


@app.command()
def reload(
    url: Url = None,
    token: Annotated[str | None, token_option("admin")] = None,
    config: Config = None,
    start_timeout: StartTimeout = START_TIMEOUT,
) -> None:
    """Let a running monitor read its settings file again."""
    with explained():
        address = url or address_of(read(config).settings)
        with client_of(address, token, PATIENCE) as client:
            wait_until_ready(client, start_timeout)
            found = answer(client, "POST", "/reload")
    typer.echo(f"changed: {', '.join(found['changed']) or 'nothing'}")
    if found["needs_restart"]:
        typer.echo(f"not before a restart: {', '.join(found['needs_restart'])}")


def _asked(client: "httpx.Client") -> dict[str, Any]:
    """What the monitor says, and how many observations it takes each second."""
    found = answer(client, "GET", "/status")
    first, began = _count(client), time.monotonic()
    time.sleep(COUNTED)
    taken = _count(client) - first
    return {
        **found,
        "observations": first + taken,
        "observations_per_second": round(taken / (time.monotonic() - began), 2),
    }


def _count(client: "httpx.Client") -> int:
    metrics = answered(client, "GET", str(client.base_url.copy_with(path="/metrics"))).text
    return sum(int(float(number)) for number in _OBSERVATIONS.findall(metrics))


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    quarantined = f", {len(found['quarantined'])} quarantined" if found["quarantined"] else ""
    ahead = f", {len(found['ahead'])} ahead of the clock" if found["ahead"] else ""
    lines = [
        ("monitor", f"{found['address']}, tocsin {found['version']}, {'ready' if found['ready'] else 'not ready'}"),
        ("started", f"{found['started']}, {_duration(found['uptime'])} ago"),
        ("signals", f"{found['signals']:,}, {found['silent']:,} silent{quarantined}{ahead}"),
        (
            "observations",
            f"{found['observations']:,} since the start, {found['observations_per_second']:g} a second now, "
            f"{found['waiting']:,} waiting",
        ),
        ("open incidents", f"{found['open_incidents']:,}"),
        (
            "expected false incidents",
            f"{found['expected_false_incidents']:.3g} a week, {found['expected_false_reported']:.3g} of them reported",
        ),
        ("store", f"{found['store_bytes'] / 2**20:,.1f} MiB"),
    ]
    lines += [(f"warning for {one['name']}", one["reason"]) for one in found["warnings"]]
    if found["clock_jumped"]:
        lines.append(("clock", f"jumped by {found['clock_jump']:.1f} s at {found['clock_jumped']}"))
    for kind in ("source", "sink"):
        lines += [(f"{kind} {one['name']}", _health(one, found["outbox"])) for one in found[f"{kind}s"]]
    return lines


def _health(one: dict[str, Any], outbox: dict[str, int]) -> str:
    """How a source or a sink is; its last error counts if nothing went well since."""
    error, success = one["last_error_time"] or "", one["last_success"] or ""
    said = f"failing: {one['last_error']}" if one["last_error"] and error > success else "well"
    said += f", last success {success}" if success else ", no success yet"
    waiting = outbox.get(one["name"], 0)
    return said + (f", {waiting:,} messages waiting" if waiting else "")


def _duration(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86400)
    return f"{f'{days} d ' if days else ''}{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
