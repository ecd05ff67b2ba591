"""How people add and remove maintenance windows."""

import time

from tocsin.service.as_json import time_text
from tocsin.service.engine.changes import Changes, on_engine_thread
from tocsin.service.engine.incident_changes import LONGEST_NOTE
from tocsin.service.engine.new_signals import check_text
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.observations import LONGEST_NAME
from tocsin.service.store import MaintenanceRow

#: A limit, because each observation is compared with all current windows.
MOST_WINDOWS = 1000


class MaintenanceChanges(Changes):
    """Changes of maintenance windows."""

    @on_engine_thread
    def add(self, pattern: str, start: int, end: int, reason: str = "", by: str = "") -> MaintenanceRow:
        """Add a window. From `start` to `end`, observations of matching signals are stored but not judged."""
        if not end > start:
            raise RefusedError(f"end must be after start, got start {time_text(start)} and end {time_text(end)}")
        if not pattern:
            raise RefusedError("pattern must not be empty, got ''")
        check_text("pattern", pattern, LONGEST_NAME)
        check_text("reason", reason, LONGEST_NOTE)
        forgotten = time.time_ns() - round(self._state.settings.storage.keep_observations * 1e9)
        with self._state.store.transaction() as writer:
            for window in writer.maintenance():
                if window.end < forgotten:  # there are no older observations
                    writer.remove_maintenance(window.id)
            number = writer.add_maintenance(pattern, start, end, reason, by)
            windows = writer.maintenance()
            if len(windows) > MOST_WINDOWS:
                raise RefusedError(
                    f"there may be at most {MOST_WINDOWS} maintenance windows: remove some that have ended"
                )
        self._state.windows = windows
        return next(window for window in windows if window.id == number)

    @on_engine_thread
    def remove(self, number: int) -> None:
        """Remove a window. Observations that were not judged because of it stay unjudged."""
        if all(window.id != number for window in self._state.windows):
            raise UnknownError(f"there is no maintenance window {number}")
        with self._state.store.transaction() as writer:
            writer.remove_maintenance(number)
            windows = writer.maintenance()
        self._state.windows = windows
