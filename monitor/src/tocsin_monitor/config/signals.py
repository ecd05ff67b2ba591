"""The settings of signals, by name pattern."""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from tocsin.detection import DetectorSettings, declared, named_forecasters
from tocsin.forecasting import make_forecaster
from tocsin_monitor.config.section import Seconds, Section
from tocsin_monitor.observations import MOST_FEATURES

DETECTOR_SETTINGS = tuple(name for name, one in declared(DetectorSettings).items() if one.rule.configured)


class SignalTemplate(Section):
    """Settings of signals whose names match a pattern; the first match applies."""

    match: str = Field(description="A name pattern with * and ?.", min_length=1, examples=["pump/*"])
    features: tuple[str, ...] | None = Field(
        default=None,
        description="The feature names.",
        min_length=1,
        max_length=MOST_FEATURES,
        examples=[["vibration", "temperature"]],
    )
    silent_after: Seconds | None = Field(
        default=None,
        description="Report the signal as silent after this long without an observation; by default from its pace.",
        examples=["10min"],
    )
    unit: str | None = Field(default=None, description="The unit of the values, for the dashboard.", examples=["mm/s"])
    every: Seconds | None = Field(
        default=None,
        description="Aggregate observations over this time and judge the result; this is then the interval.",
        examples=["1min"],
    )
    aggregate: Literal["mean", "last", "max", "sum", "count"] = Field(
        default="mean", description="How to aggregate: mean, last, max, sum or count."
    )
    detector: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings of the detector, as in docs/detector.md; they override those of [detector].",
        examples=[{"alarm_rate": "1/week"}],
    )

    @model_validator(mode="after")
    def _one_interval(self) -> Self:
        if self.every is not None and "interval" in self.detector:
            raise ValueError(f"every sets the interval: omit detector.interval, got {self.detector['interval']!r}")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of its detectors."""
        return self.detector if self.every is None else {**self.detector, "interval": self.every}

    def fits(self, name: str) -> bool:
        """Whether it applies to a signal with this name."""
        return fnmatchcase(name, self.match)


def check_detector(settings: Mapping[str, Any], features: Sequence[str] | None) -> None:
    """Reject settings that a detector would reject, without creating one."""
    unknown = sorted(set(settings) - set(DETECTOR_SETTINGS))
    if unknown:
        raise ValueError(f"a detector has no setting {', '.join(unknown)}; it has {', '.join(DETECTOR_SETTINGS)}")
    try:
        DetectorSettings.check({**settings, "features": list(features) if features else 1})
        for name, options in named_forecasters(settings):
            if options.get("model"):
                _load_once(name, json.dumps(options, sort_keys=True))
    except (ImportError, TypeError, ValueError) as error:
        raise ValueError(str(error)) from error


@cache
def _load_once(forecaster: str, options: str) -> None:
    """Check that a model can be loaded, once for all signals that use it."""
    make_forecaster(forecaster, json.loads(options))
