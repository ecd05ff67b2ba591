"""Incidents: alarms that belong together; as objects, as columns of a table, and in words."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.constants import constants
from tocsin.data import format_times
from tocsin.detection.incidents.verdict import (
    ACCEPTED,
    LOG_10,
    ONGOING,
    RETURNED,
    SILENT,
    SUBSIDED,
    Verdicts,
    direction_of,
    explain,
    known_interval,
)
from tocsin.detection.settings.alarm_rate import EXTRAPOLATION
from tocsin.detection.views import View
from tocsin.detection.views.view import length_text

# A detector that runs for years keeps only the newest incidents.
MOST_KEPT = 10_000

LABELLED = "labelled"
ENDS = {RETURNED: "returned", SUBSIDED: "subsided", ACCEPTED: "accepted", SILENT: "silent"}
"""Why an incident ended: it was clear, and the signal is back to normal; nothing has been unusual since, but nobody can
tell whether its cause is gone; its new behaviour is accepted as normal; or it has no more values.
`LABELLED`: a user said that it is not an incident."""


@dataclass
class Incident:
    """A stretch from a signal's first alarm until it is back to normal.

    `start`, `end` and `peak` are times, or observation numbers if there are no times. `end` is the last observation so
    far with an alarm or unlike the time before the incident. The peak is the first alarm that no later one clearly
    exceeds in evidence, except at the end of a burst; `view` and `explanation` say what was anomalous there, and
    `direction` and `deviation` (value minus forecast) are those of the most anomalous feature. `features` lists the
    features, those that contributed most first.
    """

    signal: str
    start: Any
    end: Any
    peak: Any
    first: int
    last: int
    alarms: int
    p: float
    severity: float
    #: The average number of observations until an incident with this much evidence recurs: at most a hundred times as
    #: many as there were.
    return_period: float
    view: str | None
    explanation: str | None
    direction: str | None
    deviation: float
    contributions: dict[str, float] = field(default_factory=dict)
    #: How far its alarms went from the forecast or from the usual value, whichever is further, and the largest value at
    #: an alarm; of the feature that was most anomalous then, NaN if unknown.
    away: float = float("nan")
    highest: float = float("nan")
    #: The evidence at the peak, in nats, or at the end of a burst that shows more than the burst.
    evidence: float = -math.inf
    #: How many observations of the signal came before it.
    seen: int = 0
    #: Between which times, or observation numbers, it began, estimated from the values before it was noticed; None
    #: where nothing was noticed late, or times are known but the sampling interval is not.
    began_earliest: Any = None
    began_latest: Any = None
    #: Whether its rarity was estimated when it began, because the signal's own past was too short.
    estimated: bool = False
    #: How rare the evidence at the peak is, minus the log rate: it orders incidents, and goes on growing where nobody
    #: can tell how often such evidence comes.
    rarity: float = -math.inf
    #: On which side of its forecast the most anomalous feature was at the first alarm.
    side: str | None = None
    #: Why it ended: "returned", "subsided", "accepted", "silent" or "labelled"; None while it is open.
    ended: str | None = None
    #: The p-value of each feature at the peak, from its own views; none for one without a score there.
    feature_p: dict[str, float] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether it is still open."""
        return self.ended is None

    @property
    def duration(self) -> int:
        """The number of observations from its first to its last."""
        return self.last - self.first + 1

    @property
    def features(self) -> list[str]:
        """The features, those that contributed most (by the severity that each alone would have) first."""
        return sorted(self.contributions, key=lambda name: -self.contributions[name])

    @property
    def suspects(self) -> list[str]:
        """The features that contributed most: the first, and those that it does not clearly exceed.

        Which of them was at fault cannot be told.
        """
        least = max(self.contributions.values(), default=0.0) - constants().certainty / LOG_10
        return [name for name in self.features if self.contributions[name] > max(least, 0.0)]


