"""Watching each column of a file as a signal of its own, and all together for their relations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tocsin.data import Signal
from tocsin.data.tables import Columns
from tocsin.detection import Result
from tocsin.detection.paper.scoring import PAPER
from tocsin.detection.settings.detector_settings import VIEWS
from tocsin.detection.views import make_view


class SeparateColumns:
    """Which signals are made of one with several features, and the settings of each."""

    def __init__(self, columns: Columns, settings: Mapping[str, Any], relating: Sequence[str]) -> None:
        self.columns, self._settings, self._relating = columns, settings, relating
        #: How many signals are made of one.
        self.parts = len(columns.values) + bool(relating)

    def split(self, signal: Signal) -> list[Signal]:
        """The signals that are made of one."""
        of = "" if self.columns.id is None else f"{signal.name}/"
        apart = [
            replace(
                signal,
                name=f"{of}{feature}",
                features=(feature,),
                values=np.ascontiguousarray(signal.values[:, number : number + 1]),
                problems=(),
            )
            for number, feature in enumerate(signal.features)
        ]
        relations = "relations"
        while relations in signal.features:
            relations = f"all {relations}"
        return [*apart, *([replace(signal, name=f"{of}{relations}", problems=())] if self._relating else [])]

    def relates(self, signal: Signal) -> bool:
        """Whether a signal is that of the relations."""
        return bool(self._relating) and signal.features == self.columns.values

    def settings_of(self, signal: Signal) -> Mapping[str, Any]:
        """The settings of one of the signals. Relations need no forecaster: the cheapest is as good as any."""
        if not self.relates(signal):
            return self._settings
        forecaster = {"forecaster": "last-value", "forecaster_options": None, "scaled": False, "refresh": 1}
        return {**self._settings, **forecaster, "views": self._relating}


def separate(columns: Columns, settings: Mapping[str, Any], *, peers: bool = False) -> SeparateColumns | None:
    """How to watch columns separately.

    None if they stay features of one signal: if there is only one, if no view judges a column by itself, if
    observations are what is promised, as by the paper's detector, and where the features of an id are compared with
    those of others. Columns that are `peers` are compared already.
    """
    names = settings["views"].split(",") if settings["views"] else VIEWS
    views = [] if settings["forecaster"] is None else [make_view(name.strip()) for name in names]
    relating = [view.name for view in views if view.relates]
    by_p = settings["preset"] == PAPER or settings["promise"] == "observations"
    whole = by_p or 0 < len(views) == len(relating) or (peers and columns.id is not None)
    if whole or len(columns.values) == 1:
        return None
    return SeparateColumns(columns, settings, [] if peers else relating)


def of_relations(result: Result) -> Result:
    """The result of relations without what means nothing there: forecasts, and how its columns are sampled."""
    for incident in result.incident_list:
        incident.direction, incident.deviation = None, np.nan
    verdicts = result.verdicts
    if verdicts is not None:
        verdicts = replace(verdicts, forecast=np.full_like(verdicts.forecast, np.nan))
    return replace(result, verdicts=verdicts, warning=result.warning if result.judged_since is None else None)
