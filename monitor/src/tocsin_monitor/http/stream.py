"""The live stream, as server-sent events."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Header, Query, Request, Response
from sse_starlette import EventSourceResponse

from tocsin_monitor.http.auth import READER, Caller, Keys, is_relayed
from tocsin_monitor.http.connections import possible
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.http.monitor_access import Monitor
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.hub import FullHubError, Subscription
from tocsin_monitor.observations import LONGEST_NAME

HEARTBEAT = 15
# Seconds after which a client that reads nothing is disconnected. It can reconnect and continue.
SLOWEST = 30.0
MOST_WATCHED = 100
# Streams of one token, or of one address without a token.
MOST_OF_ONE = 100
router = ApiRouter(tags=["stream"])
_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


@router.get(
    "/stream",
    summary="A stream of what happens",
    response_class=EventSourceResponse,
    responses={200: {"content": _STREAM, "description": "Server-sent events; data is JSON."}},
)
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
    open_streams: Counter[str] = request.app.state.streams
    client = caller.token or (request.client.host if request.client else "unknown")
    # A stream stays open as long as its client likes, so some connections are kept for everything else.
    most = possible(monitor.settings.server.max_connections) // 2
    if open_streams[client] >= MOST_OF_ONE or open_streams.total() >= most:
        message = f"{MOST_OF_ONE} live streams of one client, or {most} of all, are open: close some"
        raise HttpError(503, message, headers={"Retry-After": "30"})
    try:
        subscription = monitor.hub.subscribe(last_event_id if last_event_id is not None else after, signals)
    except FullHubError as error:
        raise HttpError(503, str(error), headers={"Retry-After": "30"}) from None
    keys: Keys = request.app.state.keys

    async def still_counts() -> bool:
        return await keys.caller(request.headers.get("authorization"), relayed=is_relayed(request.scope)) == caller

    news = _stream(subscription, still_counts, caller, open_streams, client)
    return EventSourceResponse(news, ping=HEARTBEAT, send_timeout=SLOWEST, sep="\n")


@contextmanager
def _counted(open_streams: Counter[str], client: str) -> Iterator[None]:
    """Count a stream as open in the block."""
    open_streams[client] += 1
    try:
        yield
    finally:
        open_streams[client] -= 1
        if not open_streams[client]:
            del open_streams[client]


async def _stream(
    subscription: Subscription, still_counts: Callable[[], Awaitable[bool]], caller: Caller,
    open_streams: Counter[str], client: str,
) -> AsyncIterator[bytes]:  # fmt: skip
    """The messages, while the token is valid."""
    with _counted(open_streams, client), subscription:
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
