"""Detectors with all combinations of some settings, as methods of the benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tocsin.constants import Constants, changed
from tocsin.detection import Detector, DetectorSettings
from tocsin.detection.settings.declaration import declared
from tocsin_bench.forecast_errors import ForecastMaterial
from tocsin_bench.methods import DETECTOR_SETTINGS, Judgement, Method, judgement_of
from tocsin_bench.runner import RunPlan

_SETTINGS = {name: one.type for name, one in declared(DetectorSettings).items() if one.rule.configured}
TUNABLE = {name: type(value) for name, value in Constants()._asdict().items()} | _SETTINGS
"""The settings and constants that can be tried, by name, with their types."""


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
        """The settings and constants of its detector: those of the benchmark, replaced by the tried ones."""
        return {**DETECTOR_SETTINGS, **self.values}

    def method(self) -> Method:
        """Its detector as a method of the benchmark."""
        return Method(self.label, "the detector with these settings", _judge, self.settings, (), forecasts_itself=True)


def split_constants(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a detector, and the constants to use instead of the usual ones."""
    constants = {name: value for name, value in given.items() if name not in _SETTINGS and name in TUNABLE}
    return {name: value for name, value in given.items() if name not in constants}, constants


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
            settings, constants = split_constants(one.settings)
            _check_constants(constants)
            DetectorSettings.check(settings)
        except (ImportError, TypeError, ValueError) as error:
            raise ValueError(f"{one.label}: {error}") from error
    return found


def grid_plan(grid: Sequence[Combination]) -> RunPlan:
    """Every combination on every file. Nobody looks at the p-values of a whole grid, so they are not kept."""
    return RunPlan(methods=tuple(one.method() for one in grid), keeps_traces=False)


def _judge(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    settings, constants = split_constants(settings)
    with changed(**constants):
        return judgement_of(Detector(**settings), material.file.values)


def _check_constants(constants: Mapping[str, Any]) -> None:
    for name, value in constants.items():
        usual = getattr(Constants(), name)
        if not isinstance(value, int | type(usual)) or isinstance(value, bool) or not value > 0:
            raise ValueError(f"{name} must be a positive number like {usual}, got {value!r}")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_text(inner)}" for name, inner in value.items())
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
