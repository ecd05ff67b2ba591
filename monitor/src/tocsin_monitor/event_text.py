"""Incidents and events in words."""

from tocsin.detection import ending_of
from tocsin_monitor.store import EventSummary, IncidentRow

#: What the incidents of an event are called.
_WHAT = {"alarm": "incidents", "range": "values out of range", "limit": "limits crossed or ahead"}


def incident_text(incident: IncidentRow, signal: str) -> str:
    """An incident of the signal with this name, in one line."""
    if incident.kind == "silence":
        return f"{signal} is silent"
    if incident.kind == "range":
        return f"{signal} is out of range: {incident.explanation}"
    if incident.explanation:
        return f"{signal}: {incident.explanation}"
    return f"{signal} is {f'{incident.direction} its forecast' if incident.direction else 'unlike its forecast'}"


def title_of(whole: EventSummary) -> str:
    """An event in one line.

    A source has stopped if all its signals are silent; otherwise it may be the signals.
    """
    event = whole.event
    if whole.count == 1:
        return incident_text(whole.first.incident, whole.first.signal)
    signals = "1 signal" if whole.signals == 1 else f"{whole.signals} signals"
    if event.kind != "silence":
        what = _WHAT[event.kind]
        return f"{place_of(whole)}: {whole.count} {what} on {signals}"
    if event.source is None:
        return f"{place_of(whole)}: {signals} silent"
    if whole.signals >= whole.source_signals:
        return f"source {event.source} stopped: {signals} silent"
    return f"source {event.source}: {whole.signals} of {whole.source_signals} signals silent"


#: How many places of an event are named.
NAMED = 12


def place_of(whole: EventSummary) -> str:
    """What its incidents share, in a few words: a source, or a place. Else its places, that of the strongest first."""
    event = whole.event
    if event.source is not None:
        return f"source {event.source}"
    if event.place:
        return event.place
    more = f" and {len(whole.places) - NAMED} more" if len(whole.places) > NAMED else ""
    return f"{', '.join(whole.places[:NAMED])}{more}"


def event_ending(whole: EventSummary) -> str:
    """How an event of several incidents ended, in a few words."""
    ended = f"all {whole.count} incidents ended"
    if whole.ended is None:
        return f"{place_of(whole)}: {ended}, for different reasons"
    if whole.ended in ("returned", "subsided"):
        return f"{place_of(whole)}: resolved, {ended}"
    return f"{place_of(whole)}: {ended} ({ending_of(whole.ended).short})"


def story_of(whole: EventSummary) -> str:
    """Which incidents an event has, in a sentence or two: those that moved first, and the strongest."""
    story = f"{title_of(whole)}. In the order of their start: {members_of(whole, 3)}."
    if whole.event.kind != "alarm":
        return story
    return f"{story} Strongest: {incident_text(whole.strongest.incident, whole.strongest.signal)}."


def members_of(whole: EventSummary, most: int) -> str:
    """The signals of an event's incidents in the order of their start, at most `most` of them."""
    first = ", ".join(member.signal for member in whole.members[:most])
    return f"{first} and {whole.count - most} more" if whole.count > most else first
