"""Signals that come observation by observation, each with a detector of its own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tocsin.arrays import File, read_arrays, write_arrays
from tocsin.conformal.scorer import Floats
from tocsin.data import Observation
from tocsin.detection.detector import Detector
from tocsin.detection.verdict import Verdict

FORMAT = 2


class Watch:
    """Detectors that appear with the first observation of their signal. What they know can be saved and loaded."""

    def __init__(self, settings: Mapping[str, Any], reference: Floats | None = None) -> None:
        """`reference`, `(T, F)`, is what was good: every detector that appears learns it first."""
        self.settings = dict(settings)
        self.reference = reference
        self.detectors: dict[str | None, Detector] = {}
        self.observations = 0

    def observe(self, observation: Observation, features: tuple[str, ...] | None) -> Verdict:
        """The verdict on one observation; ValueError for one that comes too late, which changes nothing."""
        names = features or [f"feature {number}" for number in range(1, len(observation.values) + 1)]
        detector = self.detectors.get(observation.id) or self._new(names)
        values = dict(zip(names, observation.values, strict=True))
        if values.keys() != set(detector.features):
            raise ValueError(f"values must be of {', '.join(detector.features)} as before, got {', '.join(names)}")
        verdict = detector.update([values[name] for name in detector.features], observation.time)
        self.detectors[observation.id] = detector
        self.observations += 1
        return verdict

    def _new(self, names: Sequence[str]) -> Detector:
        detector = Detector(names, **self.settings)
        if self.reference is not None:
            detector.learn_reference(self.reference)
        return detector

    def save(self, file: File) -> None:
        """Write everything to one file, in one step or not at all."""
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
        """Go on from a saved file, which must have been made with the same settings.

        Detectors that are in it keep the reference that they have learned.
        """
        arrays = read_arrays(file, "what was watched")
        try:
            header = json.loads(str(arrays["watch"]))
            saved = header["settings"]
            ids, observations = header["ids"], int(header["observations"])
            if header["format"] != FORMAT:
                raise ValueError(f"its format must be {FORMAT}, got {header['format']!r}")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"file must hold what was watched, saved by tocsin, got {file!r}: {error}") from error
        given = json.loads(json.dumps(dict(settings)))
        for name in sorted({*saved, *given}):
            if saved.get(name) != given.get(name):
                raise ValueError(f"{file!r} was made with {name}={saved.get(name)!r}, got {name}={given.get(name)!r}")
        watch = cls(settings, reference)
        watch.observations = observations
        for number, name in enumerate(ids):
            prefix = f"{number}/"
            state = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
            watch.detectors[name] = Detector.from_state(state)
        return watch
