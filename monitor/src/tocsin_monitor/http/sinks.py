"""Sinks: test messages, so that people know that they would be told."""

import asyncio

from fastapi import Response

from tocsin_monitor.errors import UnknownError
from tocsin_monitor.http.auth import ADMIN
from tocsin_monitor.http.errors import UNKNOWN
from tocsin_monitor.http.monitor_access import Monitor, check_ready, done, reply
from tocsin_monitor.http.replies import TestMessages
from tocsin_monitor.http.requests import WhichSink
from tocsin_monitor.http.routes import ApiRouter

router = ApiRouter(prefix="/sinks", tags=["system"])


@router.post("/test", summary="Send test messages", response_model=TestMessages, responses=UNKNOWN)
async def send_test_messages(monitor: Monitor, caller: ADMIN, given: WhichSink | None = None) -> Response:
    """To each sink, or to one, at once and whatever its rules say; the reply comes when all have been tried."""
    check_ready(monitor)
    name = None if given is None else given.name
    chosen = [sink for sink in monitor.sinks if name in (None, sink.name)]
    if name is not None and not chosen:
        known = ", ".join(sink.name for sink in monitor.sinks) or "none"
        raise UnknownError(f"there is no sink {name!r}; the sinks are: {known}")
    await done(monitor.engine.write(lambda writer: None))  # so that the access log says who woke others up
    errors = await asyncio.gather(*(sink.test() for sink in chosen))
    told = zip(chosen, errors, strict=True)
    return reply({"sinks": [{"name": sink.name, "delivered": error is None, "error": error} for sink, error in told]})
