"""The defaults of a detector."""

from collections.abc import Mapping
from typing import Any

#: Means the forecasters of the preset.
AUTO = "auto"

PRESETS = {"full": ("embedded", "autoregression"), "light": ("autoregression",)}
"""The forecasters of each preset: "full" finds most; "light" is the same detector without the network."""

VIEWS = ("error", "shape", "quiet")

#: Options of the autoregression of a preset: a signal's memory should be small.
_REGRESSION = {"lags": 16, "search": 1152}


def named_forecasters(settings: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of each forecaster in the settings, the one with options first; none if the values are scores.

    >>> named_forecasters({"preset": "light"})
    [('autoregression', {'lags': 16, 'search': 1152})]
    >>> named_forecasters({"forecaster": "seasonal-naive", "forecaster_options": {"period": 24}})
    [('seasonal-naive', {'period': 24})]
    """
    name, given = settings.get("forecaster", AUTO), settings.get("forecaster_options") or {}
    if name is None:
        return []
    if name != AUTO:
        return [(name, dict(given))]
    # Only the first one has a spread to divide errors by.
    names = PRESETS[settings.get("preset", "full")][: 1 if settings.get("scaled") else None]
    options = [dict(_REGRESSION) if name == "autoregression" else {} for name in names]
    options[0].update(given)
    return list(zip(names, options, strict=True))
