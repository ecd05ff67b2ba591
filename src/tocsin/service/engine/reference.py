"""References: somebody says that a signal was good for a while, and its detector compares with that."""

import time

from tocsin.service.as_json import time_text
from tocsin.service.engine.core import Core
from tocsin.service.engine.rebuilding import alone, rebuild
from tocsin.service.engine.replaying import TAKEN, value_of
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.store import ReferenceRow

# While a reference is learned, all signals wait: this many take some seconds.
MOST_OBSERVATIONS = 20_000


def put_reference(core: Core, name: str, start: int, end: int, by: str) -> ReferenceRow:
    """Let a signal learn what was stored from `start` to `end`, both included, and compare with that from then on.

    The detector begins anew with it, and then takes what was stored since. The reference stays until it is replaced or
    removed: what was observed in it is kept for as long.
    """
    signal = core.signal(name)
    if start > end:
        raise RefusedError(f"start must not be after end, got start {time_text(start)} and end {time_text(end)}")
    with core.store.reading() as reader:
        rows = reader.observations(
            signal.row.id, after=start - 1, until=end, statuses=TAKEN, limit=MOST_OBSERVATIONS + 1
        )
    if len(rows) > MOST_OBSERVATIONS:
        raise RefusedError(
            f"a reference must have at most {MOST_OBSERVATIONS} observations, got more "
            f"from start {time_text(start)} to end {time_text(end)}"
        )
    times, values = [row.time for row in rows], [value_of(row) for row in rows]
    reference = ReferenceRow(signal.row.id, start, end, len(rows), time.time_ns(), by)
    rebuild(
        core, signal, alone(core, signal.row, reference), observed=(times, values),
        change=lambda writer: writer.put_reference(reference, times, values),
    )  # fmt: skip
    core.hub.publish("signal", {"name": name, "change": "reference"})
    return reference


def remove_reference(core: Core, name: str) -> None:
    """Let a signal learn from its past again, as it moves on, beginning with the newest of what is stored."""
    signal = core.signal(name)
    if signal.reference is None:
        raise UnknownError(f"signal {name!r} has no reference")
    rebuild(core, signal, alone(core, signal.row), change=lambda writer: writer.remove_reference(signal.row.id))
    core.hub.publish("signal", {"name": name, "change": "reference"})
