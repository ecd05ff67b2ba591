"""Recognises repeated requests by their idempotency key.

An observation without a time gets the time of its arrival. If its request is repeated, it must get the same time again,
or it would count twice. So the store keeps the times of a request for a day, under the key from its sender.
"""

import json
from dataclasses import replace

from tocsin.service.observations import Batch, Cursor
from tocsin.service.store import Store, StoreReader, StoreWriter

_DAY = 86400 * 10**9


def recalled(store: Store, batch: Batch, now: int) -> Batch:
    """The batch with the times from its first request, if it is a repeated one."""
    if batch.key is None or batch.request is not None or all(one.time is not None for one in batch.observations):
        return batch
    with store.reading() as reader:
        found = _found(reader, batch.key, now)
    times = [] if found is None else json.loads(found.position)
    if len(times) != len(batch.observations):
        return batch
    pairs = zip(batch.observations, times, strict=True)
    return replace(batch, observations=tuple(replace(one, time=time) for one, time in pairs), request=found)


def noted(batch: Batch, now: int) -> Batch:
    """The batch with its times as a record to store under its key. All observations must have a time."""
    if batch.key is None or batch.request is not None:
        return batch
    times = json.dumps([one.time for one in batch.observations])
    return replace(batch, request=Cursor(_name(batch.key, now), times))


def forget_requests(writer: StoreWriter, now: int) -> None:
    """Remove records that are older than a day."""
    writer.remove_cursors(_name("", 0), _name("", now - _DAY))


def _found(reader: StoreReader, key: str, now: int) -> Cursor | None:
    for day in (now, now - _DAY):
        name = _name(key, day)
        position = reader.cursor(name)
        if position is not None:
            return Cursor(name, position)
    return None


def _name(key: str, now: int) -> str:
    return f"request/{now // _DAY:06d}/{key}"
