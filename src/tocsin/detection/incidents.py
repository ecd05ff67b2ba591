"""Alarms that belong together."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from tocsin.detection.explaining import explain
from tocsin.detection.verdict import ACCEPTED, LASTS, RETURNED, SILENT, Verdicts, direction_of
from tocsin.detection.views import View

# So many nats more evidence is clearly more. The end of a fault often shows as much as its start, on the other side.
CLEARLY = 3.0
# A detector that runs for years keeps the newest incidents only.
MOST_KEPT = 10_000

LABELLED = "labelled"
ENDS = {RETURNED: "returned", ACCEPTED: "accepted", SILENT: "silent"}
"""Why an incident is over: the signal is as it was before; it stays as it is, which is normal by now; or it has no
values any more. `LABELLED`: somebody said that it is none."""


@dataclass
class Incident:
    """From a signal's first alarm to where it is as it was before.

    `start`, `end` and `peak` are times, or the numbers of observations where no times are given; `end` is the time of
    the last observation so far that had an alarm or was unlike what came before the incident. The peak is the first
    alarm of which no later one has clearly more evidence; `view` and `explanation` say what was strange there,
    `direction` and `deviation` (value minus forecast) are those of the strangest feature. `features` names the
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
    #: After how many observations an incident with as much evidence comes again, on average.
    return_period: float
    view: str | None
    explanation: str | None
    direction: str | None
    deviation: float
    contributions: dict[str, float] = field(default_factory=dict)
    #: The evidence at the peak, in nats.
    evidence: float = -math.inf
    #: Whether how rare it is was estimated when it began: the signal's own past was too short to tell.
    estimated: bool = False
    #: Why it is over: "returned", "accepted", "silent" or "labelled"; None while it is not.
    ended: str | None = None

    @property
    def open(self) -> bool:
        """Whether it is not over."""
        return self.ended is None

    @property
    def duration(self) -> int:
        """Observations from the first to the last of it."""
        return self.last - self.first + 1

    @property
    def features(self) -> list[str]:
        """The features, those that contributed most (by -log10 of their smallest p-values) first."""
        return sorted(self.contributions, key=lambda name: -self.contributions[name])


