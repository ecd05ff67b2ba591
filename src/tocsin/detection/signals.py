"""Single signals, taken out of a running fleet and put into one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.conformal.scorer import differences
from tocsin.detection.fleet import Fleet
from tocsin.detection.incidents import IncidentLog
from tocsin.detection.storage import damage_told, fleet_from_state, made_of, read_header, rows_state

# What a detector calls its signal: a state does not depend on the row that it was taken from.
NAME = "signal"


def signal_state(fleet: Fleet, row: int, last_time: Any) -> dict[str, NDArray[Any]]:
    """The state of a detector that has seen what this row has seen; see `Fleet.signal_state`."""
    row = _checked_row(fleet, row)
    log = IncidentLog([NAME], fleet.features, fleet.log.gap, fleet.log.min_duration)
    log.adopt(0, fleet.log, row)
    return rows_state(fleet, np.array([row]), log, {"time": last_time})


def put_signal(fleet: Fleet, row: int, state: Mapping[str, NDArray[Any]] | None, name: str | None) -> Any:
    """Let another signal, or for None a fresh one, take this row; see `Fleet.put`."""
    row = _checked_row(fleet, row)
    if name is not None and (not isinstance(name, str) or name in fleet.names[:row] + fleet.names[row + 1 :]):
        raise ValueError(f"name must be one that no other signal of the fleet has, got {name!r}")
    # All that can go wrong goes wrong before anything is changed.
    single, last_time = (_fresh(fleet), None) if state is None else _restored(fleet, state)
    fleet.pipeline.adopt(np.array([row]), single.pipeline)
    fleet.trail.counts[row] = single.trail.counts[0]
    fleet.log.adopt(row, single.log, 0, name)
    fleet.names[row] = fleet.log.names[row]
    return last_time


def _checked_row(fleet: Fleet, row: int) -> int:
    return checks.integer("row", row, least=0, most=len(fleet.names) - 1)


def _fresh(fleet: Fleet) -> Fleet:
    """A fleet of one signal that has seen nothing."""
    return Fleet(1, fleet.features, **made_of(fleet)["settings"], forecaster=fleet.settings.forecaster)


def _restored(fleet: Fleet, state: Mapping[str, NDArray[Any]]) -> tuple[Fleet, Any]:
    """A fleet of the one signal of a state, and the signal's last time; refuses one unlike `fleet`."""
    header = read_header(state)
    with damage_told():
        if len(header["signals"]) != 1:
            raise ValueError(f"one signal is needed, got {len(header['signals'])}")
        theirs = _named(header)
    own = _named(made_of(fleet))
    if theirs != own:
        raise ValueError(f"state must be of a signal with the settings of the fleet, got {differences(theirs, own)}")
    single, extra = fleet_from_state(state, forecaster=fleet.settings.forecaster, threads=1)
    return single, extra.get("time")


def _named(made: Mapping[str, Any]) -> dict[str, Any]:
    return {"features": made["features"], "forecaster": made["forecaster"], **made["settings"]}
