"""Imports of history files."""

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool

from tocsin.data import DataError, check_room
from tocsin_monitor.access_log import pending_entry
from tocsin_monitor.as_json import json_of
from tocsin_monitor.engine import Progress
from tocsin_monitor.errors import OverloadedError, RefusedError
from tocsin_monitor.http.auth import READER, WRITER
from tocsin_monitor.http.bodies import check_type
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.http.monitor_access import Monitor, MonitorAccess, check_ready, done, reply
from tocsin_monitor.http.replies import Imported, Imports
from tocsin_monitor.http.requests import ImportIn
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.importing import HistoryFile, opened_history
from tocsin_monitor.observations import Batch, Observation, Outcome, Status

_FILE = "application/octet-stream"
#: The names of folders of uploads begin with this; the number of the process follows.
LEFTOVER = "tocsin-import-"
router = ApiRouter(tags=["history"])


@router.post(
    "/imports",
    summary="Import a history file",
    response_model=Imported,
    openapi_extra={
        "requestBody": {"required": True, "content": {_FILE: {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def take(request: Request, monitor: Monitor, caller: WRITER, given: Annotated[ImportIn, Query()]) -> Response:
    """The body is the file, which is read as by `tocsin detect`. The reply comes once everything is durable.

    Missing signals are created. Their history is learned and judged afterwards: `GET /imports` reports the progress.
    Sending the same again is harmless.
    """
    check_type(request.headers, _FILE)
    check_ready(monitor)
    async with _received(request, given.file) as path:
        opening = opened_history(path, given.signal, given.reading())
        history = await run_in_threadpool(opening.__enter__)
        try:
            for name in history.names:
                caller.check_signal(name)
            await _note(monitor, given.file, history)
            return reply(await _store(monitor, given.file, history))
        finally:
            await run_in_threadpool(opening.__exit__, None, None, None)


@router.get("/imports", summary="Progress of imports", response_model=Imports)
async def progress(monitor: Monitor, caller: READER) -> Response:
    """Each signal with imports since the monitor started, the newest first."""
    seen = (one for one in monitor.engine.imports() if caller.may_see(one.signal))
    return reply({"imports": [json_of(Progress, one) for one in seen]})


@asynccontextmanager
async def _received(request: Request, name: str) -> AsyncIterator[Path]:
    """The body as a temporary file with this name."""
    folder = await run_in_threadpool(tempfile.TemporaryDirectory, prefix=f"{LEFTOVER}{os.getpid()}-")
    try:
        path = Path(folder.name) / name
        try:
            opened = path.open("wb")
        except OSError as error:
            raise HttpError(422, f"file: {name!r} is not a file name: {error.strerror}", "file") from None
        with opened as file:
            async for piece in request.stream():
                try:
                    check_room(len(piece))
                except DataError as error:
                    raise HttpError(503, str(error), "body", {"Retry-After": "60"}) from None
                await run_in_threadpool(file.write, piece)
        yield path
    finally:
        await run_in_threadpool(folder.cleanup)


async def _note(monitor: MonitorAccess, file: str, history: HistoryFile) -> None:
    """Add the import to the access log before anything is stored."""
    entry = pending_entry()
    if entry is not None:
        entry.details = f"{file}: {', '.join(history.names)}"[:500]
    await done(monitor.engine.write(lambda writer: None))


async def _store(monitor: MonitorAccess, file: str, history: HistoryFile) -> dict[str, Any]:
    """Submit all observations, piece by piece; returns the result. A piece that is refused as a whole is an error."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in history.names}
    oldest = time.time_ns() - round(monitor.settings.storage.keep_observations * 1e9)
    pieces = history.pieces(monitor.engine.puts_together)
    with monitor.engine.storing(history.counts) as stored:
        while (piece := await run_in_threadpool(next, pieces, None)) is not None:
            outcomes = await _submit(monitor, piece)
            if outcomes and all(one.status is Status.REFUSED for one in outcomes):
                raise RefusedError(f"{file}: {outcomes[0].message}")
            stored(piece[0].signal, len(piece))
            count = counts[piece[0].signal]
            for status, many in Counter(one.status for one in outcomes).items():
                count[status.name.lower()] += many
            count["older"] += sum(one.time < oldest for one in outcomes)
    return {
        "file": file,
        "understood": history.understood,
        "problems": await run_in_threadpool(lambda: history.problems),
        "signals": [
            {
                "signal": name,
                "observations": sum(many for status, many in count.items() if status != "older"),
                "duplicates": count["duplicate"],
                "refused": count["refused"] + count["future"],
                "older": count["older"],
            }
            for name, count in counts.items()
        ],
    }


async def _submit(monitor: MonitorAccess, piece: list[Observation]) -> list[Outcome]:
    """Store a piece as soon as the queue has room for it."""
    most = monitor.settings.engine.max_waiting
    outcomes: list[Outcome] = []
    for first in range(0, len(piece), most):
        batch = Batch(tuple(piece[first : first + most]), source="import", history=True, whole=True)
        while True:
            try:
                taken: list[Outcome] = await done(monitor.engine.submit(batch))
                outcomes += taken
                break
            except OverloadedError as error:
                await asyncio.sleep(error.retry_after)
    return outcomes
