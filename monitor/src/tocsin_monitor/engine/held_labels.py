"""Labels that hold: what somebody said of an incident is said of the next ones like it, until it is withdrawn."""

from collections.abc import Mapping
from typing import Any

from tocsin_monitor.store import IncidentRow, StoreReader, StoreWriter

FAULT, FALSE_ALARM = "fault", "false alarm"
#: The labels after which nobody is told of the next ones.
SUPPRESSING = ("expected", "not interesting")
#: The fields of an incident whose label is its own.
NOT_HELD: Mapping[str, Any] = {"holds": False, "label_of": None}


def held_label(reader: StoreReader, row: IncidentRow) -> dict[str, Any]:
    """The fields of an incident that follow from labels of earlier ones like it. What somebody said of it itself stays.

    An incident that was told of already is not suppressed. A silence is like no other.
    """
    if row.alike is None or (row.label is not None and row.label_of is None):
        return {}
    holder = reader.label_holder(row)
    if holder is None:
        return {"label": None, "label_of": None, "suppressed": False}
    suppressed = holder.label in SUPPRESSING and row.event is None
    return {"label": holder.label, "label_of": holder.id, "suppressed": suppressed}


def hold_label(writer: StoreWriter, row: IncidentRow, label: str | None, hold: bool) -> Mapping[str, Any]:
    """The fields of an incident that somebody labels; its label is the only one that holds for those like it.

    Whoever removes a label that holds, or that came from another incident, withdraws it.
    """
    holds = hold and label is not None and label != FALSE_ALARM and row.alike is not None
    if holds or (label is None and (row.holds or row.label_of is not None)):
        writer.withdraw_labels(row)
    return {**NOT_HELD, "holds": holds}
