"""Signals that arrive observation by observation, each with its own detector."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.arrays import File, read_arrays, write_arrays
from tocsin.conformal.scorer import Floats
from tocsin.data import ParsedObservation, parse_time
from tocsin.detection.detector import Detector
from tocsin.detection.frames import missing_times
from tocsin.detection.incidents.incident import Incident
from tocsin.detection.incidents.verdict import Explanation, Verdicts, directions, explain, known_interval
from tocsin.detection.state.rerating import rerated

FORMAT = 2


class WatchedBatch:
    """Verdicts on a batch of observations of one signal, and its open incident at each alarm."""

    def __init__(self, detector: Detector, verdicts: Verdicts, incidents: Sequence[Incident | None]) -> None:
        self.detector, self.verdicts = detector, verdicts
        self.incidents = dict(zip(np.flatnonzero(verdicts.alarm[:, 0]).tolist(), incidents, strict=True))

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The verdicts as plain values: looking them up one by one would take longer.

        None stands for a missing or infinite value.
        """
        of = {name: getattr(self.verdicts, name)[:, 0] for name in (*_BY_FEATURE, *_ALONE)}
        direction = directions(of["value"] - of["forecast"], self.verdicts.feature_p[:, 0])
        if len(self.detector.features) == 1:
            of |= {name: of[name][:, 0] for name in _BY_FEATURE}
        return {**{name: _plain(array) for name, array in of.items()}, "direction": direction}

    def explanation(self, step: int, time: Any) -> Explanation | None:
        """The explanation of an alarm, which was at this time."""
        interval = known_interval(self.detector.fleet.interval, time)
        return explain(
            self.verdicts, step, 0, self.detector.fleet.views, self.detector.features, interval=interval
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WatchedObservation:
    """One observation of a batch."""

    batch: WatchedBatch
    step: int
    time: Any


Answer = WatchedObservation | TypeError | ValueError
_UNJUDGED: Answer = ValueError("not judged")
_BY_FEATURE = ("value", "forecast", "low", "high")
_ALONE = ("p", "alarm", "severity", "return_period", "warm")


def _plain(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return list(array.tolist())
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return list(plain.tolist())


class _Coming:
    """A batch of observations of one signal, with missing ones inserted for gaps."""

    def __init__(self, detector: Detector) -> None:
        self._detector, self._last = detector, detector._last_time
        self._rows: list[Any] = []
        self._times: list[Any] = []
        self._answers: list[int | TypeError | ValueError] = []  # row numbers, or errors

    def add(self, values: Sequence[float], time: Any) -> None:
        """Add the next one."""
        moment = None
        if time is not None:
            moment = time if isinstance(time, np.datetime64) else parse_time(time)
            try:
                missing = missing_times(self._last, moment, self._detector.fleet.interval)
            except (TypeError, ValueError) as error:
                self._answers.append(error)
                return
            self._rows += [[np.nan] * len(values)] * len(missing)
            self._times += list(missing)
            self._last = moment
        self._answers.append(len(self._rows))
        self._rows.append(values)
        self._times.append(moment)

    def judge(self) -> list[Answer]:
        """Judge all of them."""
        if not self._rows:
            return [answer for answer in self._answers if not isinstance(answer, int)]
        fleet = self._detector.fleet
        heard: list[Incident | None] = []
        fleet.log.at_alarms = heard
        try:
            timed = self._times[0] is not None
            verdicts = fleet.run_arrays(
                np.array(self._rows, dtype=np.float64)[:, np.newaxis],
                times=np.array(self._times)[:, np.newaxis] if timed else None,
            )
        finally:
            fleet.log.at_alarms = None
        self._detector._last_time = self._last
        batch = WatchedBatch(self._detector, verdicts, heard)
        return [
            WatchedObservation(batch, answer, self._times[answer]) if isinstance(answer, int) else answer
            for answer in self._answers
        ]


class Watch:
    """Detectors created with the first observation of their signal. Their state can be saved and loaded."""

    def __init__(self, settings: Mapping[str, Any], reference: Floats | None = None) -> None:
        """`reference`, `(T, F)`, is known-good data that every new detector learns first."""
        self.settings = dict(settings)
        self.reference = reference
        self.detectors: dict[str | None, Detector] = {}
        self.observations = 0

    def observe(self, observations: Sequence[ParsedObservation], features: tuple[str, ...] | None) -> list[Answer]:
        """The verdicts on a batch of observations, in order: the same as one by one.

        An observation that comes too late, or has other features, gets an error instead of a verdict.
        """
        answers: list[Answer] = [_UNJUDGED] * len(observations)
        places: dict[str | None, list[int]] = {}
        for place, observation in enumerate(observations):
            places.setdefault(observation.id, []).append(place)
        for name, own in places.items():
            some = self._observe_one(name, [observations[place] for place in own], features)
            for place, answer in zip(own, some, strict=True):
                answers[place] = answer
        self.observations += sum(isinstance(answer, WatchedObservation) for answer in answers)
        return answers

    def _observe_one(
        self, name: str | None, observations: Sequence[ParsedObservation], features: tuple[str, ...] | None
    ) -> list[Answer]:
        """The same for one signal."""
        names = features or [f"feature {number}" for number in range(1, len(observations[0].values) + 1)]
        try:
            detector = self.detectors.get(name) or self._new(names)
            if set(names) != set(detector.features):
                raise ValueError(f"values must be for {', '.join(detector.features)} as before, got {', '.join(names)}")
        except (TypeError, ValueError) as error:
            return [error] * len(observations)
        order = [names.index(feature) for feature in detector.features]
        coming = _Coming(detector)
        for observation in observations:
            coming.add([observation.values[place] for place in order], observation.time)
        try:
            answers = coming.judge()
        except ValueError as error:  # such as times that a calendar needs
            return [error] * len(observations)
        if any(isinstance(answer, WatchedObservation) for answer in answers):
            self.detectors[name] = detector
        return answers

    def _new(self, names: Sequence[str]) -> Detector:
        detector = Detector(names, **self.settings)
        if self.reference is not None:
            detector.learn_reference(self.reference)
        return detector

    def save(self, file: File) -> None:
        """Write everything to one file, atomically."""
        header = {
            "format": FORMAT,
            "settings": self.settings,
            "observations": self.observations,
            "ids": list(self.detectors),
        }
        arrays = {"watch": np.array(json.dumps(header))}
        for number, detector in enumerate(self.detectors.values()):
            for name, array in detector.state().items():
                arrays[f"{number}/{name}"] = array
        write_arrays(arrays, file)

    @classmethod
    def load(cls, file: File, settings: Mapping[str, Any], reference: Floats | None = None) -> "Watch":
        """Resume from a saved file, which must have the same settings except for the alarm rate: without, it stays.

        Detectors in it keep what they have learned, and their reference.
        """
        arrays = read_arrays(file, "what was watched")
        if "watch" not in arrays:
            found = (
                "a detector" if "header" in arrays else f"arrays called {', '.join(sorted(arrays)[:3]) or 'nothing'}"
            )
            raise ValueError(f"{file} is not a state of `tocsin watch`, but {found}: use another file as `state`")
        try:
            header = json.loads(str(arrays["watch"]))
            saved, version = header["settings"], header["format"]
            ids, observations = header["ids"], int(header["observations"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file} is a damaged state of `tocsin watch` ({error}): use another file") from error
        if version != FORMAT:
            raise ValueError(
                f"{file} is a state of format {version!r}, but this release reads {FORMAT}: start with a new file"
            )
        if settings.get("alarm_rate") is None:
            settings = {**settings, "alarm_rate": saved.get("alarm_rate")}
        given = json.loads(json.dumps(dict(settings)))
        for name in sorted({*saved, *given} - {"alarm_rate"}):
            if saved.get(name) != given.get(name):
                raise ValueError(
                    f"{file} was made with {name}={saved.get(name)!r}, got {given.get(name)!r}: give the same, or "
                    "another file; only the alarm rate may change"
                )
        watch = cls(settings, reference)
        watch.observations = observations
        changed = saved.get("alarm_rate") != given.get("alarm_rate")
        for number, name in enumerate(ids):
            prefix = f"{number}/"
            state = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
            watch.detectors[name] = Detector.from_state(rerated(state, given["alarm_rate"]) if changed else state)
        return watch
