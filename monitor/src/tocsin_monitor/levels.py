"""How urgent an incident or an event is, in a word that pagers know."""

import math
from typing import Literal, get_args

from tocsin_monitor.store import EventSummary, IncidentFacts

Level = Literal["info", "warning", "critical"]
LEVELS: tuple[Level, ...] = get_args(Level)

#: From this severity on, an incident is a warning: about 3 nats more than an alarm needs where one a week is tolerated.
WARNING = 6.0
#: From this severity on, it is critical. Its scores are then a hundred times as far beyond the largest of 2,000 past
#: ones as the tail of those decays, or further. A blip of a few times what is usual stays below; an outage exceeds it.
CRITICAL = 25.0
#: An event of this many signals is a level more urgent than its strongest incident: more than one service or machine
#: has, so that more than one of them is hit.
MANY = 10


def level_of(incident: IncidentFacts) -> Level:
    """The level of an incident on its own.

    People asked to be told of silences and of values out of range, so those are warnings, and so is a limit ahead. One
    that is crossed is critical: the value deviates from it.
    """
    if incident.kind == "limit" and not math.isnan(incident.deviation):
        return "critical"
    if incident.kind != "alarm":
        return "warning"
    if incident.severity >= CRITICAL:
        return "critical"
    # As much evidence may have been there before, on a signal with a long past.
    is_news = incident.return_period > incident.seen
    return "warning" if incident.severity >= WARNING and is_news else "info"


def level_of_event(whole: EventSummary) -> Level:
    """The level of an event: that of its strongest incident, and one more if many signals have incidents."""
    level = LEVELS.index(level_of(whole.strongest.incident)) + (whole.signals >= MANY)
    return LEVELS[min(level, len(LEVELS) - 1)]
