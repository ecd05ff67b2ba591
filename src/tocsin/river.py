"""Tocsin as a River anomaly detector."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tocsin.detection import Detector, Verdict
from tocsin.detection.settings.arguments import keeps_settings
from tocsin.detection.settings.declaration import declared
from tocsin.detection.settings.detector_settings import DetectorSettings

try:
    from river import base
except ImportError as error:
    raise ImportError("tocsin.river needs river: pip install 'tocsin[river]'") from error

# After this many observations the state is copied again.
COPY_EVERY = 64
# The data define the features, and have no times.
_NOT_TAKEN = ("features", "zone", "holidays")
_KEPT = [name for name in declared(DetectorSettings) if name not in _NOT_TAKEN]


class RiverDetector(base.AnomalyDetector):
    """Judges observations, given as dicts of numbers, in order.

    It takes the settings of `tocsin.Detector` as keyword arguments. The first observation learned defines the
    features. In later observations, an absent feature counts as missing, and extra keys are ignored.

    `score_one` returns the severity (0 during warm-up): the more anomalous the observation, the higher. It changes
    nothing. Call it before `learn_one` with the same observation, as River does everywhere: then each observation is
    processed only once. `verdict_one` returns the whole verdict, with `p` and `alarm`.

    Examples
    --------
    >>> import random
    >>> rng = random.Random(0)
    >>> model = RiverDetector(alarm_rate=0.01)
    >>> for _ in range(1000):
    ...     model.learn_one({"temperature": rng.gauss(20, 1)})
    >>> model.score_one({"temperature": 20.5}) < 1 < model.score_one({"temperature": 30.0})
    True
    >>> model.verdict_one({"temperature": 30.0}).alarm
    True
    """

    @keeps_settings(*_NOT_TAKEN)
    def __init__(self) -> None:
        self._detector: Detector | None = None
        # The last observation scored, and its verdict, until it is learned or discarded.
        self._tried: tuple[list[float], Verdict] | None = None
        # To discard it: a state from a while ago, and what was learned since. Copying the state each time would take
        # longer than scoring.
        self._state: Mapping[str, Any] = {}
        self._since: list[list[float]] = []

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one observation."""
        if self._detector is None:
            settings = {name: getattr(self, name) for name in _KEPT}
            self._names = sorted(x, key=str)
            self._detector = Detector(max(len(self._names), 1), **settings)
            self._state = self._detector.state()
        values = self._values(x)
        if self._is_tried(values):
            self._tried = None
        else:
            self._discard_tried()
            self._detector.update(values)
        self._since.append(values)
        if len(self._since) >= COPY_EVERY:
            self._state, self._since = self._detector.state(), []

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """The severity of an observation; 0 during warm-up."""
        verdict = self.verdict_one(x)
        return 0.0 if verdict is None or np.isnan(verdict.severity) else verdict.severity

    def verdict_one(self, x: Mapping[Any, Any]) -> Verdict | None:
        """The verdict on an observation; None before the first is learned."""
        if self._detector is None:
            return None
        values = self._values(x)
        if not self._is_tried(values):
            self._discard_tried()
            self._tried = (values, self._detector.update(values))
        return None if self._tried is None else self._tried[1]

    def _values(self, x: Mapping[Any, Any]) -> list[float]:
        return [float(x.get(name, np.nan)) for name in self._names] or [np.nan]

    def _is_tried(self, values: list[float]) -> bool:
        return self._tried is not None and np.array_equal(self._tried[0], values, equal_nan=True)

    def _discard_tried(self) -> None:
        """Discard an observation that was scored but not learned."""
        if self._tried is None or self._detector is None:
            return
        self._detector = Detector.from_state(self._state, forecaster=self._detector.fleet.forecasters)
        for values in self._since:
            self._detector.update(values)
        self._state, self._since, self._tried = self._detector.state(), [], None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"forecaster": "last-value", "views": "error", "window": 250}
