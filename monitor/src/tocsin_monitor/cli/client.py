"""A client of a running monitor, over HTTP."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.application import say
from tocsin_monitor.errors import MonitorError

if TYPE_CHECKING:
    import httpx

    from tocsin_monitor.config import Settings


def token_option(role: str) -> Any:
    """The option with the token, which needs this role."""
    return typer.Option("--token", envvar="TOCSIN_TOKEN", help=f"A token with the role {role}.")


Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The monitor's address. Default: from --config.")]


def address_of(settings: "Settings") -> str:
    """The address of the monitor with these settings, from this machine."""
    server = settings.server
    if server.external_url is not None:
        return server.external_url
    host = "127.0.0.1" if server.host in ("0.0.0.0", "::") else server.host  # noqa: S104
    return f"{'https' if server.tls_certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{server.port}"


def client_of(address: str, token: str | None, patience: float) -> "httpx.Client":
    """A client of the monitor at an address. It waits `patience` seconds for an answer."""
    import httpx

    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        return httpx.Client(base_url=f"{address.rstrip('/')}/api/v1", headers=headers, timeout=patience)
    except (httpx.InvalidURL, ValueError) as error:
        raise typer.BadParameter(f"{address!r} is not a valid address: {error}.", param_hint="--url") from error


#: How long to wait for a monitor that is starting.
StartTimeout = Annotated[
    float,
    typer.Option(
        "--start-timeout", metavar="SECONDS", min=0.0, help="How long to wait for a monitor that is starting."
    ),
]
START_TIMEOUT = 300.0
# A monitor that is starting listens after so many seconds.
_LISTENS_AFTER = 15.0
_ASK_EVERY = 0.5


def wait_until_ready(client: "httpx.Client", seconds: float) -> None:
    """Wait while the monitor starts, and say so once; MonitorError if it is not ready after so many seconds."""
    import httpx

    began, told = time.monotonic(), False
    ready = client.base_url.copy_with(path="/readyz")
    while True:
        waited = time.monotonic() - began
        try:
            response = client.get(ready, timeout=_LISTENS_AFTER)
        except httpx.TransportError as error:
            if waited >= min(seconds, _LISTENS_AFTER):
                raise _no_answer(client, error) from error
            why = "it does not answer yet"
        else:
            if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                return
            why = _message(response, client)
            if waited >= seconds:
                raise MonitorError(f"{why}; waited {seconds:g} s for it to start (--start-timeout)")
        if not told:
            say(f"waiting for the monitor to start: {why}")
            told = True
        time.sleep(_ASK_EVERY)


def answered(client: "httpx.Client", method: str, path: str, **given: Any) -> "httpx.Response":
    """The monitor's reply; MonitorError if it refuses or does not answer."""
    import httpx

    try:
        response = client.request(method, path, **given)
    except httpx.HTTPError as error:
        raise _no_answer(client, error) from error
    if response.is_error:
        raise MonitorError(_message(response, client))
    return response


def _no_answer(client: "httpx.Client", error: Exception) -> MonitorError:
    return MonitorError(f"no monitor answers at {client.base_url} (--url): {error}")


def _message(response: "httpx.Response", client: "httpx.Client") -> str:
    """What an error says."""
    return str(_json(response, client).get("error", {}).get("message", f"it says {response.status_code}"))


def answer(client: "httpx.Client", method: str, path: str, **given: Any) -> Any:
    """What the monitor's reply says."""
    return _json(answered(client, method, path, **given), client)


def _json(response: "httpx.Response", client: "httpx.Client") -> Any:
    try:
        return response.json()
    except ValueError:
        raise MonitorError(f"something other than a monitor answers at {client.base_url} (--url)") from None
