"""What is common to formats that others push: a body is unpacked, read and made durable, and only then acknowledged.

A format is a `PushFormat`, named by its rules in the settings (`PushRule.implementation`).
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import Headers
from starlette.types import Scope

from tocsin_monitor.config import PushSettings
from tocsin_monitor.http.auth import Caller
from tocsin_monitor.http.bodies import unpacked
from tocsin_monitor.http.errors import HttpError, Replies, errors
from tocsin_monitor.http.monitor_access import MonitorAccess, done
from tocsin_monitor.http.observations import MOST_OBSERVATIONS, sender_of
from tocsin_monitor.observations import Batch, Status
from tocsin_monitor.push import Intake, MalformedError, Receiver, Receivers, TooManyError

if TYPE_CHECKING:
    from tocsin_monitor.http.limits import LimitedBody

# Points of one request: senders split what they have into far smaller ones.
MOST_POINTS = 50_000
PROTOBUF = "application/x-protobuf"
BINARY = {"type": "string", "format": "binary"}


class Dialect(NamedTuple):
    """How clients at an address expect refusals.

    `write` gives the body and its type, from the status, the message and the request's type. `sent_again` are statuses
    on which they would throw away what is to be sent again: those become 503.
    """

    write: Callable[[int, str, str], tuple[bytes, str]]
    sent_again: tuple[int, ...] = ()

    def replies(self, content: Mapping[str, Any]) -> Replies:
        """The refusals in OpenAPI."""
        statuses = {400, 401, 403, 408, 413, 415, 422, 429, 500, 501, 503} - {*self.sent_again}
        return errors(*statuses, content=content)


@dataclass(frozen=True)
class PushFormat:
    """A pushed format: its routes, at the addresses that its clients know, and the dialect of each address."""

    router: APIRouter
    dialects: Mapping[str, Dialect]


@cache
def push_formats() -> tuple[PushFormat, ...]:
    """All formats, those of other packages too."""
    return tuple(kind.load() for kind in PushSettings.kinds.values())


@cache
def dialects() -> dict[str, Dialect]:
    """The dialects of all addresses where observations are pushed."""
    return {path: dialect for one in push_formats() for path, dialect in one.dialects.items()}


def in_dialect(scope: Scope, response: Response) -> Response:
    """A refusal as the clients of this address expect it."""
    dialect = dialects().get(scope["path"])
    if dialect is None:
        return response
    message = json.loads(bytes(response.body))["error"]["message"]
    status = response.status_code
    headers = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
    if status in dialect.sent_again:
        status = 503
        headers.setdefault("retry-after", "1")
    body, media_type = dialect.write(status, message, Headers(scope=scope).get("content-type", ""))
    return Response(body, status, headers, media_type)


async def _receivers(request: Request) -> Receivers:
    receivers: Receivers = request.app.state.receivers
    return receivers


Pushed = Annotated[Receivers, Depends(_receivers)]


@dataclass(frozen=True)
class Pushing:
    """What became of a request's points: how many are kept, how many refused and why, and which were left out."""

    kept: int
    refused: int
    why: str | None
    left_out: Counter[str]


def check_installed(extra: str, *modules: str) -> None:
    """Say which extra is missing."""
    try:
        installed = all(map(find_spec, modules))
    except ModuleNotFoundError:  # not even the package that one would be in
        installed = False
    if not installed:
        raise HttpError(501, f"this needs an extra: pip install 'tocsin-monitor[{extra}]', and start the monitor again")


async def push(
    request: Request,
    monitor: MonitorAccess,
    caller: Caller,
    receiver: Receiver,
    read: Callable[[bytes, Intake], None],
    coding: str = "identity",
) -> Pushing:
    """Take a request's points. When this returns, all that are kept are durable. `coding` is how the body is
    compressed if its headers do not say it.

    A request that is sent again, as after 429 or 503, gives the same observations: those that are stored already are
    known by their times.
    """
    receivers: Receivers = request.app.state.receivers
    latest = time.time_ns() + round(monitor.settings.engine.future_tolerance * 1e9)
    intake = Intake(receiver.rates, caller.may_see, MOST_POINTS, latest)
    body: LimitedBody = request.scope["limited_body"]
    raw, sender = await request.body(), sender_of(request, caller)
    try:
        async with receivers.reading:
            coding = request.headers.get("content-encoding", coding)
            plain = await asyncio.to_thread(unpacked, raw, coding, monitor.settings.server.max_body_bytes)
            body.hold(len(plain))
            await asyncio.to_thread(partial(_read, read, plain, intake))
    except HttpError as error:
        if error.status_code < 500:
            receiver.failed(error.detail, sender)
        raise
    refused, why = await _submit(monitor, receiver.name, sender, intake)
    intake.commit()
    receiver.succeeded(intake, refused, why, sender)
    return Pushing(len(intake.observations) - refused, intake.refused + refused, intake.why or why, intake.left_out)


def _read(read: Callable[[bytes, Intake], None], body: bytes, intake: Intake) -> None:
    try:
        read(body, intake)
    except MalformedError as error:
        raise HttpError(400, str(error), "body") from None
    except TooManyError as error:
        raise HttpError(413, str(error), "body") from None


async def _submit(monitor: MonitorAccess, source: str, sender: str, intake: Intake) -> tuple[int, str | None]:
    """Have the engine take the observations, in pieces that it takes; how many it refused, and why the first."""
    most = min(MOST_OBSERVATIONS, monitor.settings.engine.max_waiting)
    observations, refused, why = intake.observations, 0, None
    for begin in range(0, len(observations), most):
        batch = Batch(tuple(observations[begin : begin + most]), source=source, sender=sender)
        for outcome in await done(monitor.engine.submit(batch)):
            if outcome.status in (Status.REFUSED, Status.FUTURE):
                refused += 1
                why = why or f"{outcome.signal!r}: {outcome.message}"
    return refused, why