class IncidentLog:
    """Collects the incidents of signals from their verdicts.

    Incidents shorter than `min_duration` observations are not reported.
    """

    def __init__(
        self, names: Sequence[str], features: Sequence[str], views: Sequence[View], min_duration: int,
        interval: float | None = None,
    ) -> None:  # fmt: skip
        self.names, self.features, self.views = list(names), list(features), tuple(views)
        #: The unit of each signal's values, as callers set it; in brackets, a feature may have its own.
        self.units = [""] * len(self.names)
        self.min_duration, self._interval = min_duration, interval
        self._open: dict[int, Incident] = {}
        self._closed: deque[Incident] = deque(maxlen=MOST_KEPT)
        self._labelled: set[int] = set()  # signals whose open incident was labelled as normal
        #: If it is a list, each alarm appends the open incident as it is then, for callers that judge many observations
        #: at once.
        self.at_alarms: list[Incident | None] | None = None

    def add(self, verdicts: Verdicts, numbers: np.ndarray, rows: np.ndarray, times: Any) -> None:
        """Add verdicts on the signals `rows`. `numbers[T, N]` counts their observations, `times[T, N]` may be None."""
        alarms, states = verdicts.alarm, verdicts.state
        if not (self._open or self._labelled) and not np.count_nonzero(alarms):
            return
        busy = alarms.any(axis=0)
        if self._open or self._labelled:
            busy = busy | np.isin(rows, [*self._open, *self._labelled])
        over: list[tuple[int, int, Incident]] = []
        for column in map(int, np.flatnonzero(busy)):
            signal, first = int(rows[column]), int(numbers[0, column])
            for step in map(int, np.flatnonzero(alarms[:, column] | (states[:, column] >= ONGOING))):
                ended = ENDS.get(int(states[step, column]))
                if signal in self._labelled:
                    self._labelled -= {signal} if ended else set()
                    if alarms[step, column] and self.at_alarms is not None:
                        self.at_alarms.append(None)
                    continue
                time = first + step if times is None else times[step, column]
                time = time.item() if isinstance(time, np.number) else time
                if alarms[step, column]:
                    self._alarm(signal, verdicts, step, column, first + step, time)
                if signal in self._open:
                    over += [(step, column, incident) for incident in self._follow(signal, ended, first + step, time)]
                if alarms[step, column] and self.at_alarms is not None:
                    incident = self.open_incident(signal)
                    self.at_alarms.append(None if incident is None else replace(incident))
        # In the order in which they would have ended one observation at a time.
        self._closed.extend(incident for _, _, incident in sorted(over, key=lambda one: one[:2]))

    def _follow(self, signal: int, ended: str | None, number: int, time: Any) -> list[Incident]:
        """Extend the signal's incident to this observation, or end it; returns it if it ended and is to be reported."""
        incident = self._open[signal]
        if ended is None:
            incident.end, incident.last = time, number
            return []
        del self._open[signal]
        incident.ended = ended
        return [incident] if incident.duration >= self.min_duration else []

    def label(self, signal: int) -> None:
        """End the signal's incident because a user said it is normal, and open no other before it is over."""
        if signal in self._open:
            self._closed.extend(self._follow(signal, LABELLED, 0, None))
            self._labelled.add(signal)

    def _alarm(self, signal: int, verdicts: Verdicts, step: int, column: int, number: int, time: Any) -> None:
        evidence = verdicts.evidence.item(step, column)
        severity, rate = evidence / LOG_10, verdicts.rate.item(step, column)
        period = min(1.0 / rate, EXTRAPOLATION * (number + 1))
        incident = self._open.get(signal)
        if incident is None:
            incident = self._open[signal] = Incident(
                signal=self.names[signal],
                start=time,
                end=time,
                peak=time,
                first=number,
                last=number,
                alarms=0,
                p=1.0,
                severity=-1.0,
                return_period=0.0,
                view=None,
                explanation=None,
                direction=None,
                deviation=float("nan"),
                contributions=dict.fromkeys(self.features, 0.0),
                seen=number,
                estimated=bool(verdicts.estimated[step, column]),
            )
        incident.alarms += 1
        earliest, latest = verdicts.began[step, column].tolist()
        if earliest >= 0:
            incident.began_earliest, incident.began_latest = (self._before(time, ago) for ago in (earliest, latest))
        # Not by p, which has a smallest value: several features reach it, and the most anomalous is one of them.
        by_feature = verdicts.feature_evidence[step, column]
        if incident.alarms == 1:
            incident.side = direction_of(verdicts.value[step, column] - verdicts.forecast[step, column], -by_feature)
        for name, feature in zip(self.features, by_feature.tolist(), strict=True):
            if not math.isnan(feature):
                incident.contributions[name] = max(incident.contributions[name], feature / LOG_10)
        incident.p = min(incident.p, float(verdicts.p[step, column]))
        if not math.isnan(rate):
            incident.return_period = max(incident.return_period, period)
            incident.rarity = max(incident.rarity, -math.log(rate))
        incident.severity = max(incident.severity, severity)
        if not np.isnan(by_feature).all():
            worst = int(np.nanargmax(by_feature))
            value = verdicts.value[step, column, worst]
            centres = verdicts.forecast[step, column, worst], verdicts.usual[step, column, worst, 0]
            incident.away = float(np.fmax.reduce([incident.away, *np.abs(value - np.array(centres))]))
            incident.highest = float(np.fmax(incident.highest, value))
        # The end of a fault often shows as much as its start, on the other side. The end of a burst may show more,
        # since the forecast has followed; the words stay those of the burst.
        if evidence > incident.evidence + constants().certainty:
            interval = known_interval(self._interval, time)
            why = explain(verdicts, step, column, self.views, self.features, self.units[signal], interval)
            error = verdicts.value[step, column] - verdicts.forecast[step, column]
            direction = direction_of(error, -by_feature)
            incident.evidence = evidence
            if why is not None and why.usual and {direction, incident.direction} == {"above", "below"}:
                return
            incident.peak = time
            incident.view, incident.explanation = (why.view, why.text) if why else (None, None)
            incident.direction = direction
            by_p = zip(self.features, verdicts.feature_p[step, column].tolist(), strict=True)
            incident.feature_p = {name: p for name, p in by_p if not math.isnan(p)}
            known = not np.isnan(by_feature).all()
            incident.deviation = float(error[np.nanargmax(by_feature)]) if known else float("nan")

    def _before(self, time: Any, observations: int) -> Any:
        """The time this many observations before; None if that is unknown."""
        if isinstance(time, int):
            return max(time - observations, 0)
        if self._interval is None:
            return None
        if isinstance(time, np.datetime64):
            return time - np.timedelta64(round(1e9 * observations * self._interval), "ns")
        return time - observations * self._interval if isinstance(time, float) else None

    def incidents(self, signal: int | None = None) -> list[Incident]:
        """The closed incidents and then the open ones, if long enough to be reported."""
        going_on = [incident for _, incident in sorted(self._open.items()) if incident.duration >= self.min_duration]
        return [
            incident
            for incident in (*self._closed, *going_on)
            if signal is None or incident.signal == self.names[signal]
        ]

    def open_incident(self, signal: int) -> Incident | None:
        """The signal's open incident, if long enough to be reported."""
        incident = self._open.get(signal)
        return incident if incident is not None and incident.duration >= self.min_duration else None

    def take_closed(self) -> list[Incident]:
        """Remove and return the closed incidents, the oldest first."""
        taken = list(self._closed)
        self._closed.clear()
        return taken

    def copy_from(self, signal: int, other: "IncidentLog", theirs: int, name: str | None = None) -> None:
        """Replace a signal's incidents with those of the signal `theirs` in another log; `name` renames it."""
        others = [incident for incident in self._closed if incident.signal != self.names[signal]]
        self.names[signal] = self.names[signal] if name is None else name

        def copied(incident: Incident) -> Incident:
            return replace(incident, signal=self.names[signal], contributions=dict(incident.contributions))

        self._open.pop(signal, None)
        self._labelled -= {signal}
        self._labelled |= {signal} if theirs in other._labelled else set()
        if theirs in other._open:
            self._open[signal] = copied(other._open[theirs])
        copies = [copied(incident) for incident in other._closed if incident.signal == other.names[theirs]]
        # If there are too many in all, the oldest are dropped.
        self._closed = deque([*copies, *others], maxlen=MOST_KEPT)

    def state(self) -> dict[str, Any]:
        """Everything, in JSON types except for times."""
        return {
            "open": {str(signal): asdict(incident) for signal, incident in sorted(self._open.items())},
            "closed": [asdict(incident) for incident in self._closed],
            "labelled": sorted(self._labelled),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state()` returned."""
        self._open = {int(signal): Incident(**incident) for signal, incident in state["open"].items()}
        self._closed = deque((Incident(**incident) for incident in state["closed"]), maxlen=MOST_KEPT)
        self._labelled = set(map(int, state["labelled"]))


class Ending(NamedTuple):
    """How an incident ended: in one or two words, in a few, and in a sentence."""

    short: str
    summary: str
    sentence: str


_OPEN = Ending("still open", "resolved", "It is over.")  # the longer forms are of messages, which are sent at the end
_ENDINGS = {
    "returned": Ending("returned", "resolved, back to normal", "It is over: the signal is back to normal."),
    "subsided": Ending(
        "subsided",
        "resolved, nothing unusual since",
        "It is over: nothing has been unusual since. Tocsin cannot tell whether its cause is gone.",
    ),
    "sending": Ending("returned", "resolved, sending again", "It is over: the signal is sending again."),
    "accepted": Ending(
        "accepted",
        "changed for good, and accepted as the new normal",
        "It ended, but the signal did not return: its new behaviour is accepted as normal.",
    ),
    "silent": Ending(
        "no more values",
        "sends no more values",
        "It ended, but the signal did not return: it sends no more values.",
    ),
    "labelled": Ending(
        "labelled",
        "labelled a false alarm, and accepted as normal",
        "It ended because a user labelled it a false alarm: the signal's behaviour is accepted as normal.",
    ),
    "reset": Ending(
        "detector reset",
        "incident ended because its detector was reset",
        "It ended because the detector was reset. Whether the signal is back to normal is unknown.",
    ),
    "relearned": Ending(
        "detector retrained",
        "incident ended because its detector was retrained",
        "It ended because the detector was retrained. Whether the signal is back to normal is unknown.",
    ),
    "removed": Ending(
        "signal removed",
        "incident ended because the signal was removed",
        "It ended because a user removed the signal. It is no longer monitored.",
    ),
    "imported": Ending("imported", "resolved", "It is over."),
}


def ending_of(ended: str | None) -> Ending:
    """How an incident ended, in words, from its `ended`; "sending" is a silence after which the signal returned."""
    return _OPEN if ended is None else _ENDINGS[ended]


def rarity(return_period: float, seconds: float | None, seen: int) -> str:
    """How rare evidence is, from its return period in observations; empty if that is unknown.

    Nothing is said about more than the observations that were seen before.

    >>> rarity(3456, 300, 10_000), rarity(3456, None, 10_000), rarity(3456, 300, 576)
    ('about once in 12 days', 'about once in 3,456 observations', 'not seen in these 2 days')
    """
    length = length_text(min(return_period, seen), seconds)
    return (
        ""
        if not length or not seen
        else f"about once in {length}"
        if return_period <= seen
        else f"not seen in these {length}"
    )


def onset_text(incident: Incident) -> str:
    """When an incident began, if it was noticed late: "between 21:40 and 22:10"."""
    earliest, latest = incident.began_earliest, incident.began_latest
    if earliest is None or latest is None or not latest < incident.start:
        return ""
    return f"between {time_text(earliest)} and {time_text(latest)}"


# An incident is not like an earlier one if it is more than so many times as severe: that is news.
MUCH_SEVERER = 2.0


def alike(incident: Incident) -> tuple[Any, ...]:
    """Incidents with the same of these are alike, unless the later is much severer: what was seen, where, and how."""
    return incident.signal, incident.view, next(iter(incident.features), None), incident.direction


def ordinal(number: int) -> str:
    """A number with its ending.

    >>> [ordinal(number) for number in (1, 2, 3, 11, 22)]
    ['1st', '2nd', '3rd', '11th', '22nd']
    """
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{last}"


def incident_columns(incidents: Sequence[Incident]) -> dict[str, NDArray[Any]]:
    """The incidents as columns of a table, in their order."""
    return {
        "signal": np.array([incident.signal for incident in incidents], dtype=object),
        "start": _times([incident.start for incident in incidents]),
        "end": _times([incident.end for incident in incidents]),
        "peak": _times([incident.peak for incident in incidents]),
        "duration": np.array([incident.duration for incident in incidents], dtype=np.int64),
        "alarms": np.array([incident.alarms for incident in incidents], dtype=np.int64),
        "p": np.array([incident.p for incident in incidents], dtype=np.float64),
        "severity": np.array([incident.severity for incident in incidents], dtype=np.float64),
        "return_period": np.array([incident.return_period for incident in incidents], dtype=np.float64),
        "view": np.array([incident.view or "" for incident in incidents], dtype=object),
        "explanation": np.array([incident.explanation or "" for incident in incidents], dtype=object),
        "direction": np.array([incident.direction or "" for incident in incidents], dtype=object),
        "deviation": np.array([incident.deviation for incident in incidents], dtype=np.float64),
        "features": np.array([", ".join(incident.features) for incident in incidents], dtype=object),
        "feature_p": np.array([_p_of_features(incident) for incident in incidents], dtype=object),
        "suspects": np.array([", ".join(incident.suspects) for incident in incidents], dtype=object),
        "began_earliest": _times([incident.began_earliest for incident in incidents]),
        "began_latest": _times([incident.began_latest for incident in incidents]),
        "open": np.array([incident.open for incident in incidents], dtype=np.bool_),
        "ended": np.array([incident.ended or "" for incident in incidents], dtype=object),
    }


def _p_of_features(incident: Incident) -> str:
    """The p-values of the features at the peak, in their order."""
    return ", ".join(f"{incident.feature_p.get(name, math.nan):.3g}" for name in incident.features)


def _times(times: list[Any]) -> NDArray[Any]:
    if any(isinstance(time, np.datetime64) for time in times):
        return np.array([np.datetime64("NaT") if time is None else time for time in times], dtype="datetime64[ns]")
    times = [np.nan if time is None else time for time in times]
    return np.array(times, dtype=np.float64 if any(isinstance(time, float) for time in times) else np.int64)


def time_text(time: Any) -> str:
    """A readable time."""
    if isinstance(time, np.datetime64):
        return str(format_times(np.array([time]))[0]).replace("T", " ")
    return f"{time:g}" if isinstance(time, float) else str(time)
