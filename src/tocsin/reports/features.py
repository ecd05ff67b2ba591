"""Which features a result and its incidents are about."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import Incident, SignalResult
from tocsin.detection.explaining import name_and_unit


def worst_severity(result: SignalResult) -> float:
    """The severity of a signal's worst incident; -1 if it has none."""
    return max((incident.severity for incident in result.incidents), default=-1.0)


def features_of(result: SignalResult) -> list[str | None]:
    """The features, those first that the worst incident is about; None for a single one."""
    columns = columns_of(result)
    names = [name.removeprefix("value ") for name in columns if name.startswith("value ")]
    if not names:
        return [None]
    if result.incidents:
        return [*max(result.incidents, key=lambda incident: incident.severity).features]
    return [*names]


def columns_of(result: SignalResult) -> dict[str, NDArray[Any]]:
    """The verdicts of a result, which must have been kept."""
    if result.columns is None:
        raise ValueError(f"the verdicts on {result.signal!r} were not kept")
    return result.columns


def feature_column(result: SignalResult, name: str, feature: str | None) -> NDArray[Any]:
    """A column of verdicts, of one feature."""
    return columns_of(result)[name if feature is None else f"{name} {feature}"]


def alarms_of(result: SignalResult, feature: str | None) -> NDArray[np.bool_]:
    """Which observations alarm; of those in incidents only where this feature is to blame."""
    alarm: NDArray[np.bool_] = columns_of(result)["alarm"].copy()
    for incident in result.incidents:
        if not is_blamed(incident, feature):
            alarm[incident.first : incident.last + 1] = False
    return alarm


def blamed_feature(incident: Incident) -> str:
    """The feature that the explanation names, or the one that contributed most."""
    told = incident.explanation or ""
    named = [name for name in incident.contributions if told.startswith(f"{name_and_unit(name)[0]}: ")]
    return named[0] if named else incident.features[0]


def is_blamed(incident: Incident, feature: str | None) -> bool:
    """Whether an incident is about this feature."""
    return (
        feature is None
        or len(incident.contributions) < 2
        or feature in (incident.features[0], blamed_feature(incident))
    )
