"""What a detector says of one observation."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import SMALLEST_P, Floats

# What an observation finds a signal in: no incident, one that may be over, or one that goes on; or the end of one.
NORMAL, FADES, LASTS, RETURNED, ACCEPTED, SILENT = 0, 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Verdict:
    """What a detector says of one observation of one signal.

    With several features, `value`, `forecast`, `low`, `high` and `feature_p` are arrays with an entry for each. NaN
    stands for what is not there: a missing value has no p, and alarms never.
    """

    time: Any
    value: Any
    #: How often so much evidence is to be expected of an observation: low when anomalous.
    p: float
    #: Whether an incident with as much evidence comes more rarely than the alarm rate tolerates, and the guards let it
    #: pass; with promise="observations", whether p is under the alarm rate.
    alarm: bool
    #: What was forecast for this observation one step before.
    forecast: Any
    #: The values beyond which the one-step error by itself is evidence enough for an alarm, as of a few
    #: observations ago. Other views may alarm within them.
    low: Any
    high: Any
    #: How strange the observation is in all views together, -log10 of a mean of their ranks. It orders observations: of
    #: two spikes the larger one is the severer, however large both are.
    severity: float
    #: After how many observations an incident with as much evidence comes again, on average; NaN during warm-up.
    return_period: float
    #: One p-value for each feature, from the views of it alone: their smallest, times their number.
    feature_p: Any
    #: The severity in each view, by its name.
    views: dict[str, float]
    #: Of an alarm: the view that says most, the feature that it says it of, and what it says, in words.
    view: str | None
    feature: str | None
    explanation: str | None
    #: Whether the signal is in an incident: from its first alarm until it is as it was before, alarm or none.
    open: bool
    #: Whether the signal has been watched for long enough for p to be as calibrated as it is going to be, and for
    #: alarms.
    warm: bool
    #: Whether alarms are decided by an estimated tail, since the signal's own past is too short for the alarm rate.
    estimated: bool

    @property
    def merged(self) -> float:
        """The mean rank in all views together. It is not a p-value."""
        return float(_rank_of(np.array([self.severity]))[0])

    @property
    def direction(self) -> str | None:
        """Whether the value, or that of the strangest feature, lies "above" or "below" its forecast."""
        error = np.atleast_1d(self.value) - np.atleast_1d(self.forecast)
        return direction_of(error, np.atleast_1d(self.feature_p))


def _rank_of(severity: Floats) -> Floats:
    """One way from severities to ranks for single verdicts and many, so that both have the same bits."""
    return np.asarray(np.maximum(10.0**-severity, SMALLEST_P))


def direction_of(error: Floats, feature_p: Floats) -> str | None:
    """On which side of its forecast the strangest feature lies."""
    if np.isnan(feature_p).all():
        return None
    strangest = error[np.nanargmin(feature_p)]
    return "above" if strangest > 0 else "below" if strangest < 0 else None


def directions(errors: Floats, feature_p: Floats) -> list[str | None]:
    """The same of many observations, `(T, F)`."""
    if errors.shape[1] > 1:
        return [direction_of(error, p) for error, p in zip(errors, feature_p, strict=True)]
    sides = np.where(np.isnan(feature_p[:, 0]), 0.0, np.nan_to_num(np.sign(errors[:, 0])))
    return [("below", None, "above")[int(side) + 1] for side in sides.tolist()]


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on T observations of S signals with F features, as arrays; see `Verdict` for what each means.

    Arrays have the shape (T, S), those with an entry for each feature (T, S, F). `surprise` is the severity, and
    `views`, (T, S, views), that of each view, both in nats; `rate` is how often an incident with as much evidence
    comes, in incidents an observation. `cause` holds the numbers of the view, its stream and the feature that say most
    (-1 for none, or for all features together), and `score` the score of that stream, negative below the forecast.
    `opened` tells where an incident began, and `state` how it goes on: `NORMAL`, `FADES`, `LASTS`, or how it ended:
    `RETURNED`, `ACCEPTED`, `SILENT`. `evidence`, in nats, is what alarms are decided by.
    """

    value: Floats
    p: Floats
    alarm: NDArray[np.bool_]
    forecast: Floats
    low: Floats
    high: Floats
    surprise: Floats
    rate: Floats
    feature_p: Floats
    views: Floats
    cause: NDArray[np.int16]
    score: Floats
    opened: NDArray[np.bool_]
    estimated: NDArray[np.bool_]
    evidence: Floats
    warm: NDArray[np.bool_]
    state: NDArray[np.int16]

    @property
    def open(self) -> NDArray[np.bool_]:
        """Whether each signal is in an incident."""
        return np.isin(self.state, (FADES, LASTS))

    @property
    def severity(self) -> Floats:
        """How strange each observation is in all views together, -log10 of a mean of their ranks."""
        return np.asarray(self.surprise / np.log(10.0))

    @property
    def merged(self) -> Floats:
        """The mean rank in all views together. It is not a p-value."""
        return _rank_of(self.severity)

    @property
    def return_period(self) -> Floats:
        """After how many observations an incident with as much evidence comes again, on average."""
        return np.asarray(1.0 / self.rate)

    def column(self, signal: int) -> "Verdicts":
        """The verdicts on one of the signals, in arrays of one signal."""
        return Verdicts(*(getattr(self, field.name)[:, signal : signal + 1] for field in fields(self)))

    @classmethod
    def joined(cls, parts: "list[Verdicts]") -> "Verdicts":
        """Verdicts on one stretch of observations after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))