class IncidentLog:
    """Keeps the incidents of signals, as their verdicts tell of them.

    Incidents shorter than `min_duration` observations are not told of.
    """

    def __init__(self, names: Sequence[str], features: Sequence[str], views: Sequence[View], min_duration: int) -> None:
        self.names, self.features, self.views = list(names), list(features), tuple(views)
        self.min_duration = min_duration
        self._open: dict[int, Incident] = {}
        self._closed: deque[Incident] = deque(maxlen=MOST_KEPT)
        self._labelled: set[int] = set()  # signals in what somebody said is no incident
        #: While it is a list: each alarm adds the open incident as it is then, for who takes many observations at once.
        self.at_alarms: list[Incident | None] | None = None

    def add(self, verdicts: Verdicts, numbers: np.ndarray, rows: np.ndarray, times: Any) -> None:
        """Take verdicts on the signals `rows`. `numbers[T, N]` counts their observations, `times[T, N]` may be None."""
        alarms, states = verdicts.alarm, verdicts.state
        if not (self._open or self._labelled) and not alarms.any():
            return
        busy = alarms.any(axis=0)
        if self._open or self._labelled:
            busy = busy | np.isin(rows, [*self._open, *self._labelled])
        over: list[tuple[int, int, Incident]] = []
        for column in map(int, np.flatnonzero(busy)):
            signal, first = int(rows[column]), int(numbers[0, column])
            for step in map(int, np.flatnonzero(alarms[:, column] | (states[:, column] >= LASTS))):
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
        # In the order in which they would have ended had the observations come one by one.
        self._closed.extend(incident for _, _, incident in sorted(over, key=lambda one: one[:2]))

    def _follow(self, signal: int, ended: str | None, number: int, time: Any) -> list[Incident]:
        """Let the signal's incident last until this observation, or end; returns it if it did and is to be told of."""
        incident = self._open[signal]
        if ended is None:
            incident.end, incident.last = time, number
            return []
        del self._open[signal]
        incident.ended = ended
        return [incident] if incident.duration >= self.min_duration else []

    def label(self, signal: int) -> None:
        """End the signal's incident because somebody said that it is none, and begin no other before it is over."""
        if signal in self._open:
            self._closed.extend(self._follow(signal, LABELLED, 0, None))
            self._labelled.add(signal)

    def _alarm(self, signal: int, verdicts: Verdicts, step: int, column: int, number: int, time: Any) -> None:
        severity = float(verdicts.severity[step, column])
        period = float(verdicts.return_period[step, column])
        incident = self._open.get(signal)
        if incident is None:
            incident = self._open[signal] = Incident(
                self.names[signal], time, time, time, number, number, 0, 1.0, -1.0, 0.0, None, None, None,
                float("nan"), dict.fromkeys(self.features, 0.0), estimated=bool(verdicts.estimated[step, column]),
            )  # fmt: skip
        incident.alarms += 1
        feature_p = verdicts.feature_p[step, column]
        for name, feature in zip(self.features, feature_p, strict=True):
            if not np.isnan(feature):
                said = -float(np.log10(max(feature, 1e-300)))
                incident.contributions[name] = max(incident.contributions[name], said)
        incident.p = min(incident.p, float(verdicts.p[step, column]))
        incident.return_period = max(incident.return_period, 0.0 if np.isnan(period) else period)
        incident.severity = max(incident.severity, severity)
        evidence = float(verdicts.evidence[step, column])
        if evidence > incident.evidence + CLEARLY:
            incident.peak, incident.evidence = time, evidence
            why = explain(verdicts, step, column, self.views, self.features)
            incident.view, incident.explanation = (why.view, why.text) if why else (None, None)
            error = verdicts.value[step, column] - verdicts.forecast[step, column]
            incident.direction = direction_of(error, feature_p)
            incident.deviation = float("nan") if np.isnan(feature_p).all() else float(error[np.nanargmin(feature_p)])

    def incidents(self, signal: int | None = None) -> list[Incident]:
        """The incidents that are over and then those that are not, long enough to be told of."""
        going_on = [incident for _, incident in sorted(self._open.items()) if incident.duration >= self.min_duration]
        return [
            incident
            for incident in (*self._closed, *going_on)
            if signal is None or incident.signal == self.names[signal]
        ]

    def open_incident(self, signal: int) -> Incident | None:
        """The signal's incident that is not over, if it is long enough to be told of."""
        incident = self._open.get(signal)
        return incident if incident is not None and incident.duration >= self.min_duration else None

    def take_closed(self) -> list[Incident]:
        """The incidents that are over, the oldest first; they are kept here no longer."""
        taken = list(self._closed)
        self._closed.clear()
        return taken

    def adopt(self, signal: int, other: "IncidentLog", theirs: int, name: str | None = None) -> None:
        """Give a signal the incidents of the signal `theirs` in another log in place of its own; `name` renames it."""
        others = [incident for incident in self._closed if incident.signal != self.names[signal]]
        self.names[signal] = self.names[signal] if name is None else name

        def copied(incident: Incident) -> Incident:
            return replace(incident, signal=self.names[signal], contributions=dict(incident.contributions))

        self._open.pop(signal, None)
        self._labelled -= {signal}
        self._labelled |= {signal} if theirs in other._labelled else set()
        if theirs in other._open:
            self._open[signal] = copied(other._open[theirs])
        adopted = [copied(incident) for incident in other._closed if incident.signal == other.names[theirs]]
        # Where there are too many in all, the first go.
        self._closed = deque([*adopted, *others], maxlen=MOST_KEPT)

    def state(self) -> dict[str, Any]:
        """Everything, in types that JSON knows but for times."""
        return {
            "open": {str(signal): asdict(incident) for signal, incident in sorted(self._open.items())},
            "closed": [asdict(incident) for incident in self._closed],
            "labelled": sorted(self._labelled),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state()` gave."""
        self._open = {int(signal): Incident(**incident) for signal, incident in state["open"].items()}
        self._closed = deque((Incident(**incident) for incident in state["closed"]), maxlen=MOST_KEPT)
        self._labelled = set(map(int, state["labelled"]))
