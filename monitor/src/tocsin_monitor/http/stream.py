"""The live stream, as server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from sse_starlette import EventSourceResponse

from tocsin_monitor.http.auth import READER, Caller, Keys, is_relayed
from tocsin_monitor.http.errors import COMMON, HttpError
from tocsin_monitor.http.monitor_access import Monitor
from tocsin_monitor.hub import FullHubError, Subscription
from tocsin_monitor.observations import LONGEST_NAME

HEARTBEAT = 15
# Seconds after which a client that reads nothing is disconnected. It can reconnect and continue.
SLOWEST = 30.0
MOST_WATCHED = 100
router = APIRouter(tags=["stream"])
_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


@router.get(
    "/stream", summary="A stream of what happens", response_class=EventSourceResponse,
    responses={200: {"content": _STREAM, "description": "Server-sent events; data is JSON."}, **COMMON},
)  # fmt: skip
async def stream(
    request: Request,
    monitor: Monitor,
    caller: READER,
    signals: Annotated[
        list[Annotated[str, Query(max_length=LONGEST_NAME)]],
        Query(max_length=MOST_WATCHED, description="Signals for which to send every verdict."),
    ] = [],  # noqa: B006 the framework copies it
    after: Annotated[str | None, Query(max_length=100, description="The id of the last message received.")] = None,
    last_event_id: Annotated[str | None, Header(max_length=100, description="The same; takes precedence.")] = None,
) -> Response:
    """Kinds: "verdicts" (the latest of each signal, at most once a second), "verdict" (each one of the `signals` asked
    for), "incident", "event" (the number of one that changed), "signal", "status"; and "reset" first if what came after
    the last one received is no longer available, so that the client must reload everything. A comment is sent
    every 15 s."""
    for name in signals:
        caller.check_signal(name)
    try:
        subscription = monitor.hub.subscribe(last_event_id if last_event_id is not None else after, signals)
    except FullHubError as error:
        raise HttpError(503, str(error), headers={"Retry-After": "30"}) from None
    keys: Keys = request.app.state.keys

    async def still_counts() -> bool:
        return await keys.caller(request.headers.get("authorization"), relayed=is_relayed(request.scope)) == caller

    news = _stream(subscription, still_counts, caller)
    return EventSourceResponse(news, ping=HEARTBEAT, send_timeout=SLOWEST, sep="\n")


async def _stream(
    subscription: Subscription, still_counts: Callable[[], Awaitable[bool]], caller: Caller
) -> AsyncIterator[bytes]:
    """The messages, while the token is valid."""
    with subscription:
        # With this id, a client that is disconnected before the first message can continue from here.
        known = "" if subscription.start is None else f"id: {subscription.start}\n"
        yield f"retry: 2000\n{known}\n".encode()
        while await still_counts():
            try:
                async with asyncio.timeout(HEARTBEAT):
                    message = await anext(subscription)
            except TimeoutError:
                continue  # to check the token again
            except StopAsyncIteration:
                return
            seen = message.limited_to(caller.may_see) if caller.patterns else message
            if seen is not None:
                yield seen.written()
