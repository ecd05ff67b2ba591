"""What a sink's rules say about a message: send it, skip it, hold it back, or leave out the whole incident."""

import math
from enum import Enum

from tocsin.service.config.rules import DeliveryRules, Told
from tocsin.service.store import IncidentRow, LeadRow, Message, OutboxRow

_LOOK_AGAIN = 10 * 10**9  # ns


class Decision(Enum):
    """What to do with a message now."""

    SEND = "send it"
    SKIP = "the sink does not want this message"
    LEAVE_OUT = "the sink is told nothing about this incident"


def told_as(incident: IncidentRow, status: Message) -> Told:
    """Which of the messages that people choose from this is."""
    if status == "firing" or incident.open:
        return "opened"
    return "accepted" if incident.ended == "accepted" else "ended"


def decide(
    rules: DeliveryRules, row: OutboxRow, incident: IncidentRow, now: int, max_age: float = math.inf
) -> Decision | int:
    """The decision, or the moment until which the message is held back.

    What ended longer than `max_age`, in nanoseconds, before the monitor learned of it is nobody's alarm.
    """
    if row.status == "firing" and row.told is not None:
        # It has grown. That is no news once it is over, or once somebody takes care of what was escalated.
        if not incident.open or (rules.after is not None and incident.acknowledged is not None):
            return Decision.SKIP
    elif row.status == "firing" and row.attempts == 0:
        # After an attempt without a reply, the sink may know of the incident, and must learn of its end, too.
        if _is_past(incident, max_age):
            # Its observations may still come up to now; if it ends before they do, it was over long ago.
            return now + _LOOK_AGAIN if incident.open else Decision.LEAVE_OUT
        decision = _before_first_attempt(rules, incident, now)
        if decision is not None:
            return decision
    if told_as(incident, row.status) not in rules.messages:
        return Decision.SKIP
    allowed = rules.next_time(now)
    return Decision.SEND if allowed <= now else allowed


def _before_first_attempt(rules: DeliveryRules, incident: IncidentRow, now: int) -> Decision | int | None:
    if _slept_through(incident) or incident.ended == "removed":
        return Decision.LEAVE_OUT
    due = incident.opened
    if rules.after is not None:
        due += round(rules.after * 1e9)
        if now < due:
            return due
        if not incident.open or incident.acknowledged is not None:
            return Decision.LEAVE_OUT
    # It was over before anybody was to be told of it.
    if not incident.open and incident.closed is not None and rules.next_time(due) > max(due, incident.closed):
        return Decision.LEAVE_OUT
    return None


def _is_past(incident: IncidentRow, max_age: float) -> bool:
    return isinstance(incident, LeadRow) and incident.whole.age > max_age


def _slept_through(incident: IncidentRow) -> bool:
    until = incident.snoozed_until
    return not incident.open and until is not None and (incident.closed or incident.end) <= until
