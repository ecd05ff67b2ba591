"""What workers need to know: the same for every signal, small, and serialisable."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tocsin.data import LONGEST_GAP
from tocsin.data.timeline import as_interval
from tocsin.detection import DetectorSettings
from tocsin.detection.settings.detector_settings import named_forecasters
from tocsin.forecasting import Forecaster
from tocsin.spark.columns import Clock, Input
from tocsin.spark.models import forecaster_of


@dataclass(frozen=True)
class SparkPlan:
    """How signals are judged. `shuffled` means that rows arrive in no particular order."""

    features: tuple[str, ...]
    clock: Clock
    settings: Mapping[str, Any]
    shuffled: bool = False
    longest_gap: int = LONGEST_GAP

    @property
    def dated(self) -> bool:
        """Whether times are dates, not plain numbers."""
        return self.clock is not Clock.NUMBERS

    def text(self) -> str:
        """Everything as JSON."""
        return json.dumps({**asdict(self), "clock": self.clock.name})

    @classmethod
    def read(cls, text: str) -> "SparkPlan":
        """The plan that `text` returned."""
        given = json.loads(text)
        return cls(**{**given, "features": tuple(given["features"]), "clock": Clock[given["clock"]]})

    def detector_settings(self) -> dict[str, Any]:
        """The settings with the forecaster itself, which is loaded once in each process."""
        settings = dict(self.settings)
        named = named_forecasters(settings)
        settings.pop("forecaster_options", None)
        settings["forecaster"] = tuple(forecaster_of(name, json.dumps(options)) for name, options in named) or None
        return settings


def make_plan(given: Input, settings: Mapping[str, Any], *, interval_known: bool, shuffled: bool = False) -> SparkPlan:
    """A plan, after checking that a detector accepts these settings and that they are serialisable."""
    chosen = dict(settings)
    if isinstance(chosen.get("forecaster"), Forecaster):
        raise TypeError(f"forecaster must be given by name, to be sent to the workers, got {chosen['forecaster']!r}")
    for name, value in chosen.items():
        try:
            json.dumps(value)
        except TypeError:
            raise TypeError(
                f"{name} must be a text, a number or another plain value, to be sent to the workers, got {value!r}"
            ) from None
    plan = SparkPlan(given.columns.values, given.clock, chosen, shuffled)
    if chosen.get("interval") is not None:
        as_interval(chosen["interval"], dated=plan.dated)
    DetectorSettings.check({**chosen, "features": plan.features}, interval_known=interval_known)
    return plan
