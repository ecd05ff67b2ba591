"""What all formats that others push have in common: unpacked, read, durable, and only then acknowledged."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from tocsin.service.http.auth import Caller
from tocsin.service.http.compression import unpacked
from tocsin.service.http.errors import HttpError
from tocsin.service.http.monitor_access import MonitorAccess, done
from tocsin.service.http.observations import MOST_OBSERVATIONS, sender_of
from tocsin.service.observations import Batch, Status
from tocsin.service.push import Intake, MalformedError, Receiver, Receivers, TooManyError

if TYPE_CHECKING:
    from tocsin.service.http.limits import LimitedBody

# Points of one request: senders split what they have into far smaller ones.
MOST_POINTS = 50_000


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
    if not all(map(_is_installed, modules)):
        raise HttpError(501, f"this needs an extra: pip install 'tocsin[{extra}]', and start the monitor again")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


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
    intake = Intake(receiver.rates.open(), caller.may_see, MOST_POINTS, latest)
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
