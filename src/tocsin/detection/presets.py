"""The defaults of a detector."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Means the forecaster of the preset.
AUTO = "auto"


@dataclass(frozen=True)
class Preset:
    """Forecaster, views and window for one kind of use."""

    forecaster: str
    views: tuple[str, ...]
    window: int
    forecaster_options: Mapping[str, Any] = field(default_factory=dict)


PRESETS = {
    "full": Preset("embedded", ("error", "level", "shape", "quiet"), 2000),
    "light": Preset("autoregression", ("error", "shape-light", "quiet"), 1000, {"lags": 16, "search": 1152}),
}
"""Presets by name: "full" finds most; "light" needs no network, for large fleets and small machines."""

VIEWS_BY_NAME = {"all": PRESETS["full"].views, "paper": ("horizons",)}
"""Named sets of views. "paper" is the detector of the paper: 15 horizons, merged by their median."""


def named_forecaster(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Name and arguments of the forecaster in the settings; None if the values are scores.

    >>> named_forecaster({"preset": "light"})
    ('autoregression', {'lags': 16, 'search': 1152})
    >>> named_forecaster({"forecaster": "seasonal-naive", "forecaster_options": {"period": 24}})
    ('seasonal-naive', {'period': 24})
    """
    name, given = settings.get("forecaster", AUTO), dict(settings.get("forecaster_options") or {})
    if name is None:
        return None
    if name != AUTO:
        return name, given
    preset = PRESETS[settings.get("preset", "full")]
    return preset.forecaster, {**preset.forecaster_options, **given}
