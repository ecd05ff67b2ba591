"""Where to look first in an event: which signals moved first, and which others have moved near them before.

Order and coincidence, counted. Neither shows a cause.
"""

from collections.abc import Collection, Mapping
from typing import Any

from tocsin.service.as_json import time_text
from tocsin.service.store import EventRow, StoreReader

# All of it is a handful of short queries, however large the event and the past are.
FIRST, OTHERS, PAST, TOGETHER = 5, 50, 100, 3


def suspects_of(
    reader: StoreReader, event: EventRow, names: Mapping[int, str], limited: Collection[int] | None, window: int
) -> list[dict[str, Any]]:
    """The signals that moved first, each with the members that had incidents near its own before this event."""
    members = reader.members(event.id, signal_ids=limited, limit=OTHERS)
    starts: dict[int, int] = {}
    for row in members:
        starts.setdefault(row.signal, row.start)
    found = []
    for signal in list(starts)[:FIRST]:
        total, together = reader.counted_together(signal, list(starts), event.first, window, PAST)
        usual = sorted(together.items(), key=lambda item: (-item[1], names[item[0]]))[:TOGETHER]
        found.append(
            {
                "signal": names[signal],
                "start": time_text(starts[signal]),
                "seconds_after_first": (starts[signal] - members[0].start) / 1e9,
                "past_incidents": total,
                "together": [{"signal": names[other], "times": times} for other, times in usual],
            }
        )
    return found
