"""Pictures of incidents, for sinks that can show them."""

import asyncio
import importlib.util
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import Any

from tocsin_monitor.as_json import number
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.sinks import drawing
from tocsin_monitor.store import IncidentRow, ObservationRow, SignalRow, Store

_log = logging.getLogger(__name__)

PATIENCE = 20.0  # seconds
# A picture takes a second or more. When there are many messages, most of them go without one, so that none comes late.
MOST_A_MINUTE = 10
# Observations before an incident and since its start; more of them would only blur the picture.
BEFORE, SINCE = 120, 480


class Pictures:
    """Draws incidents with the stored values around them, in another process and within `patience` seconds.

    Without matplotlib, or if drawing fails, there is no picture: that must not keep a message from being sent.
    """

    def __init__(self, store: Store, *, patience: float = PATIENCE) -> None:
        self._store, self._patience = store, patience
        self._possible = importlib.util.find_spec("matplotlib") is not None
        if not self._possible:
            _log.warning("messages have no pictures, since matplotlib is missing: pip install 'tocsin[plot]'")
        # It caches what it knows of fonts there; a confined service has no home for that.
        self._folder = tempfile.mkdtemp(prefix="tocsin-pictures-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._drawn_at: deque[float] = deque(maxlen=MOST_A_MINUTE)

    async def draw(self, incident: IncidentRow, signal: SignalRow) -> bytes | None:
        """The picture as PNG; None if there is none."""
        if not self._possible or not self._has_time():
            return None
        try:
            async with asyncio.timeout(self._patience):
                data = await asyncio.to_thread(self._read, incident, signal)
                return await self._drawn(json.dumps(data).encode()) if data["time"] else None
        except (TimeoutError, OSError, MonitorError) as error:
            reason = f"not ready within {self._patience:g} s" if isinstance(error, TimeoutError) else error
            _log.warning("no picture of incident %d: %s", incident.id, reason)
            return None

    def _has_time(self) -> bool:
        """Whether fewer pictures were drawn in the last minute than may be."""
        now = time.monotonic()
        if len(self._drawn_at) == MOST_A_MINUTE and now - self._drawn_at[0] < 60:
            return False
        self._drawn_at.append(now)
        return True

    async def _drawn(self, data: bytes) -> bytes:
        process = await asyncio.create_subprocess_exec(
            # -P: modules beside the program must not take the place of libraries.
            *(sys.executable, "-P", drawing.__file__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"MPLCONFIGDIR": self._folder, **os.environ},
        )
        try:
            picture, errors = await process.communicate(data)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            raise OSError(f"drawing failed: {errors.decode(errors='replace').strip().rpartition(chr(10))[2]}")
        return picture

    def _read(self, incident: IncidentRow, signal: SignalRow) -> dict[str, Any]:
        with self._store.reading() as reader:
            before = reader.observations(signal.id, until=incident.start - 1, limit=BEFORE, newest=True)
            since = reader.observations(signal.id, after=incident.start - 1, limit=SINCE)
        blamed = max(incident.contributions, key=lambda name: incident.contributions[name], default=None)
        feature = signal.features.index(blamed) if blamed in signal.features else 0
        name = signal.name if len(signal.features) == 1 else f"{signal.name}: {signal.features[feature]}"
        return {"title": name, "unit": signal.unit, **_columns([*before, *since], feature, incident)}


def _columns(rows: list[ObservationRow], feature: int, incident: IncidentRow) -> dict[str, Any]:
    """What the drawing program reads; None for what is not known."""
    curves = {
        name: [number(getattr(row.judged, name)[feature]) for row in rows]
        for name in ("value", "forecast", "low", "high")
    }
    last = rows[-1].time if rows else incident.end
    return {
        "time": [row.time / 1e9 for row in rows],
        "alarm": [row.judged.alarm for row in rows],
        "start": incident.start / 1e9,
        # An incident that lasts longer than the picture ends with it.
        "end": min(max(incident.end, incident.start), max(last, incident.start)) / 1e9,
        **curves,
    }
