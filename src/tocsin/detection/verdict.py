"""What a detector says of one observation."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import SMALLEST_P, Floats


@dataclass(frozen=True)
class Verdict:
    """What a detector says of one observation of one signal.

    With several features, `value`, `forecast`, `low`, `high` and `feature_p` are arrays with an entry for each, and
    `horizon_p` has a row for each. NaN stands for what is not there: a missing value has no p, and alarms never.
    """

    time: Any
    value: Any
    #: How often so strange an observation is to be expected: low when anomalous.
    p: float
    #: Whether p is under the alarm rate, and the guards let it pass.
    alarm: bool
    #: The median over the horizons of what was forecast for this observation.
    forecast: Any
    #: The values between which there is no alarm, up to how long ago they were found: nearly for the harmonic mean over
    #: the horizons, exact for the median of an odd number of them, whose band all other merges have too. With several
    #: features, between which a feature by itself is not strange.
    low: Any
    high: Any
    #: The merged value before the second scorer. It ranks observations best, but need not be a p-value.
    merged: float
    #: One p-value for each feature, merged over the horizons.
    feature_p: Any
    #: One p-value for each horizon; the first is that of the forecast issued one observation before.
    horizon_p: Floats
    #: Whether the signal has been watched for long enough for p to be as calibrated as it is going to be.
    warm: bool

    @property
    def severity(self) -> float:
        """-log10(p): 2 for p = 0.01, 3 for p = 0.001."""
        return float(-np.log10(max(self.p, SMALLEST_P))) if self.p == self.p else float("nan")

    @property
    def direction(self) -> str | None:
        """Whether the value, or that of the strangest feature, lies "above" or "below" its forecast."""
        error = np.atleast_1d(self.value) - np.atleast_1d(self.forecast)
        return direction_of(error, np.atleast_1d(self.feature_p))


def direction_of(error: Floats, feature_p: Floats) -> str | None:
    """On which side of its forecast the strangest feature lies."""
    if np.isnan(feature_p).all():
        return None
    strangest = error[np.nanargmin(feature_p)]
    return "above" if strangest > 0 else "below" if strangest < 0 else None


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on T observations of S signals with F features, as arrays; see `Verdict` for what each means.

    Arrays have the shape (T, S), those with an entry for each feature (T, S, F), `horizon_p` (T, S, F, H).
    """

    value: Floats
    p: Floats
    alarm: NDArray[np.bool_]
    forecast: Floats
    low: Floats
    high: Floats
    merged: Floats
    feature_p: Floats
    horizon_p: Floats
    warm: NDArray[np.bool_]

    @property
    def severity(self) -> Floats:
        """-log10(p)."""
        return np.asarray(-np.log10(np.maximum(self.p, SMALLEST_P)))

    @classmethod
    def joined(cls, parts: "list[Verdicts]") -> "Verdicts":
        """Verdicts on one stretch of observations after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def one(self, step: int, signal: int, time: Any) -> Verdict:
        """The verdict on one observation of one signal."""
        single = self.value.shape[2] == 1
        at = (step, signal, 0) if single else (step, signal)

        def plain(array: Floats) -> Any:
            return float(array[at]) if single else array[at].copy()

        return Verdict(
            time=time,
            value=plain(self.value),
            p=float(self.p[step, signal]),
            alarm=bool(self.alarm[step, signal]),
            forecast=plain(self.forecast),
            low=plain(self.low),
            high=plain(self.high),
            merged=float(self.merged[step, signal]),
            feature_p=plain(self.feature_p),
            horizon_p=self.horizon_p[at].copy(),
            warm=bool(self.warm[step, signal]),
        )
