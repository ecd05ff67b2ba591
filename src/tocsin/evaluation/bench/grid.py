"""Detectors with all combinations of some settings, as methods of the benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tocsin.detection import Detector, DetectorSettings
from tocsin.detection.declaration import declared
from tocsin.evaluation.bench.forecast_errors import ForecastMaterial
from tocsin.evaluation.bench.methods import DETECTOR_SETTINGS, Judgement, Method, judgement_of
from tocsin.evaluation.bench.runner import RunPlan

TUNABLE = {name: one for name, one in declared(DetectorSettings).items() if one.rule.configured}
"""The settings that can be tried, by name."""


@dataclass(frozen=True)
class Combination:
    """A point of the grid: one value for each of the tried settings."""

    values: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Its name in tables and results.

        >>> Combination({"views": "error,shape", "window": 1000}).label
        'views=error,shape window=1000'
        """
        return " ".join(f"{name}={_text(value)}" for name, value in self.values.items())

    @property
    def settings(self) -> dict[str, Any]:
        """Those of its detector: the benchmark's, unless they are tried."""
        return {**DETECTOR_SETTINGS, **self.values}

    def method(self) -> Method:
        """Its detector as a method of the benchmark."""
        return Method(self.label, "the detector with these settings", _judge, self.settings, (), forecasts_itself=True)


def make_detector(settings: Mapping[str, Any]) -> Detector:
    """The detector of a combination. Its features are those of the first data."""
    return Detector(**settings)


def combinations(tried: Mapping[str, Sequence[Any]]) -> list[Combination]:
    """Every combination of the tried values, by the names of the settings; rejects what no detector accepts."""
    names = sorted(tried)
    for name in names:
        texts = [_text(value) for value in tried[name]]
        if len(set(texts)) < len(texts):
            raise ValueError(f"{name} must have distinct values, got {', '.join(texts)}")
    found = [Combination(dict(zip(names, values, strict=True))) for values in product(*(tried[name] for name in names))]
    for one in found:
        try:
            DetectorSettings.check(one.settings)
        except (ImportError, TypeError, ValueError) as error:
            raise ValueError(f"{one.label}: {error}") from error
    return found


def grid_plan(grid: Sequence[Combination]) -> RunPlan:
    """Every combination on every file. Nobody looks at the p-values of a whole grid, so they are not kept."""
    return RunPlan(methods=tuple(one.method() for one in grid), keeps_traces=False)


def _judge(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    return judgement_of(make_detector(settings), material.file.values)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_text(inner)}" for name, inner in value.items())
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
