"""Maintenance windows, which people add and remove."""

import time

from tocsin.service.engine.changes import Changes, on_engine_thread
from tocsin.service.engine.incident_changes import LONGEST_NOTE
from tocsin.service.engine.new_signals import check_text
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.observations import LONGEST_NAME
from tocsin.service.store import MaintenanceRow

#: Each observation is compared with those that are not over.
MOST_WINDOWS = 1000


class MaintenanceChanges(Changes):
    """What people do to maintenance windows."""

    @on_engine_thread
    def add(self, pattern: str, start: int, end: int, reason: str = "", by: str = "") -> MaintenanceRow:
        """From `start` to `end` observations of the signals that fit the pattern are kept, but not judged."""
        if not end > start:
            raise RefusedError("a maintenance window must end after it starts")
        if not pattern:
            raise RefusedError("a pattern must not be empty")
        check_text("a pattern", pattern, LONGEST_NAME)
        check_text("a reason", reason, LONGEST_NOTE)
        forgotten = time.time_ns() - round(self._state.settings.storage.keep_observations * 1e9)
        with self._state.store.transaction() as writer:
            for window in writer.maintenance():
                if window.end < forgotten:  # no observation is that old
                    writer.remove_maintenance(window.id)
            number = writer.add_maintenance(pattern, start, end, reason, by)
            windows = writer.maintenance()
            if len(windows) > MOST_WINDOWS:
                raise RefusedError(
                    f"there may be at most {MOST_WINDOWS} maintenance windows: remove some that are over"
                )
        self._state.windows = windows
        return next(window for window in windows if window.id == number)

    @on_engine_thread
    def remove(self, number: int) -> None:
        """End a window, or call it off. What was not judged in it stays so."""
        if all(window.id != number for window in self._state.windows):
            raise UnknownError(f"there is no maintenance window {number}")
        with self._state.store.transaction() as writer:
            writer.remove_maintenance(number)
            windows = writer.maintenance()
        self._state.windows = windows
